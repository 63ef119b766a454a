// Element types of tensors. Every number is read as float32 and written rounded
// to nearest even; the kernels compute in float32.
#ifndef ROPE_CUDA_ELEMENT_H_
#define ROPE_CUDA_ELEMENT_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "device.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#else
#include "hwy/base.h"
#endif

namespace rope::cuda {

// The 16-bit types as they stand in memory, the same for every compiler.
struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};

ROPE_DEVICE float ToFloat(float x) { return x; }
ROPE_DEVICE float ToFloat(Half x) {
#ifdef __CUDACC__
  return __half2float(__ushort_as_half(x.bits));
#else
  return hwy::ConvertScalarTo<float>(hwy::BitCastScalar<hwy::float16_t>(x.bits));
#endif
}
ROPE_DEVICE float ToFloat(BFloat x) {
#ifdef __CUDACC__
  return __bfloat162float(__ushort_as_bfloat16(x.bits));
#else
  return hwy::ConvertScalarTo<float>(hwy::BitCastScalar<hwy::bfloat16_t>(x.bits));
#endif
}

ROPE_DEVICE float ToFloat(int8_t x) { return static_cast<float>(x); }

template <typename T>
ROPE_DEVICE T FromFloat(float x);
template <>
ROPE_DEVICE float FromFloat<float>(float x) {
  return x;
}
template <>
ROPE_DEVICE Half FromFloat<Half>(float x) {
#ifdef __CUDACC__
  return {__half_as_ushort(__float2half_rn(x))};
#else
  return {hwy::BitCastScalar<uint16_t>(hwy::ConvertScalarTo<hwy::float16_t>(x))};
#endif
}
template <>
ROPE_DEVICE BFloat FromFloat<BFloat>(float x) {
#ifdef __CUDACC__
  return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
#else
  return {hwy::BitCastScalar<uint16_t>(hwy::ConvertScalarTo<hwy::bfloat16_t>(x))};
#endif
}

template <typename T>
ROPE_DEVICE float RoundedTo(float x) {
  return ToFloat(FromFloat<T>(x));
}

template <typename T>
ROPE_DEVICE bool IsFinite(T x) {
  const float v = ToFloat(x);
  return v - v == 0.0f;
}

// What rounding to T leaves of a number, itself rounded; nothing of infinities.
template <typename T>
ROPE_DEVICE T ResidualOf(float x, T rounded) {
  return FromFloat<T>(IsFinite(rounded) ? x - ToFloat(rounded) : 0.0f);
}

// Two neighbouring numbers as one operand of mma: the first in the low half.
template <typename T>
ROPE_DEVICE uint32_t Pair(T low, T high) {
  return static_cast<uint32_t>(low.bits) | static_cast<uint32_t>(high.bits) << 16;
}
template <typename T>
ROPE_DEVICE T LowOf(uint32_t pair) {
  return {static_cast<uint16_t>(pair & 0xffffu)};
}
template <typename T>
ROPE_DEVICE T HighOf(uint32_t pair) {
  return {static_cast<uint16_t>(pair >> 16)};
}

// Two numbers rounded to T, in one instruction on a device.
template <typename T>
ROPE_DEVICE uint32_t RoundedPair(float low, float high) {
  return Pair(FromFloat<T>(low), FromFloat<T>(high));
}
#ifdef __CUDACC__
template <>
ROPE_DEVICE uint32_t RoundedPair<Half>(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return static_cast<uint32_t>(__half_as_ushort(pair.x)) |
         static_cast<uint32_t>(__half_as_ushort(pair.y)) << 16;
}
template <>
ROPE_DEVICE uint32_t RoundedPair<BFloat>(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return static_cast<uint32_t>(__bfloat16_as_ushort(pair.x)) |
         static_cast<uint32_t>(__bfloat16_as_ushort(pair.y)) << 16;
}
#endif

// 2 to the power of x, to about two units in the last place.
ROPE_DEVICE float PowerOfTwo(float x) {
#ifdef __CUDACC__
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return std::exp2(x);
#endif
}

// Writes two numbers to a place that is aligned to both.
template <typename T>
ROPE_DEVICE void StorePair(float low, float high, T* to) {
#ifdef __CUDACC__
  if constexpr (sizeof(T) == 2) {
    *reinterpret_cast<uint32_t*>(to) = RoundedPair<T>(low, high);
  } else {
    *reinterpret_cast<float2*>(to) = make_float2(low, high);
  }
#else
  to[0] = FromFloat<T>(low);
  to[1] = FromFloat<T>(high);
#endif
}

// Numbers that are loaded and stored together.
inline constexpr int kChunk = 8;

template <typename N>
ROPE_DEVICE_HOST constexpr N ChunksOf(N channels) {
  return (channels + kChunk - 1) / kChunk;
}

// A chunk in pieces of 16 bytes, or of all its 8, which both places are aligned to.
template <typename V>
ROPE_DEVICE void CopyAligned(const V* from, V* to) {
#ifdef __CUDACC__
  using Piece = std::conditional_t<sizeof(V) == 1, uint2, uint4>;
  static_assert(kChunk * sizeof(V) % sizeof(Piece) == 0);
  ROPE_UNROLL
  for (size_t i = 0; i < kChunk * sizeof(V) / sizeof(Piece); ++i) {
    reinterpret_cast<Piece*>(to)[i] = reinterpret_cast<const Piece*>(from)[i];
  }
#else
  for (int i = 0; i < kChunk; ++i) to[i] = from[i];
#endif
}

// The same wherever they stand.
template <typename V>
ROPE_DEVICE void CopyChunk(const V* from, V* to) {
  constexpr size_t kAligned = sizeof(V) == 1 ? 8 : 16;
  if ((reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to)) % kAligned == 0) {
    return CopyAligned<V>(from, to);
  }
  ROPE_UNROLL
  for (int i = 0; i < kChunk; ++i) to[i] = from[i];
}

// The channels [c, c + kChunk) of a head of `size` channels; zeros behind its end.
template <typename T>
ROPE_DEVICE void LoadChunk(const T* head, int64_t c, int64_t size, T* to) {
  if (c + kChunk <= size) return CopyChunk<T>(head + c, to);
  ROPE_UNROLL
  for (int i = 0; i < kChunk; ++i) to[i] = c + i < size ? head[c + i] : T();
}

// The same the other way; what lies behind the head's end is left as it is.
template <typename T>
ROPE_DEVICE void StoreChunk(const T* from, T* head, int64_t c, int64_t size) {
  if (c + kChunk <= size) return CopyChunk<T>(from, head + c);
  ROPE_UNROLL
  for (int i = 0; i < kChunk; ++i) {
    if (c + i < size) head[c + i] = from[i];
  }
}

// The same with float32 on the other side.
template <typename T>
ROPE_DEVICE void LoadFloats(const T* head, int64_t c, int64_t size, float* to) {
  alignas(16) T chunk[kChunk];
  LoadChunk<T>(head, c, size, chunk);
  ROPE_UNROLL
  for (int i = 0; i < kChunk; ++i) to[i] = ToFloat(chunk[i]);
}
template <typename T>
ROPE_DEVICE void StoreFloats(const float* from, T* head, int64_t c, int64_t size) {
  alignas(16) T chunk[kChunk];
  ROPE_UNROLL
  for (int i = 0; i < kChunk; ++i) chunk[i] = FromFloat<T>(from[i]);
  StoreChunk<T>(chunk, head, c, size);
}

}  // namespace rope::cuda

#endif  // ROPE_CUDA_ELEMENT_H_
