// The cases in Chromium: browser.mjs CHROMIUM PAGE CASES PROVIDER, with PROVIDER wasm or webgpu, and PAGE the copy of
// examples/browser that browser.sh makes. Leaves each case's outputs in browser-PROVIDER-TARGET.bin beside it, as calls.json
// orders them, or the reason in .error; compare.py reads these.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [executablePath, page, cases, provider] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(resolve(page, path)));
const { chromium } = await load('node_modules/playwright-core/index.mjs');
const { serve } = await load('serve.mjs');

const server = await serve(cases, 0);
// Without a GPU, WebGPU is Chromium's own renderer on the CPU.
const args = provider === 'webgpu' ? ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'] : [];
const browser = await chromium.launch({ executablePath, args });
for (const folder of JSON.parse(readFileSync(join(cases, 'cases.json')))) {
  for (const [target, model] of [['ops', 'model.onnx'], ['onnx', 'onnx.onnx'], ['contrib', 'contrib.onnx']]) {
    const base = join(cases, folder, `browser-${provider}-${target}`);
    for (const suffix of ['.bin', '.error', '.original']) rmSync(base + suffix, { force: true });
    if (!existsSync(join(cases, folder, model))) continue;
    try {
      writeFileSync(base + '.bin', Buffer.from(await run(folder, model, target === 'contrib'), 'base64'));
    } catch (error) {
      writeFileSync(base + '.error', error.message);
      await run(folder, 'original.onnx', false).catch((same) => writeFileSync(base + '.original', same.message));
    }
  }
}
await browser.close();
server.close();

// Each case has a page of its own: a session that failed may leave the runtime without memory.
async function run(folder, model, unpadded) {
  const tab = await browser.newPage();
  try {
    await tab.goto(`http://localhost:${server.address().port}/calls.html`);
    return await tab.evaluate(inPage, { at: `model/${folder}/`, model, unpadded, provider });
  } finally {
    await tab.close();
  }
}

async function inPage({ at, model, unpadded, provider }) {
  const ort = await import('onnxruntime-web/' + provider);
  const { runCalls, padded } = await import('./calls.mjs');
  const data = await (await fetch(at + 'calls.bin')).arrayBuffer();
  const { calls } = await (await fetch(at + 'calls.json')).json();
  const session = await ort.InferenceSession.create(at + model, { executionProviders: [provider], logSeverityLevel: 3 });
  const outputs = await runCalls(ort, session, unpadded ? calls.filter((call) => !padded(call, data)) : calls, data);
  const bytes = new Uint8Array(await new Blob(outputs).arrayBuffer());
  let text = '';
  for (let i = 0; i < bytes.length; i += 32768) text += String.fromCharCode(...bytes.subarray(i, i + 32768));
  return btoa(text);
}
