// The kernels behind a plain C function, for compare.py: one call on tensors
// that lie where the kernels read them. RunAttention is linked in, on a GPU
// (device_attention.cc) or emulated (test/emulated_attention.cc).
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "attention.h"
#include "device_numbers.h"

namespace {

// The same in compare.py. Lists without elements are null.
struct BenchCall {
  int64_t element;                        // 0 float32, 1 float16, 2 bfloat16
  int64_t batch, length, past, capacity;  // capacity 0: present is past + length long
  int64_t num_heads, kv_num_heads, head_size;
  const void *query, *key, *value, *past_key, *past_value;  // [batch, heads, length, head_size]
  void *output, *present_key, *present_value;
  const float* frequencies;
  int64_t pairs;
  const int64_t* band_starts;
  const double* band_offsets;
  int64_t bands;
  const int64_t* documents;  // [past + length]
  int64_t anchor, fast, window;
  int64_t device_inputs;  // documents lie on the device, and a kernel plans the call there
};

class MallocHost : public rope::Host {
 public:
  void ParallelFor(size_t count, void (*fn)(void*, size_t), void* data) override {
    for (size_t i = 0; i < count; ++i) fn(data, i);
  }
  void* Allocate(size_t bytes) override { return std::malloc(bytes); }
  void Free(void* memory) override { std::free(memory); }
};

template <typename T>
bool Run(const BenchCall& c) {
  rope::AttentionParams params;
  params.num_heads = c.num_heads;
  params.kv_num_heads = c.kv_num_heads;
  params.frequencies.assign(c.frequencies, c.frequencies + c.pairs);
  params.fast = c.fast != 0;
  params.window = c.window;
  if (c.bands > 0) params.bands.clear();
  for (int64_t b = 0; b < c.bands; ++b) {
    params.bands.push_back({c.band_starts[b], 1, c.band_offsets[b]});
  }
  if (c.anchor != 0) params.document_mask = rope::DocumentMask::kAnchor;

  rope::AttentionArgs<T> args;
  args.batch = c.batch;
  args.length = args.new_keys = c.length;
  args.max_past = c.past;
  args.head_size = args.v_head_size = c.head_size;
  const auto rows = [&](auto* data, int64_t heads, int64_t count) {
    return rope::Rows<std::remove_pointer_t<decltype(data)>>{data, heads * count * c.head_size,
                                                             count * c.head_size, c.head_size};
  };
  const auto in = [](const void* p) { return static_cast<const T*>(p); };
  const int64_t cached = c.capacity > 0 ? c.capacity : c.past;
  args.present_rows = c.capacity > 0 ? c.capacity : c.past + c.length;
  args.query = rows(in(c.query), c.num_heads, c.length);
  args.key = rows(in(c.key), c.kv_num_heads, c.length);
  args.value = rows(in(c.value), c.kv_num_heads, c.length);
  args.past_key = rows(in(c.past_key), c.kv_num_heads, cached);
  args.past_value = rows(in(c.past_value), c.kv_num_heads, cached);
  args.output = rows(static_cast<T*>(c.output), c.num_heads, c.length);
  args.present_key = rows(static_cast<T*>(c.present_key), c.kv_num_heads, args.present_rows);
  args.present_value = rows(static_cast<T*>(c.present_value), c.kv_num_heads, args.present_rows);
  args.documents = c.documents;
  MallocHost host;
  rope::cuda::test::g_device_numbers = c.device_inputs != 0;
  return rope::RunAttention(params, args, host);
}

}  // namespace

// Runs one call, without waiting for its end. On failure writes a sentence.
extern "C" __attribute__((visibility("default"))) bool RopeBenchRun(const BenchCall* call,
                                                                    char* error, size_t size) {
  try {
    const bool done = call->element == 0   ? Run<float>(*call)
                      : call->element == 1 ? Run<rope::Float16>(*call)
                                           : Run<rope::BFloat16>(*call);
    if (!done) std::snprintf(error, size, "out of memory");
    return done;
  } catch (const std::exception& failure) {
    std::snprintf(error, size, "%s", failure.what());
    return false;
  }
}
