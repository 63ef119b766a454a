// Sine and cosine of float64 vectors, for angles of any size.
#if defined(ROPE_SINCOS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_SINCOS_INL_H_
#undef ROPE_SINCOS_INL_H_
#else
#define ROPE_SINCOS_INL_H_
#endif

#include <cmath>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DD = hn::ScalableTag<double>;
using VD = hn::Vec<DD>;

// Absolute error below 1e-11 for |x| up to kLargestAngle. The C library takes
// larger ones, infinities and NaN.
#if HWY_NATIVE_FMA
// x - k * pi/2 is one rounding here, whatever k is.
inline constexpr double kLargestAngle = 2147483648.0;
#else
inline constexpr double kLargestAngle = 65536.0;
#endif

HWY_INLINE void SinCos(DD d, VD x, VD& sine, VD& cosine) {
  if (!hn::AllTrue(d, hn::Le(hn::Abs(x), hn::Set(d, kLargestAngle)))) {
    double angle[HWY_MAX_LANES_D(DD)], s[HWY_MAX_LANES_D(DD)], c[HWY_MAX_LANES_D(DD)];
    hn::StoreU(x, d, angle);
    for (size_t i = 0; i < hn::Lanes(d); ++i) s[i] = std::sin(angle[i]), c[i] = std::cos(angle[i]);
    sine = hn::LoadU(d, s);
    cosine = hn::LoadU(d, c);
    return;
  }
  // x = k * pi/2 + r with |r| <= pi/4. Adding 1.5 * 2^52 rounds to an integer and
  // leaves it in the low mantissa bits.
  const VD magic = hn::Set(d, 6755399441055744.0);
  const VD two_over_pi = hn::Set(d, 0.63661977236758134308);
  const VD shifted = hn::MulAdd(x, two_over_pi, magic);
  const VD k = hn::Sub(shifted, magic);
  // pi/2 in two parts.
  VD r = hn::NegMulAdd(k, hn::Set(d, 1.57079632679489655800), x);
  r = hn::NegMulAdd(k, hn::Set(d, 6.12323399573676603587e-17), r);
  // Taylor series: the first term left out is below 7e-12 for the sine, 4e-13 for the cosine.
  const VD u = hn::Mul(r, r);
  VD s = hn::Set(d, -1.0 / 39916800);
  s = hn::MulAdd(s, u, hn::Set(d, 1.0 / 362880));
  s = hn::MulAdd(s, u, hn::Set(d, -1.0 / 5040));
  s = hn::MulAdd(s, u, hn::Set(d, 1.0 / 120));
  s = hn::MulAdd(s, u, hn::Set(d, -1.0 / 6));
  s = hn::MulAdd(hn::Mul(s, u), r, r);
  VD c = hn::Set(d, 1.0 / 479001600);
  c = hn::MulAdd(c, u, hn::Set(d, -1.0 / 3628800));
  c = hn::MulAdd(c, u, hn::Set(d, 1.0 / 40320));
  c = hn::MulAdd(c, u, hn::Set(d, -1.0 / 720));
  c = hn::MulAdd(c, u, hn::Set(d, 1.0 / 24));
  c = hn::MulAdd(c, u, hn::Set(d, -0.5));
  c = hn::MulAdd(c, u, hn::Set(d, 1.0));
  // Quarter turns: an odd k exchanges the two, k = 2, 3 negates the sine, k = 1, 2 the cosine.
  const hn::RebindToUnsigned<DD> du;
  const auto bits = hn::BitCast(du, shifted);
  const auto odd = hn::RebindMask(d, hn::Ne(hn::And(bits, hn::Set(du, 1)), hn::Zero(du)));
  const auto sign_bit = hn::Set(du, uint64_t{1} << 63);
  const auto sine_sign = hn::And(hn::ShiftLeft<62>(bits), sign_bit);
  const auto cosine_sign = hn::And(hn::ShiftLeft<62>(hn::Add(bits, hn::Set(du, 1))), sign_bit);
  sine = hn::Xor(hn::IfThenElse(odd, c, s), hn::BitCast(d, sine_sign));
  cosine = hn::Xor(hn::IfThenElse(odd, s, c), hn::BitCast(d, cosine_sign));
}

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_SINCOS_INL_H_
