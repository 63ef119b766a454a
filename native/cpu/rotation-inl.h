// The rotation of one head of one token.
#if defined(ROPE_ROTATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_ROTATION_INL_H_
#undef ROPE_ROTATION_INL_H_
#else
#define ROPE_ROTATION_INL_H_
#endif

#include <cstring>
#include <vector>

#include "attention.h"
#include "element-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

// Rotates pair (first[x], second[x]) for x < pairs, channels [0, pairs) and
// [pairs, 2 pairs) of the rotated part.
template <typename In, typename Out>
HWY_INLINE void RotateHalf(const In* in, const float* cos_row, const float* sin_row, size_t pairs,
                           Out* out) {
  const DF d;
  size_t x = 0;
  for (; x + kLanes <= pairs; x += kLanes) {
    const VF a = LoadFloats(d, in + x);
    const VF b = LoadFloats(d, in + pairs + x);
    const VF c = hn::LoadU(d, cos_row + x);
    const VF s = hn::LoadU(d, sin_row + x);
    StoreFloats(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, out + x);
    StoreFloats(hn::MulAdd(a, s, hn::Mul(b, c)), d, out + pairs + x);
  }
  for (; x < pairs; ++x) {
    const float a = ToFloat(in[x]);
    const float b = ToFloat(in[pairs + x]);
    out[x] = FromFloat<Out>(a * cos_row[x] - b * sin_row[x]);
    out[pairs + x] = FromFloat<Out>(b * cos_row[x] + a * sin_row[x]);
  }
}

// Rotates pair (2x, 2x + 1) for x < pairs.
template <typename In, typename Out>
HWY_INLINE void RotateInterleaved(const In* in, const float* cos_row, const float* sin_row,
                                  size_t pairs, Out* out) {
  const DF d;
  size_t x = 0;
  for (; x + kLanes <= pairs; x += kLanes) {
    VF a;
    VF b;
    LoadFloatPairs(d, in + 2 * x, a, b);
    const VF c = hn::LoadU(d, cos_row + x);
    const VF s = hn::LoadU(d, sin_row + x);
    StoreFloatPairs(hn::NegMulAdd(b, s, hn::Mul(a, c)), hn::MulAdd(a, s, hn::Mul(b, c)), d,
                    out + 2 * x);
  }
  for (; x < pairs; ++x) {
    const float a = ToFloat(in[2 * x]);
    const float b = ToFloat(in[2 * x + 1]);
    out[2 * x] = FromFloat<Out>(a * cos_row[x] - b * sin_row[x]);
    out[2 * x + 1] = FromFloat<Out>(b * cos_row[x] + a * sin_row[x]);
  }
}

// Writes one head of `channels` numbers with its rotary part rotated by one row
// of an angle table (cosines, then sines). `in` and `out` may be the same. The
// rotation is done in float32 whatever the types.
template <typename In, typename Out>
HWY_INLINE void RotateHead(const AttentionParams& params, const In* in, const float* table,
                           size_t channels, Out* out) {
  const size_t pairs = params.frequencies.size();
  if (pairs == 0) {
    Convert(in, channels, out);
    return;
  }
  const size_t begin = static_cast<size_t>(params.rotary_offset);
  const size_t end = begin + 2 * pairs;
  if (begin > 0) Convert(in, begin, out);
  if (end < channels) Convert(in + end, channels - end, out + end);
  if (params.interleaved) {
    RotateInterleaved(in + begin, table, table + pairs, pairs, out + begin);
  } else {
    RotateHalf(in + begin, table, table + pairs, pairs, out + begin);
  }
}

// Multiplies the channels of a head by factors of their own; none leave it as it is.
HWY_INLINE void MultiplyChannels(const std::vector<float>& factors, float* row) {
  if (factors.empty()) return;
  const DF d;
  size_t c = 0;
  for (; c + kLanes <= factors.size(); c += kLanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, row + c), hn::LoadU(d, factors.data() + c)), d, row + c);
  }
  for (; c < factors.size(); ++c) row[c] *= factors[c];
}

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_ROTATION_INL_H_
