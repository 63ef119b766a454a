// The rotation of one head of one token.
#if defined(ROPE_ROTATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_ROTATION_INL_H_
#undef ROPE_ROTATION_INL_H_
#else
#define ROPE_ROTATION_INL_H_
#endif

#include <cstring>

#include "attention.h"
#include "vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

// Turns pair (first[x], second[x]) for x < pairs, channels [0, pairs) and
// [pairs, 2 pairs) of the rotated part.
HWY_INLINE void RotateHalf(const float* in, const float* cos_row, const float* sin_row,
                           size_t pairs, float* out) {
  const DF d;
  size_t x = 0;
  for (; x + kLanes <= pairs; x += kLanes) {
    const VF a = hn::LoadU(d, in + x);
    const VF b = hn::LoadU(d, in + pairs + x);
    const VF c = hn::LoadU(d, cos_row + x);
    const VF s = hn::LoadU(d, sin_row + x);
    hn::StoreU(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, out + x);
    hn::StoreU(hn::MulAdd(a, s, hn::Mul(b, c)), d, out + pairs + x);
  }
  for (; x < pairs; ++x) {
    const float a = in[x];
    const float b = in[pairs + x];
    out[x] = a * cos_row[x] - b * sin_row[x];
    out[pairs + x] = b * cos_row[x] + a * sin_row[x];
  }
}

// Turns pair (2x, 2x + 1) for x < pairs.
HWY_INLINE void RotateInterleaved(const float* in, const float* cos_row, const float* sin_row,
                                  size_t pairs, float* out) {
  const DF d;
  size_t x = 0;
  for (; x + kLanes <= pairs; x += kLanes) {
    VF a;
    VF b;
    hn::LoadInterleaved2(d, in + 2 * x, a, b);
    const VF c = hn::LoadU(d, cos_row + x);
    const VF s = hn::LoadU(d, sin_row + x);
    hn::StoreInterleaved2(hn::NegMulAdd(b, s, hn::Mul(a, c)), hn::MulAdd(a, s, hn::Mul(b, c)), d,
                          out + 2 * x);
  }
  for (; x < pairs; ++x) {
    const float a = in[2 * x];
    const float b = in[2 * x + 1];
    out[2 * x] = a * cos_row[x] - b * sin_row[x];
    out[2 * x + 1] = b * cos_row[x] + a * sin_row[x];
  }
}

// Writes one head of `channels` numbers with its rotated part turned by one row
// of an angle table (cosines, then sines). `in` and `out` may be the same.
HWY_INLINE void RotateHead(const AttentionParams& params, const float* in, const float* table,
                           size_t channels, float* out) {
  const size_t pairs = params.frequencies.size();
  if (pairs == 0) {
    if (out != in) memcpy(out, in, channels * sizeof(float));
    return;
  }
  const size_t begin = static_cast<size_t>(params.rotary_offset);
  const size_t end = begin + 2 * pairs;
  if (out != in) {
    memcpy(out, in, begin * sizeof(float));
    memcpy(out + end, in + end, (channels - end) * sizeof(float));
  }
  if (params.interleaved) {
    RotateInterleaved(in + begin, table, table + pairs, pairs, out + begin);
  } else {
    RotateHalf(in + begin, table, table + pairs, pairs, out + begin);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_ROTATION_INL_H_
