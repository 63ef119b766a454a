// Serves this folder, and a model's folder as model/, with the two headers that threads need:
//
//     node serve.mjs MODEL-FOLDER [PORT]
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const types = { '.html': 'text/html', '.mjs': 'text/javascript', '.js': 'text/javascript', '.json': 'application/json', '.wasm': 'application/wasm' };

// A browser gives a page shared memory, and so threads, only if the page shares it with no other site.
const isolation = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' };

export function serve(model, port) {
  const server = createServer(async (request, response) => {
    try {
      const file = place(model, new URL(request.url, 'http://localhost').pathname);
      const { size } = await stat(file);
      response.writeHead(200, { ...isolation, 'Content-Type': types[extname(file)] ?? 'application/octet-stream', 'Content-Length': size });
      if (request.method === 'HEAD') response.end();
      else createReadStream(file).on('error', () => response.destroy()).pipe(response);
    } catch {
      response.writeHead(404, isolation).end();
    }
  });
  return new Promise((done, failed) => server.once('error', failed).listen(port, 'localhost', () => done(server)));
}

// The path begins with / and keeps no .. after normalize, so it stays inside the folder.
function place(model, path) {
  const inside = normalize(decodeURIComponent(path));
  if (inside.startsWith('/model/')) return join(model, inside.slice('/model'.length));
  return join(here, inside === '/' ? 'index.html' : inside);
}

if (resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const [model, port = '8080'] = process.argv.slice(2);
  if (!model || !(await stat(model).catch(() => null))?.isDirectory()) {
    console.error('Give the folder of a model that rope-rewrite wrote: node serve.mjs FOLDER [PORT]');
    process.exit(2);
  }
  const server = await serve(model, Number(port)).catch((error) => {
    console.error(error.code === 'EADDRINUSE' ? `Port ${port} is taken: name another one, node serve.mjs ${model} 8081` : error.message);
    process.exit(1);
  });
  console.log(`http://localhost:${server.address().port}`);
}
