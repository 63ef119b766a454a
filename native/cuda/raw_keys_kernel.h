// The keys of a raw cache, rotated once for all query blocks of a call.
#ifndef ROPE_CUDA_RAW_KEYS_KERNEL_H_
#define ROPE_CUDA_RAW_KEYS_KERNEL_H_

#include "scores.h"

namespace rope::cuda {

// Leaves every key of every row by index, and what rounding takes from it, as the attention then
// finds those of this call.
template <typename T>
struct RawKeysKernel {
  static constexpr int kThreads = 128;
  static constexpr int kRows = 32;  // of one head, by one block

  static int64_t Blocks(const Call<T>& call) {
    return call.batch * call.kv_num_heads * BlocksOfHead(call);
  }
  static int64_t SharedFloats(const Call<T>&) { return 0; }

  template <typename Block>
  ROPE_DEVICE static void Run(Block& block, const Call<T>& call) {
    const int64_t head = block.index() / BlocksOfHead(call);
    Task task;
    task.batch = static_cast<int32_t>(head / call.kv_num_heads);
    task.kv_head = static_cast<int32_t>(head % call.kv_num_heads);
    const int64_t first = block.index() % BlocksOfHead(call) * kRows;
    const int64_t total = call.total(task.batch);
    const int chunks = static_cast<int>(ChunksOf(call.head_size));
    block.ForThreads([&](int thread) {
      for (int i = thread; i < kRows * chunks; i += kThreads) {
        const int64_t key = first + i / chunks;
        if (key >= total) return;
        const int64_t c = int64_t{i % chunks} * kChunk;
        alignas(16) float numbers[kChunk];
        KeyChunk<true>(call, task, key, 0, c, numbers);
        LeaveKey<T>(numbers, call.rotated_key, call.rotated_key_residual, task.batch, task.kv_head,
                    key, c, call.head_size);
      }
    });
  }

 private:
  ROPE_DEVICE_HOST static int64_t BlocksOfHead(const Call<T>& call) {
    return (call.max_past + call.new_keys + kRows - 1) / kRows;
  }
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_RAW_KEYS_KERNEL_H_
