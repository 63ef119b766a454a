// past + new -> present.
#ifndef ROPE_CUDA_CACHE_KERNEL_H_
#define ROPE_CUDA_CACHE_KERNEL_H_

#include <cmath>

#include "rotation.h"

namespace rope::cuda {

// Copies cached tokens unless they are in place, puts the new keys (rotated
// unless the cache is raw) and values behind them, and zeroes what follows. New
// keys, and what rounding took from them, are also left where the attention wants
// them by place.
//
// A ring is read before its rows are overwritten: one run of the kernel without present leaves new
// keys for the attention, and one behind the attention, without them, makes present.
//
// Rows of int8 are rounded by a scale that follows from all of their numbers. These are kept in
// shared memory until every thread has said which the largest ones of its chunks are.
template <typename T>
struct CacheKernel {
  static constexpr int kThreads = 128;
  static constexpr int kRows = 8;  // of one head, by one block

  static int64_t Blocks(const Call<T>& call) {
    return call.batch * call.kv_num_heads * BlocksPerHead(call);
  }

  static int64_t SharedFloats(const Call<T>& call) {
    const int64_t chunks = ChunksOf(call.head_size) + ChunksOf(call.v_head_size);
    return call.caches.kind == CacheKind::kInt8 ? kRows * chunks * (kChunk + 1) : 0;
  }

  template <typename Block>
  ROPE_DEVICE static void Run(Block& block, const Call<T>& call) {
    const Piece piece(call, block.index());
    const int count = piece.rows * piece.chunks();
    // Number x of chunk i stands at x * count + i, the largest magnitude behind them all.
    float* const numbers = block.shared();
    float* const largest = numbers + kChunk * count;
    const bool quantizes = call.caches.kind == CacheKind::kInt8;
    block.ForThreads([&](int thread) {
      for (int i = thread; i < count; i += kThreads) {
        const Chunk chunk = piece.At(call, i);
        if (!chunk.IsNew(call)) {
          Move(call, chunk);
          continue;
        }
        float made[kChunk];
        if (!Make(call, chunk, made)) continue;
        if (!quantizes) {
          StorePresent(call, chunk, made);
          continue;
        }
        ROPE_UNROLL
        for (int x = 0; x < kChunk; ++x) numbers[x * count + i] = made[x];
        largest[i] = LargestOf(made);
      }
    });
    if (!quantizes) return;
    block.ForThreads([&](int thread) {
      for (int i = thread; i < count; i += kThreads) {
        const Chunk chunk = piece.At(call, i);
        if (!chunk.IsNew(call) || !chunk.IsStored(call)) continue;
        const int first = i - static_cast<int>(chunk.c / kChunk);  // of its row
        const float scale = ScaleOf(largest + first, static_cast<int>(ChunksOf(chunk.size)));
        StoreIntegers(call, chunk, numbers + i, count, scale);
      }
    });
  }

 private:
  // Channels [c, c + kChunk) of a row of keys or of values.
  struct Chunk {
    int64_t batch, head;
    int64_t row;    // of present
    int64_t place;  // in the call, of the token that the row then has
    int64_t c, size;
    bool of_keys;

    ROPE_DEVICE bool IsNew(const Call<T>& call) const {
      return place >= 0 && place < call.new_keys;
    }
    // Whether present has a row for a token of the call.
    ROPE_DEVICE bool IsStored(const Call<T>& call) const {
      return Present(call).numbers.data != nullptr && !call.refuses(batch) &&
             call.ring.Keeps(call.past(batch) + place, place, call.new_keys);
    }
    ROPE_DEVICE const CachedTensor& Past(const Call<T>& call) const {
      return of_keys ? call.caches.past_key : call.caches.past_value;
    }
    ROPE_DEVICE const PresentTensor& Present(const Call<T>& call) const {
      return of_keys ? call.caches.present_key : call.caches.present_value;
    }
  };

  // The rows of a block. A row's chunks are those of its key, then those of its value.
  struct Piece {
    int64_t batch, head, first;
    int rows, key_chunks, value_chunks;

    ROPE_DEVICE Piece(const Call<T>& call, int64_t index)
        : batch(index / BlocksPerHead(call) / call.kv_num_heads),
          head(index / BlocksPerHead(call) % call.kv_num_heads),
          first(index % BlocksPerHead(call) * kRows),
          key_chunks(static_cast<int>(ChunksOf(call.head_size))),
          value_chunks(static_cast<int>(ChunksOf(call.v_head_size))) {
      const int64_t left = call.cache_rows() - first;
      rows = static_cast<int>(left < kRows ? left : kRows);
    }

    ROPE_DEVICE int chunks() const { return key_chunks + value_chunks; }

    ROPE_DEVICE Chunk At(const Call<T>& call, int i) const {
      const int64_t past = call.past(batch);
      const int64_t number = first + i / chunks();
      const bool moves = call.caches.move();
      const int64_t index =
          moves ? call.ring.Newest(batch, number, call.total(batch)) : past + number;
      const int chunk = i % chunks();
      const bool of_keys = chunk < key_chunks;
      return {batch,
              head,
              moves ? number : call.ring.Row(batch, index),
              index - past,
              (of_keys ? chunk : chunk - key_chunks) * kChunk,
              of_keys ? call.head_size : call.v_head_size,
              of_keys};
    }
  };

  ROPE_DEVICE_HOST static int64_t BlocksPerHead(const Call<T>& call) {
    return (call.cache_rows() + kRows - 1) / kRows;
  }

  // A chunk of a cached row, or of one that no token has.
  ROPE_DEVICE static void Move(const Call<T>& call, const Chunk& chunk) {
    const CachedTensor& past = chunk.Past(call);
    const PresentTensor& present = chunk.Present(call);
    if (present.moves) {
      WithNumbers<T>(call.caches.kind, [&](auto type) {
        using C = decltype(type);
        alignas(16) C numbers[kChunk] = {};
        if (chunk.place < 0) {
          LoadChunk<C>(Typed<C>(past.numbers).At(chunk.batch, chunk.head, chunk.row), chunk.c,
                       chunk.size, numbers);
        }
        StoreChunk<C>(numbers, Typed<C>(present.numbers).At(chunk.batch, chunk.head, chunk.row),
                      chunk.c, chunk.size);
      });
    }
    if (present.moves_scales && chunk.c == 0) {
      *present.scales.At(chunk.batch, chunk.head, chunk.row) =
          chunk.place < 0 ? *past.scales.At(chunk.batch, chunk.head, chunk.row) : 0.0f;
    }
  }

  // A chunk of a row of this call as present takes it, before it is rounded to the caches' type.
  // False: present does not take it.
  ROPE_DEVICE static bool Make(const Call<T>& call, const Chunk& chunk, float* made) {
    const bool wanted = chunk.IsStored(call);
    const bool left = call.new_key.data != nullptr || call.new_key_residual.data != nullptr;
    if (chunk.of_keys) {
      if (wanted || left) MakeKey(call, chunk, made);
    } else if (wanted) {
      LoadFloats<T>(call.value.At(chunk.batch, chunk.head, chunk.place), chunk.c, chunk.size, made);
    }
    return wanted;
  }

  ROPE_DEVICE static void MakeKey(const Call<T>& call, const Chunk& chunk, float* made) {
    const StoredRow<T> key{call.key.At(chunk.batch, chunk.head, chunk.place), chunk.size};
    if (call.raw_cache) {
      key.Load(chunk.c, made);
    } else {
      RotatedChunk(call, QueryAngles(call, 0, chunk.batch, chunk.place), chunk.c, key, made);
      MultiplyChunk(call.rotation.key_factors, chunk.c, made);
      if (call.fast) {
        ROPE_UNROLL
        for (int i = 0; i < kChunk; ++i) made[i] = RoundedTo<T>(made[i]);
      }
    }
    LeaveKey<T>(made, call.new_key, call.new_key_residual, chunk.batch, chunk.head, chunk.place,
                chunk.c, chunk.size);
  }

  ROPE_DEVICE static void StorePresent(const Call<T>& call, const Chunk& chunk, const float* made) {
    WithNumbers<T>(call.caches.kind, [&](auto type) {
      using C = decltype(type);
      if constexpr (!std::is_same_v<C, int8_t>) {
        StoreFloats<C>(made,
                       Typed<C>(chunk.Present(call).numbers).At(chunk.batch, chunk.head, chunk.row),
                       chunk.c, chunk.size);
      }
    });
  }

  // The largest magnitude of a chunk; infinite if a number is not finite.
  ROPE_DEVICE static float LargestOf(const float* numbers) {
    float largest = 0.0f;
    ROPE_UNROLL
    for (int x = 0; x < kChunk; ++x) {
      const float size = IsFinite(numbers[x]) ? std::fabs(numbers[x]) : __builtin_inff();
      largest = std::fmax(largest, size);
    }
    return largest;
  }

  // Of a row with the largest magnitudes of its chunks. NaN if a number is not finite.
  ROPE_DEVICE static float ScaleOf(const float* of_chunks, int chunks) {
    float largest = 0.0f;
    for (int i = 0; i < chunks; ++i) largest = std::fmax(largest, of_chunks[i]);
    return IsFinite(largest) ? largest / 127.0f : __builtin_nanf("");
  }

  // Writes the numbers that stand `stride` apart as integers times a scale, and the scale.
  ROPE_DEVICE static void StoreIntegers(const Call<T>& call, const Chunk& chunk,
                                        const float* numbers, int stride, float scale) {
    const PresentTensor& present = chunk.Present(call);
    alignas(16) int8_t integers[kChunk] = {};
    if (scale > 0.0f) {
      ROPE_UNROLL
      for (int x = 0; x < kChunk; ++x) {
        // Of numbers so small that a scale has no more digits they could be larger.
        const float steps = std::fmin(127.0f, std::fmax(-127.0f, numbers[x * stride] / scale));
        integers[x] = static_cast<int8_t>(std::nearbyint(steps));
      }
    }
    StoreChunk<int8_t>(integers,
                       Typed<int8_t>(present.numbers).At(chunk.batch, chunk.head, chunk.row),
                       chunk.c, chunk.size);
    if (chunk.c == 0) *present.scales.At(chunk.batch, chunk.head, chunk.row) = scale;
  }
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_CACHE_KERNEL_H_
