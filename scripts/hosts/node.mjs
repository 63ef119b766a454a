// The cases in JavaScript: node.mjs PACKAGE CASES, with PACKAGE onnxruntime-node or onnxruntime-web (WebAssembly).
// Leaves each case's outputs in PACKAGE.bin beside it, as calls.json orders them, or the reason in PACKAGE.error;
// compare.py reads these.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { runCalls } from './calls.mjs';

const [pack, cases] = process.argv.slice(2);
const require = createRequire(join(process.cwd(), 'package.json')); // packages of the folder that it is run in
const ort = await load();

for (const folder of JSON.parse(readFileSync(join(cases, 'cases.json')))) {
  const base = join(cases, folder, pack);
  try {
    writeFileSync(base + '.bin', await run(join(cases, folder), 'model.onnx'));
  } catch (error) {
    writeFileSync(base + '.error', String(error.message ?? error));
    await session(join(cases, folder, 'original.onnx')).then(
      (loaded) => loaded.release(),
      (same) => writeFileSync(base + '.original', String(same.message ?? same)),
    );
  }
}

async function load() {
  const loaded = await import(pathToFileURL(require.resolve(pack)));
  const ort = loaded.default ?? loaded;
  ort.env.logLevel = 'error';
  if (pack === 'onnxruntime-web') ort.env.wasm.numThreads = 1;
  return ort;
}

function session(path) {
  const provider = pack === 'onnxruntime-web' ? 'wasm' : 'cpu';
  return ort.InferenceSession.create(readFileSync(path), { executionProviders: [provider], logSeverityLevel: 3 });
}

async function run(folder, model) {
  const data = readFileSync(join(folder, 'calls.bin'));
  const { calls } = JSON.parse(readFileSync(join(folder, 'calls.json')));
  const loaded = await session(join(folder, model));
  const outputs = await runCalls(ort, loaded, calls, data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength));
  await loaded.release();
  return Buffer.concat(outputs);
}
