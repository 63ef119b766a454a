// The calls of a case in JavaScript, for node.mjs and the page of browser.mjs.
const ARRAYS = {
  float32: Float32Array,
  float16: globalThis.Float16Array ?? Uint16Array,
  int64: BigInt64Array,
  int32: Int32Array,
};

// The bytes of each output of the calls, as calls.json orders them. data is calls.bin.
export async function runCalls(ort, session, calls, data) {
  const outputs = [];
  for (const call of calls) {
    const feeds = {};
    for (const [name, where] of Object.entries(call.inputs)) {
      feeds[name] = new ort.Tensor(where.type, new ARRAYS[where.type](data.slice(where.at, where.at + where.bytes)), where.shape);
    }
    const results = await session.run(feeds);
    for (const [name, where] of Object.entries(call.outputs)) {
      const { type, dims, data } = results[name];
      if (type !== where.type || dims.join() !== where.shape.join()) {
        throw new Error(`${call.name}: ${name} is ${type} [${dims}] instead of ${where.type} [${where.shape}]`);
      }
      outputs.push(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
    }
  }
  return outputs;
}

// GroupQueryAttention knows no padding on the left: its models are asked the other calls.
export function padded(call, data) {
  const where = call.inputs.attention_mask;
  return where !== undefined && new BigInt64Array(data.slice(where.at, where.at + where.bytes)).some((n) => n === 0n);
}
