// Element types of tensors: every one is read as float32 and written rounded
// to nearest even, so that the kernels compute in float32 alone.
#if defined(ROPE_ELEMENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_ELEMENT_INL_H_
#undef ROPE_ELEMENT_INL_H_
#else
#define ROPE_ELEMENT_INL_H_
#endif

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "attention.h"
#include "vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

template <typename T>
inline constexpr bool kIsFloat = std::is_same_v<T, float>;

// Caches of int8 have a scale for each row, which stands apart: an integer is read as it is.
template <typename T>
inline constexpr bool kIsInt8 = std::is_same_v<T, int8_t>;

template <typename T>
HWY_INLINE float ToFloat(T x) {
  if constexpr (kIsInt8<T>) {
    return static_cast<float>(x);
  } else {
    return hwy::ConvertScalarTo<float>(x);
  }
}
template <typename T>
HWY_INLINE T FromFloat(float x) {
  return hwy::ConvertScalarTo<T>(x);
}

// float16 to float32. Highway's conversion takes infinity and NaN for numbers
// where the CPU has none of its own.
template <class D>
HWY_INLINE hn::Vec<D> Widen(D d, hn::Vec<hn::Rebind<Float16, D>> v) {
#if HWY_TARGET <= HWY_AVX2 || HWY_TARGET_IS_NEON
  return hn::PromoteTo(d, v);
#else
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::PromoteTo(du, hn::BitCast(hn::Rebind<uint16_t, D>(), v));
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000u)));
  const auto shifted = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7FFFu)));
  // The exponent's bias differs by 112; a product is exact for subnormals too.
  const auto number = hn::Mul(hn::BitCast(d, shifted), hn::Set(d, 0x1p112f));
  const auto infinite = hn::Ge(number, hn::Set(d, 65536.0f));
  const auto exponent = hn::IfThenElseZero(infinite, hn::BitCast(d, hn::Set(du, 0x7F800000u)));
  return hn::Or(hn::Or(number, exponent), hn::BitCast(d, sign));
#endif
}

template <class D>
HWY_INLINE hn::Vec<D> Widen(D d, hn::Vec<hn::Rebind<BFloat16, D>> v) {
  return hn::PromoteTo(d, v);
}

template <class D>
HWY_INLINE hn::Vec<D> Widen(D d, hn::Vec<hn::Rebind<int8_t, D>> v) {
  return hn::ConvertTo(d, hn::PromoteTo(hn::RebindToSigned<D>(), v));
}

// A vector of numbers of type T as float32. D is a float32 tag.
template <class D, typename T>
HWY_INLINE hn::Vec<D> LoadFloats(D d, const T* from) {
  if constexpr (kIsFloat<T>) {
    return hn::LoadU(d, from);
  } else {
    return Widen(d, hn::LoadU(hn::Rebind<T, D>(), from));
  }
}

// The first n of them, the others zero.
template <class D, typename T>
HWY_INLINE hn::Vec<D> LoadFloatsN(D d, const T* from, size_t n) {
  if constexpr (kIsFloat<T>) {
    return hn::LoadN(d, from, n);
  } else {
    return Widen(d, hn::LoadN(hn::Rebind<T, D>(), from, n));
  }
}

// float32 rounded to 16 bits. The CPU's own rounding to bfloat16, which DemoteTo is
// where there is one, makes zero of the smallest numbers.
template <typename T, class D>
HWY_INLINE hn::Vec<hn::Rebind<T, D>> Narrow(D d, hn::Vec<D> v) {
  if constexpr (kHasPairs && std::is_same_v<T, BFloat16>) {
    const hn::RebindToUnsigned<D> du;
    const auto bits = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFFu)));
    const auto nan = hn::Or(bits, hn::Set(du, 0x400000u));
    const auto out = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), nan, rounded);
    const hn::Rebind<uint16_t, D> dh;
    return hn::BitCast(hn::Rebind<T, D>(), hn::TruncateTo(dh, hn::ShiftRight<16>(out)));
  } else {
    (void)d;
    return hn::DemoteTo(hn::Rebind<T, D>(), v);
  }
}

template <class D, typename T>
HWY_INLINE void StoreFloats(hn::Vec<D> v, D d, T* to) {
  if constexpr (kIsFloat<T>) {
    hn::StoreU(v, d, to);
  } else {
    hn::StoreU(Narrow<T>(d, v), hn::Rebind<T, D>(), to);
  }
}

// Even elements into `a`, odd ones into `b`.
template <typename T>
HWY_INLINE void LoadFloatPairs(DF d, const T* from, VF& a, VF& b) {
  if constexpr (kIsFloat<T>) {
    hn::LoadInterleaved2(d, from, a, b);
  } else {
    float wide[2 * kLanes];
    hn::StoreU(LoadFloats(d, from), d, wide);
    hn::StoreU(LoadFloats(d, from + kLanes), d, wide + kLanes);
    hn::LoadInterleaved2(d, wide, a, b);
  }
}

template <typename T>
HWY_INLINE void StoreFloatPairs(VF a, VF b, DF d, T* to) {
  if constexpr (kIsFloat<T>) {
    hn::StoreInterleaved2(a, b, d, to);
  } else {
    float wide[2 * kLanes];
    hn::StoreInterleaved2(a, b, d, wide);
    StoreFloats(hn::LoadU(d, wide), d, to);
    StoreFloats(hn::LoadU(d, wide + kLanes), d, to + kLanes);
  }
}

// Copies numbers from one type to another.
template <typename In, typename Out>
HWY_INLINE void Convert(const In* in, size_t count, Out* out) {
  if constexpr (std::is_same_v<In, Out>) {
    if (in != out) memcpy(out, in, count * sizeof(In));
  } else {
    const DF d;
    size_t x = 0;
    for (; x + kLanes <= count; x += kLanes) StoreFloats(LoadFloats(d, in + x), d, out + x);
    for (; x < count; ++x) out[x] = FromFloat<Out>(ToFloat(in[x]));
  }
}

// Rounds float32 numbers to those of type T.
template <typename T>
HWY_INLINE void RoundTo(float* values, size_t count) {
  if constexpr (!kIsFloat<T>) {
    const DF d;
    size_t x = 0;
    for (; x + kLanes <= count; x += kLanes) {
      T rounded[kLanes];
      StoreFloats(hn::LoadU(d, values + x), d, rounded);
      hn::StoreU(LoadFloats(d, rounded), d, values + x);
    }
    for (; x < count; ++x) values[x] = ToFloat(FromFloat<T>(values[x]));
  }
}

// out = in * factor.
template <typename Out>
HWY_INLINE void StoreScaled(const float* in, float factor, size_t count, Out* out) {
  const DF d;
  const VF times = hn::Set(d, factor);
  size_t x = 0;
  for (; x + kLanes <= count; x += kLanes) {
    StoreFloats(hn::Mul(hn::LoadU(d, in + x), times), d, out + x);
  }
  for (; x < count; ++x) out[x] = FromFloat<Out>(in[x] * factor);
}

// Rounds a row to int8 by its own scale, which it returns: the largest number becomes 127 or -127.
// Of a row with a number that is not finite the scale is NaN, and the integers are 0.
template <typename In>
HWY_INLINE float Quantize(const In* in, size_t count, int8_t* out) {
  const DF d;
  const hn::Rebind<int8_t, DF> d8;
  VF most = hn::Zero(d);
  VF non_finite = hn::Zero(d);  // stays 0 while all numbers are finite
  size_t x = 0;
  for (; x + kLanes <= count; x += kLanes) {
    const VF v = LoadFloats(d, in + x);
    most = hn::Max(most, hn::Abs(v));
    non_finite = hn::Add(non_finite, hn::Sub(v, v));
  }
  float largest = hn::ReduceMax(d, most);
  bool finite = hn::AllTrue(d, hn::Eq(non_finite, hn::Zero(d)));
  for (size_t y = x; y < count; ++y) {
    const float v = ToFloat(in[y]);
    largest = HWY_MAX(largest, std::abs(v));
    finite = finite && std::isfinite(v);
  }
  const float scale = finite ? largest / 127.0f : std::numeric_limits<float>::quiet_NaN();
  if (!(scale > 0.0f)) {
    memset(out, 0, count);
    return scale;
  }
  // Of numbers so small that a scale has no more digits the integers could be larger.
  const VF by = hn::Set(d, scale);
  const VF limit = hn::Set(d, 127.0f);
  for (x = 0; x < count; x += kLanes) {
    const size_t n = HWY_MIN(kLanes, count - x);
    const VF v = n == kLanes ? LoadFloats(d, in + x) : LoadFloatsN(d, in + x, n);
    const VF steps = hn::Max(hn::Neg(limit), hn::Min(limit, hn::Div(v, by)));
    const auto bytes = hn::DemoteTo(d8, hn::NearestInt(steps));
    if (n == kLanes) {
      hn::StoreU(bytes, d8, out + x);
    } else {
      hn::StoreN(bytes, d8, out + x, n);
    }
  }
  return scale;
}

// Writes a row to a cache of type C, with its scale where the type has one.
template <typename In, typename C>
HWY_INLINE void StoreRow(const In* in, size_t count, C* out, float* scale) {
  if constexpr (kIsInt8<C>) {
    *scale = Quantize(in, count, out);
  } else {
    (void)scale;
    Convert(in, count, out);
  }
}

// numbers[j] times factors[j], for a number of rows.
HWY_INLINE void MultiplyColumns(size_t rows, size_t begin, size_t end, const float* factors,
                                float* numbers, size_t stride) {
  const DF d;
  for (size_t r = 0; r < rows; ++r, numbers += stride) {
    size_t x = begin;
    for (; x + kLanes <= end; x += kLanes) {
      hn::StoreU(hn::Mul(hn::LoadU(d, numbers + x), hn::LoadU(d, factors + x)), d, numbers + x);
    }
    for (; x < end; ++x) numbers[x] *= factors[x];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_ELEMENT_INL_H_
