// Vector types and small functions shared by the kernels of one target.
#if defined(ROPE_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_VECTOR_INL_H_
#undef ROPE_VECTOR_INL_H_
#else
#define ROPE_VECTOR_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

static_assert(!HWY_HAVE_SCALABLE, "the kernels keep vectors in arrays: fixed-size targets only");

using DF = hn::ScalableTag<float>;
using VF = hn::Vec<DF>;
inline constexpr size_t kLanes = HWY_MAX_LANES_D(DF);

// Rows times vectors of one register block. 32 registers hold 6 x 4 sums and
// their operands, 16 registers 6 x 2.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
inline constexpr size_t kBlockVectors = 4;
#else
inline constexpr size_t kBlockVectors = 2;
#endif
inline constexpr size_t kBlockRows = 6;
inline constexpr size_t kPanel = kBlockVectors * kLanes;  // columns of a packed panel

inline constexpr float kLog2OfE = 1.44269504088896341f;

// Whether the target multiplies pairs of bfloat16 and adds them up in float32.
#if HWY_TARGET == HWY_AVX3_ZEN4 || HWY_TARGET == HWY_AVX3_SPR
inline constexpr bool kHasPairs = true;
#else
inline constexpr bool kHasPairs = false;
#endif

// Fetches a cache line that will be read soon into L2, so that it takes no place in L1.
HWY_INLINE void FetchToL2(const void* line) {
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
  __builtin_prefetch(line, 0, 2);
#else
  (void)line;
#endif
}

// e^x for x <= 0, give or take a rounding: relative error below 1.2e-7, 0 below -87.3, NaN for NaN.
HWY_INLINE VF ExpNonPositive(DF d, VF x) {
  const hn::RebindToSigned<DF> di;
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low mantissa bits.
  const VF magic = hn::Set(d, 12582912.0f);
  const VF shifted = hn::MulAdd(x, hn::Set(d, kLog2OfE), magic);
  const VF n = hn::Sub(shifted, magic);
  // ln 2 in two parts, the first short enough that n times it is exact.
  VF r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440054690583e-4f), r);
  // e^r = 1 + r + r^2 * q(r) on |r| <= ln(2)/2; q is the minimax fit, off by 3e-9.
  VF q = hn::Set(d, 1.38146023e-3f);
  q = hn::MulAdd(q, r, hn::Set(d, 8.36871564e-3f));
  q = hn::MulAdd(q, r, hn::Set(d, 4.16683890e-2f));
  q = hn::MulAdd(q, r, hn::Set(d, 1.66665211e-1f));
  q = hn::MulAdd(q, r, hn::Set(d, 4.99999940e-1f));
  const VF y = hn::Add(hn::MulAdd(hn::Mul(r, r), q, r), hn::Set(d, 1.0f));
  const auto one = hn::BitCast(di, hn::Set(d, 1.0f));
  const VF power = hn::BitCast(d, hn::Add(hn::ShiftLeft<23>(hn::BitCast(di, shifted)), one));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.3f)), hn::Mul(y, power));
}

// 2^x for x <= 0, give or take a rounding: relative error below 1.2e-7, 0 below -126, NaN for NaN.
HWY_INLINE VF Exp2NonPositive(DF d, VF x) {
  const hn::RebindToSigned<DF> di;
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low mantissa bits,
  // with 127 more as the exponent of the power that it means.
  const VF magic = hn::Set(d, 12582912.0f + 127.0f);
  const VF shifted = hn::Add(x, magic);
  const VF f = hn::Sub(x, hn::Sub(shifted, magic));
  // 2^f = 1 + f * q(f) on |f| <= 1/2; q is the minimax fit, off by 2e-9.
  VF q = hn::Set(d, 1.535336196e-04f);
  q = hn::MulAdd(q, f, hn::Set(d, 1.339887502e-03f));
  q = hn::MulAdd(q, f, hn::Set(d, 9.618436918e-03f));
  q = hn::MulAdd(q, f, hn::Set(d, 5.550332367e-02f));
  q = hn::MulAdd(q, f, hn::Set(d, 2.402264774e-01f));
  q = hn::MulAdd(q, f, hn::Set(d, 6.931471825e-01f));
  const VF y = hn::MulAdd(q, f, hn::Set(d, 1.0f));
  const VF power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0f)), hn::Mul(y, power));
}

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_VECTOR_INL_H_
