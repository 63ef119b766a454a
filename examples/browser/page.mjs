// What index.html does: it loads the model that the server has under model/, and continues a text with it.
import { Template } from '@huggingface/jinja';
import { Tokenizer } from '@huggingface/tokenizers';

const page = Object.fromEntries([...document.querySelectorAll('[id]')].map((element) => [element.id, element]));
const PAST = 'past_key_values.';
const WEIGHTS = ['model.onnx.data', 'model.onnx_data']; // what exporters call the file of the weights
const arrays = { float32: Float32Array, float16: globalThis.Float16Array ?? Uint16Array };

function say(text, state) {
  page.state.textContent = text;
  page.state.dataset.state = state;
}

// A mistake's message is for the reader; any other error's is the runtime's.
class Mistake extends Error {}

async function file(name) {
  const answer = await fetch('model/' + name);
  return answer.ok ? answer : null;
}

async function json(name) {
  const answer = await file(name);
  return answer ? answer.json() : null;
}

// ?backend=wasm or ?backend=webgpu, and ?threads=2, choose what the page otherwise chooses itself.
const query = new URLSearchParams(location.search);

// WebGPU where the browser has an adapter.
async function backend() {
  const wanted = query.get('backend');
  if (wanted === 'wasm') return 'wasm';
  if (await navigator.gpu?.requestAdapter()) return 'webgpu';
  if (wanted === 'webgpu') throw new Mistake('This browser has no WebGPU adapter. Load the page without ?backend=webgpu.');
  return 'wasm';
}

async function load() {
  const sizes = await Promise.all(['model.onnx', ...WEIGHTS].map(async (name) => {
    const answer = await fetch('model/' + name, { method: 'HEAD' });
    return answer.ok ? Number(answer.headers.get('Content-Length')) : 0;
  }));
  if (!sizes[0]) throw new Mistake('There is no model: the server finds no model.onnx. Start it with a folder that rope-rewrite wrote: node serve.mjs FOLDER');
  const tokenizer = await json('tokenizer.json');
  if (!tokenizer) throw new Mistake('This is the wrong folder: it has a model.onnx, but no tokenizer.json beside it. Give the folder of a language model.');
  const config = { ...await json('config.json'), ...await json('generation_config.json') };
  const words = await json('tokenizer_config.json') ?? {};
  const template = await (await file('chat_template.jinja'))?.text() ?? words.chat_template;

  const megabytes = Math.round(sizes.reduce((a, b) => a + b) / 1e6);
  const provider = await backend();
  say(`Loading ${megabytes} MB …`, 'loading');
  const ort = await import('onnxruntime-web/' + provider);
  if (query.has('threads')) ort.env.wasm.numThreads = Number(query.get('threads'));
  const externalData = WEIGHTS.filter((_, i) => sizes[i + 1]).map((path) => ({ path, data: 'model/' + path }));
  const session = await ort.InferenceSession.create('model/model.onnx', {
    executionProviders: [provider],
    externalData,
    // A cache that stays on the GPU is not copied for each token.
    preferredOutputLocation: provider === 'webgpu' ? 'gpu-buffer' : 'cpu',
  });
  const known = new Set(['input_ids', 'attention_mask', 'position_ids']);
  const strange = session.inputNames.find((name) => !known.has(name) && !name.startsWith(PAST));
  if (strange || !session.inputNames.includes('input_ids')) {
    throw new Mistake(`This page cannot run the model: ${strange ? `it has the input ${strange}` : 'it has no input input_ids'}. Give a decoder with a growing cache.`);
  }
  return {
    ort, session, provider,
    tokenizer: new Tokenizer(tokenizer, words),
    template: template && new Template(template),
    words,
    ends: [config.eos_token_id ?? []].flat(),
    context: config.max_position_embeddings ?? Infinity,
  };
}

function promptIds(model, text, chat) {
  if (!chat) return model.tokenizer.encode(text).ids;
  const rendered = model.template.render({
    messages: [{ role: 'user', content: text }], add_generation_prompt: true,
    bos_token: model.words.bos_token, eos_token: model.words.eos_token,
  });
  return model.tokenizer.encode(rendered, { add_special_tokens: false }).ids;
}

// Yields one token after another, until the model ends its answer.
async function* generate({ ort, session, ends, context }, ids, temperature) {
  const whole = (values) => new ort.Tensor('int64', BigInt64Array.from(values, BigInt), [1, values.length]);
  let cache = {};
  for (const { name, type, shape } of session.inputMetadata) {
    if (name.startsWith(PAST)) cache[name] = new ort.Tensor(type, new arrays[type](0), [1, shape[1], 0, shape[3]]);
  }
  let held = 0;
  try {
    for (let step = ids; held + step.length <= context;) {
      const feeds = { input_ids: whole(step), ...cache };
      const end = held + step.length;
      if (session.inputNames.includes('attention_mask')) feeds.attention_mask = whole(new Array(end).fill(1));
      if (session.inputNames.includes('position_ids')) feeds.position_ids = whole(step.map((_, i) => held + i));
      const { logits, ...present } = await session.run(feeds);
      for (const tensor of Object.values(cache)) tensor.dispose();
      cache = Object.fromEntries(Object.keys(cache).map((name) => [name, present[name.replace('past_key_values', 'present')]]));
      held = end;
      const token = choose((await logits.getData(true)).subarray(-logits.dims.at(-1)), temperature);
      if (ends.includes(token)) return;
      yield token;
      step = [token];
    }
  } finally {
    for (const tensor of Object.values(cache)) tensor.dispose();
  }
}

// The best token, or at a temperature one drawn by its probability.
function choose(logits, temperature) {
  let best = 0;
  for (let i = 1; i < logits.length; i++) if (logits[i] > logits[best]) best = i;
  if (temperature === 0) return best;
  const weights = Float64Array.from(logits, (x) => Math.exp((x - logits[best]) / temperature));
  let left = Math.random() * weights.reduce((a, b) => a + b);
  return Math.max(0, weights.findIndex((w) => (left -= w) < 0));
}

async function answer(model, stopped) {
  const ids = promptIds(model, page.prompt.value, page.chat.checked);
  if (ids.length === 0) throw new Mistake('The prompt is empty: write a text to continue.');
  if (ids.length > model.context) throw new Mistake(`The prompt has ${ids.length} tokens; the model's context is ${model.context}.`);
  const made = [];
  const begun = performance.now();
  let first = begun;
  say(`Reading ${ids.length} tokens …`, 'busy');
  await painted();
  for await (const token of generate(model, ids, Number(page.temperature.value))) {
    if (made.length === 0) first = performance.now();
    made.push(token);
    page.text.textContent = model.tokenizer.decode(made, { skip_special_tokens: true });
    page.text.dataset.ids = made;
    if (made.length > 1) say(`${rate(made.length - 1, first)} tokens per second`, 'busy');
    if (stopped() || made.length >= Number(page.most.value)) break;
    await painted(); // WebAssembly computes in this thread, which also shows the text
  }
  const reading = ((first - begun) / 1000).toFixed(1);
  say(`${made.length} tokens, ${rate(made.length - 1, first)} per second; ${ids.length} tokens of the prompt in ${reading} s`, 'ready');
}

// What the model runs on, and why it is not something quicker.
function where({ ort, provider }) {
  if (provider === 'webgpu') return 'on the GPU';
  const threads = ort.env.wasm.numThreads;
  const reasons = [];
  if (query.get('backend') !== 'wasm') reasons.push('the browser has no WebGPU adapter');
  if (!crossOriginIsolated) reasons.push('the server does not send the headers that more threads need: use serve.mjs');
  return `on the CPU with ${threads} thread${threads === 1 ? '' : 's'}${reasons.length ? ` (${reasons.join('; ')})` : ''}`;
}

function rate(tokens, begun) {
  return (1000 * Math.max(0, tokens) / (performance.now() - begun)).toFixed(1);
}

function painted() {
  return new Promise((done) => setTimeout(done));
}

function explain(error) {
  if (error instanceof Mistake) return error.message;
  const text = String(error?.message ?? error).trim();
  if (/_inlfunc_/.test(text)) { // a node of a fallback
    return `The GPU cannot run the model's fallback: write the model with --target onnx, or load the page with ?backend=wasm. (${text})`;
  }
  // The runtime throws a bare number where C++ found no memory.
  if (typeof error === 'number' || error instanceof RangeError || /memory|bad_alloc|allocat|OOM/i.test(text)) {
    return `There is not enough memory for this model. A page has at most 4 GB: close others, or give a model with smaller weights. (${text})`;
  }
  return text;
}

try {
  const model = await load();
  say(`Ready, ${where(model)}.`, 'ready');
  page.chat.checked = page.chat.checked && Boolean(model.template);
  page.chat.disabled = !model.template;
  page.generate.disabled = false;

  let stop = false;
  page.stop.onclick = () => { stop = true; };
  page.form.onsubmit = async (event) => {
    event.preventDefault();
    page.text.textContent = page.text.dataset.ids = '';
    [stop, page.generate.disabled, page.stop.disabled] = [false, true, false];
    try {
      await answer(model, () => stop);
    } catch (error) {
      say(explain(error), 'failed');
    }
    [page.generate.disabled, page.stop.disabled] = [false, true];
  };
} catch (error) {
  say(explain(error), 'failed');
}
