// Uses the server's page in headless Chromium as a reader would, and compares the text with the interface's:
//
//   node page.mjs CHROMIUM URL KEY
//
// Exit status 1 if anything differs.
import { chromium } from 'playwright-core';

const [executablePath, url, key] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath });
const page = await browser.newPage();
let failed = false;
const say = (good, name, text) => {
  failed ||= !good;
  console.log(`${good ? 'pass' : 'FAIL'}  ${name.padEnd(34)} ${text}`);
};
const settled = async () => {
  await page.waitForSelector('#state:is([data-state=ready], [data-state=failed])');
  return page.textContent('#state');
};
const ask = async (text, most) => {
  await page.fill('#prompt', text);
  await page.fill('#most', String(most));
  await page.fill('#temperature', '0');
  await page.click('#send'); // the state is busy then
};

try {
  page.setDefaultTimeout(120_000);
  const faults = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => message.type() === 'error' && !message.text().includes('401') && faults.push(message.text()));
  await page.goto(url);
  await ask('Why is the sky blue?', 32);
  const refused = await settled();
  say(/key/.test(refused), 'without a key', refused);

  await page.fill('#key', key);
  const question = 'Why is the sky blue?';
  await ask(question, 32);
  const state = await settled();
  const shown = await page.textContent('#talk p.assistant');
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST', headers: { Authorization: `Bearer ${key}` },
    body: JSON.stringify({ messages: [{ role: 'user', content: question }], temperature: 0, max_tokens: 32 }),
  });
  const want = (await answer.json()).choices[0].message.content;
  say(shown === want && /^\d+ tokens, [\d.]+ tokens\/s\./.test(state), 'an answer', `${state} ${JSON.stringify(shown)}`);
  say((await page.$$('#talk p')).length === 2, 'one question, one answer', await page.textContent('#talk p.user'));

  await ask('Tell me a very long story about the sea.', 2000);
  await page.waitForFunction(() => document.querySelector('#talk p:last-child').textContent.length > 40);
  await page.click('#stop');
  const stopped = await settled();
  say(/stopped by you/.test(stopped), 'the stop button', stopped);
  await page.click('#clear');
  say((await page.$$('#talk p')).length === 0, 'the clear button', await page.textContent('#state'));
  say(faults.length === 0, 'faults of the page', faults.join('; ') || 'none');
} finally {
  await browser.close();
}
process.exit(failed ? 1 : 0);
