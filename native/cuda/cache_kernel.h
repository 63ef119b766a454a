// past + new -> present.
#ifndef ROPE_CUDA_CACHE_KERNEL_H_
#define ROPE_CUDA_CACHE_KERNEL_H_

#include "rotation.h"

namespace rope::cuda {

// Copies cached tokens unless they are in place, puts the new keys (rotated
// unless the cache is raw) and values behind them, and zeroes what follows. New
// keys, and what rounding took from them, are also left where the attention wants
// them by place.
template <typename T>
struct CacheKernel {
  static constexpr int kThreads = 128;
  static constexpr int kRows = 8;  // of one head, by one block

  static int64_t Blocks(const Call<T>& call) {
    return call.batch * call.kv_num_heads * BlocksPerHead(call);
  }

  static int64_t SharedFloats(const Call<T>&) { return 0; }

  template <typename Block>
  ROPE_DEVICE static void Run(Block& block, const Call<T>& call) {
    const int64_t head_index = block.index() / BlocksPerHead(call);
    const int64_t batch = head_index / call.kv_num_heads;
    const int64_t head = head_index % call.kv_num_heads;
    const int64_t begin = block.index() % BlocksPerHead(call) * kRows;
    const int64_t left = call.cache_rows() - begin;
    const int rows = static_cast<int>(left < kRows ? left : kRows);
    const int key_chunks = static_cast<int>(ChunksOf(call.head_size));
    const int chunks = key_chunks + static_cast<int>(ChunksOf(call.v_head_size));
    block.ForThreads([&](int thread) {
      for (int i = thread; i < rows * chunks; i += kThreads) {
        const int64_t row = begin + i / chunks + (call.moves() ? 0 : call.past(batch));
        const int chunk = i % chunks;
        if (chunk < key_chunks) {
          Key(call, batch, head, row, chunk * kChunk);
        } else {
          Value(call, batch, head, row, (chunk - key_chunks) * kChunk);
        }
      }
    });
  }

 private:
  ROPE_DEVICE_HOST static int64_t BlocksPerHead(const Call<T>& call) {
    return (call.cache_rows() + kRows - 1) / kRows;
  }

  ROPE_DEVICE static void Key(const Call<T>& call, int64_t batch, int64_t head, int64_t row,
                              int64_t c) {
    const int64_t place = row - call.past(batch);
    alignas(16) T chunk[kChunk] = {};
    if (place < 0 || place >= call.new_keys) {
      if (!call.move_keys) return;
      if (place < 0) LoadChunk<T>(call.past_key.At(batch, head, row), c, call.head_size, chunk);
      return StoreChunk<T>(chunk, call.present_key.At(batch, head, row), c, call.head_size);
    }
    const T* key = call.key.At(batch, head, place);
    if (call.raw_cache) {
      LoadChunk<T>(key, c, call.head_size, chunk);
    } else {
      float rotated[kChunk];
      RotatedChunk(call, AngleRow(call, call.query_angles, 0, batch, place), c, key, rotated);
      MultiplyChunk(call.rotation.key_factors, c, rotated);
      ROPE_UNROLL
      for (int i = 0; i < kChunk; ++i) chunk[i] = FromFloat<T>(rotated[i]);
      if (call.new_key_residual.data != nullptr) {
        alignas(16) T residuals[kChunk];
        ROPE_UNROLL
        for (int i = 0; i < kChunk; ++i) residuals[i] = ResidualOf(rotated[i], chunk[i]);
        StoreChunk<T>(residuals, call.new_key_residual.At(batch, head, place), c, call.head_size);
      }
    }
    if (call.new_key.data != nullptr) {
      StoreChunk<T>(chunk, call.new_key.At(batch, head, place), c, call.head_size);
    }
    if (call.present_key.data != nullptr) {
      StoreChunk<T>(chunk, call.present_key.At(batch, head, row), c, call.head_size);
    }
  }

  ROPE_DEVICE static void Value(const Call<T>& call, int64_t batch, int64_t head, int64_t row,
                                int64_t c) {
    if (call.present_value.data == nullptr) return;
    const int64_t place = row - call.past(batch);
    const bool is_new = place >= 0 && place < call.new_keys;
    if (!is_new && !call.move_values) return;
    alignas(16) T chunk[kChunk] = {};
    if (is_new) {
      LoadChunk<T>(call.value.At(batch, head, place), c, call.v_head_size, chunk);
    } else if (place < 0) {
      LoadChunk<T>(call.past_value.At(batch, head, row), c, call.v_head_size, chunk);
    }
    StoreChunk<T>(chunk, call.present_value.At(batch, head, row), c, call.v_head_size);
  }
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_CACHE_KERNEL_H_
