// Rows of keys and values as numbers, whatever type their tensor has.
#ifndef ROPE_CUDA_CACHED_H_
#define ROPE_CUDA_CACHED_H_

#include <type_traits>

#include "call.h"
#include "element.h"

namespace rope::cuda {

// Whether all chunks of all rows are aligned to 16 bytes.
template <typename V>
ROPE_DEVICE bool StandsInChunks(const Rows<V>& rows, int64_t size) {
  return (reinterpret_cast<uintptr_t>(rows.data) % 16 |
          static_cast<uintptr_t>((rows.batch_stride | rows.head_stride | rows.row_stride | size) %
                                 kChunk)) == 0;
}

// The rows of a cache as those of numbers of one type.
template <typename C>
ROPE_DEVICE Rows<const C> Typed(const Rows<const void>& rows) {
  return {static_cast<const C*>(rows.data), rows.batch_stride, rows.head_stride, rows.row_stride};
}
template <typename C>
ROPE_DEVICE Rows<C> Typed(const Rows<void>& rows) {
  return {static_cast<C*>(rows.data), rows.batch_stride, rows.head_stride, rows.row_stride};
}

// Calls use(C()) with the type of a kind's numbers. Which it is, is known when a kernel runs: one
// compiled for each pair of types would take too long to build.
template <typename T, typename Use>
ROPE_DEVICE void WithNumbers(CacheKind kind, const Use& use) {
  if (kind == CacheKind::kSame) return use(T());
  if constexpr (std::is_same_v<T, float>) {
    if (kind == CacheKind::kHalf) return use(Half());
    if (kind == CacheKind::kBFloat) return use(BFloat());
  }
  use(int8_t());
}

// A row of a head. T is the type of the call's tensors.
template <typename T>
struct StoredRow {
  const void* numbers = nullptr;
  int64_t size = 0;  // channels
  CacheKind kind = CacheKind::kSame;
  float scale = 1;  // of int8

  // The channels [c, c + kChunk), zeros behind the head's end.
  ROPE_DEVICE void Load(int64_t c, float* out) const {
    WithNumbers<T>(kind, [&](auto type) {
      using C = decltype(type);
      LoadFloats<C>(static_cast<const C*>(numbers), c, size, out);
      if constexpr (std::is_same_v<C, int8_t>) {
        ROPE_UNROLL
        for (int i = 0; i < kChunk; ++i) out[i] *= scale;
      }
    });
  }

  ROPE_DEVICE float At(int64_t c) const {
    float number = 0.0f;
    WithNumbers<T>(kind, [&](auto type) {
      using C = decltype(type);
      number = ToFloat(static_cast<const C*>(numbers)[c]);
      if constexpr (std::is_same_v<C, int8_t>) number *= scale;
    });
    return number;
  }
};

// That of the token at an index.
template <typename T>
ROPE_DEVICE StoredRow<T> CachedRow(const Call<T>& call, const CachedTensor& cached, int64_t batch,
                                   int64_t head, int64_t index, int64_t size) {
  StoredRow<T> row;
  row.size = size;
  row.kind = call.caches.kind;
  const int64_t at = call.ring.CachedRow(batch, index);
  WithNumbers<T>(row.kind, [&](auto type) {
    row.numbers = Typed<decltype(type)>(cached.numbers).At(batch, head, at);
  });
  if (cached.scales.data != nullptr) row.scale = *cached.scales.At(batch, head, at);
  return row;
}

// Leaves the channels [c, c + kChunk) of a key, and what rounding takes from them, in rows that may
// be absent.
template <typename T>
ROPE_DEVICE void LeaveKey(const float* numbers, const Rows<T>& keys, const Rows<T>& residuals,
                          int64_t batch, int64_t head, int64_t row, int64_t c, int64_t size) {
  if (keys.data != nullptr) StoreFloats<T>(numbers, keys.At(batch, head, row), c, size);
  if (residuals.data == nullptr) return;
  alignas(16) T rest[kChunk];
  ROPE_UNROLL
  for (int i = 0; i < kChunk; ++i) rest[i] = ResidualOf(numbers[i], FromFloat<T>(numbers[i]));
  StoreChunk<T>(rest, residuals.At(batch, head, row), c, size);
}

}  // namespace rope::cuda

#endif  // ROPE_CUDA_CACHED_H_
