// Element types of tensors. Every number is read as float32 and written rounded
// to nearest even; the kernels compute in float32.
#ifndef ROPE_CUDA_ELEMENT_H_
#define ROPE_CUDA_ELEMENT_H_

#include <cstddef>
#include <cstdint>

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

// Numbers that are loaded and stored together.
inline constexpr int kChunk = 8;

// A chunk in 16-byte pieces where both places are aligned so.
template <typename V>
ROPE_DEVICE void CopyChunk(const V* from, V* to) {
#ifdef __CUDACC__
  if ((reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to)) % 16 == 0) {
    ROPE_UNROLL
    for (size_t i = 0; i < kChunk * sizeof(V) / 16; ++i) {
      reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
    }
    return;
  }
#endif
  ROPE_UNROLL
  for (int i = 0; i < kChunk; ++i) to[i] = from[i];
}

}  // namespace rope::cuda

#endif  // ROPE_CUDA_ELEMENT_H_
