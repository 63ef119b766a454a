// Generates in headless Chromium as a reader of the page would, and compares the tokens with ONNX Runtime's on the CPU:
//
//     node check.mjs CHROMIUM GENERATE WORK
//
// GENERATE is examples/generate. WORK has the folders that scripts/hosts/browser.sh writes. Exit status 1 if anything differs.
import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { serve } from './serve.mjs';

const [executablePath, generate, work] = process.argv.slice(2);
const SETTLED = '#state[data-state=ready], #state[data-state=failed]';
// Chromium's own renderer on the CPU, for machines without a GPU.
const SOFTWARE_GPU = ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'];
const question = { prompt: 'Why is the sky blue?', chat: true, most: 32 };
const story = { prompt: 'Once upon a time', chat: false, most: 32 };
let failed = false;

function say(good, name, text) {
  failed ||= !good;
  console.log(`${good ? 'pass' : 'FAIL'}  ${name.padEnd(44)} ${text}`);
}

// What the op library computes: other kernels, and another file than the page's.
function reference(folder, { prompt, chat, most }) {
  const args = ['-model', join(work, folder), '-prompt', prompt, '-max-tokens', most, '-ids', ...(chat ? ['-chat'] : [])];
  return execFileSync(generate, args.map(String), { stdio: ['ignore', 'pipe', 'ignore'] }).toString().trim().split(' ').join();
}

// Runs use on the page of a folder, in a browser and under a server of their own.
async function visit(folder, { query = '', args = [], before }, use) {
  const server = await serve(folder, 0);
  const browser = await chromium.launch({ executablePath, args });
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(600_000);
    if (before) await page.addInitScript(before);
    await page.goto(`http://localhost:${server.address().port}/${query}`);
    await page.waitForSelector(SETTLED);
    await use(page, await page.textContent('#state'));
  } finally {
    await browser.close();
    server.close();
  }
}

async function ask(page, { prompt, chat, most, temperature = 0 }) {
  await page.fill('#prompt', prompt);
  if (await page.isEnabled('#chat')) await page.setChecked('#chat', chat);
  await page.fill('#most', String(most));
  await page.fill('#temperature', String(temperature));
  await page.click('#generate');
  await page.waitForSelector('#state[data-state=busy]');
  await page.waitForSelector(SETTLED);
  return { ids: await page.getAttribute('#text', 'data-ids'), text: await page.textContent('#text'), state: await page.textContent('#state') };
}

async function same(name, folder, original, options, questions) {
  await visit(join(work, folder), options, async (page, state) => {
    if (!state.startsWith('Ready')) return say(false, name, state);
    for (const asked of questions) {
      const want = reference(original, asked);
      const { ids, state: figures } = await ask(page, asked);
      say(ids === want, name, `${figures}; the CPU's tokens: ${ids === want ? 'the same' : want + ' instead of ' + ids}`);
    }
  });
}

async function refuses(name, folder, options, words) {
  await visit(folder, options, async (page, state) => say(words.test(state), name, state));
}

// A memory of 256 MB, which the model does not fit in.
function littleMemory() {
  const { Memory } = WebAssembly;
  WebAssembly.Memory = function ({ initial, shared }) {
    return new Memory({ initial, shared, maximum: Math.max(initial, 4096) });
  };
  WebAssembly.Memory.prototype = Memory.prototype;
}

await same('wasm, --target onnx', 'onnx', 'ops', { query: '?backend=wasm' }, [question, story]);
await same('wasm, --target onnx, 2 threads', 'onnx', 'ops', { query: '?backend=wasm&threads=2' }, [question]);
await same('wasm, the fallback', 'ops', 'ops', { query: '?backend=wasm' }, [question]);
await visit(join(work, 'onnx'), { query: '?backend=wasm' }, async (page) => {
  const { ids, text, state } = await ask(page, { ...question, most: 16, temperature: 0.8 });
  say(ids.split(',').length === 16 && text.length > 0, 'wasm, temperature 0.8', `${state}: ${JSON.stringify(text)}`);
});

await visit(join(work, 'small-onnx'), {}, async (page, state) => say(state.startsWith('Ready'), 'the browser as it is', state));
await same('WebGPU in software, a small --target onnx', 'small-onnx', 'small-ops', { query: '?backend=webgpu', args: SOFTWARE_GPU }, [{ ...question, chat: false, most: 16 }]);
await refuses('WebGPU, the fallback', join(work, 'small-ops'), { query: '?backend=webgpu', args: SOFTWARE_GPU }, /--target onnx/);

await refuses('no model', mkdtempSync(join(tmpdir(), 'empty-')), {}, /^There is no model/);
await refuses('a folder without a tokenizer', join(work, 'wrong'), {}, /^This is the wrong folder/);
await refuses('too little memory', join(work, 'onnx'), { query: '?backend=wasm', before: littleMemory }, /^There is not enough memory/);
process.exit(failed ? 1 : 0);
