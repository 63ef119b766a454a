// past + new -> present.
#ifndef ROPE_CUDA_CACHE_KERNEL_H_
#define ROPE_CUDA_CACHE_KERNEL_H_

#include "rotation.h"

namespace rope::cuda {

// Copies cached tokens unless they are in place, puts the new keys (rotated
// unless the cache is raw) and values behind them, and zeroes what follows. New
// keys are also left as float32 where the attention wants them so.
template <typename T>
struct CacheKernel {
  static constexpr int kThreads = 128;
  static constexpr int kRows = 8;  // of one head, by one block

  static int64_t BlocksPerHead(const Call<T>& call) {
    return (call.cache_rows() + kRows - 1) / kRows;
  }
  static int64_t Blocks(const Call<T>& call) {
    return call.batch * call.kv_num_heads * BlocksPerHead(call);
  }

  static int64_t SharedFloats(const Call<T>&) { return 0; }

  template <typename Block>
  ROPE_DEVICE static void Run(Block& block, const Call<T>& call) {
    const int64_t blocks_per_head = (call.cache_rows() + kRows - 1) / kRows;
    const int64_t head_index = block.index() / blocks_per_head;
    const int64_t batch = head_index / call.kv_num_heads;
    const int64_t head = head_index % call.kv_num_heads;
    const int64_t begin = block.index() % blocks_per_head * kRows;
    const int64_t left = call.cache_rows() - begin;
    const int64_t rows = left < kRows ? left : kRows;
    const int64_t channels = call.head_size + call.v_head_size;
    block.ForThreads([&](int thread) {
      for (int64_t i = thread; i < rows * channels; i += kThreads) {
        const int64_t row = begin + i / channels + (call.moves() ? 0 : call.past(batch));
        const int64_t c = i % channels;
        if (c < call.head_size) {
          Key(call, batch, head, row, c);
        } else {
          Value(call, batch, head, row, c - call.head_size);
        }
      }
    });
  }

 private:
  ROPE_DEVICE static void Key(const Call<T>& call, int64_t batch, int64_t head, int64_t row,
                              int64_t c) {
    const int64_t place = row - call.past(batch);
    const bool kept = call.present_key.data != nullptr;
    if (place < 0) {
      if (call.move_keys) {
        call.present_key.At(batch, head, row)[c] = call.past_key.At(batch, head, row)[c];
      }
    } else if (place >= call.length) {
      if (call.move_keys) call.present_key.At(batch, head, row)[c] = FromFloat<T>(0.0f);
    } else {
      const T* key = call.key.At(batch, head, place);
      const auto channel = [&](int64_t x) { return ToFloat(key[x]); };
      float turned =
          call.raw_cache ? channel(c) : Turned(call, TableRow(call, 0, batch, place), c, channel);
      if (call.fast) turned = RoundedTo<T>(turned);
      if (call.new_key.data != nullptr) call.new_key.At(batch, head, place)[c] = turned;
      if (kept) call.present_key.At(batch, head, row)[c] = FromFloat<T>(turned);
    }
  }

  ROPE_DEVICE static void Value(const Call<T>& call, int64_t batch, int64_t head, int64_t row,
                                int64_t c) {
    if (call.present_value.data == nullptr) return;
    const int64_t place = row - call.past(batch);
    T* out = call.present_value.At(batch, head, row) + c;
    if (place >= 0 && place < call.length) {
      *out = call.value.At(batch, head, place)[c];
    } else if (call.move_values) {
      *out = place < 0 ? call.past_value.At(batch, head, row)[c] : FromFloat<T>(0.0f);
    }
  }
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_CACHE_KERNEL_H_
