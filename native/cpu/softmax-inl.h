// One tile's step of the online softmax, for one row.
#if defined(ROPE_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_SOFTMAX_INL_H_
#undef ROPE_SOFTMAX_INL_H_
#else
#define ROPE_SOFTMAX_INL_H_
#endif

#include <cmath>
#include <limits>

#include "product-inl.h"
#include "visible.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

inline constexpr float kNegativeInfinity = -std::numeric_limits<float>::infinity();

// Which columns of a tile one row sees.
struct RowMask {
  Range visible;                 // by causality and window
  const float* shown = nullptr;  // by padding: 0 hides a column; null shows all
};

// Puts -inf on the columns in [begin, end) that the row does not see.
HWY_INLINE void HideColumns(float* HWY_RESTRICT scores, size_t begin, size_t end,
                            const RowMask& mask) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  using TI = hn::TFromD<decltype(di)>;
  const auto first = hn::Set(di, static_cast<TI>(mask.visible.begin));
  const auto last = hn::Set(di, static_cast<TI>(mask.visible.end));
  const VF hidden = hn::Set(d, kNegativeInfinity);
  for (size_t c = begin; c < end; c += kLanes) {
    const auto column = hn::Iota(di, static_cast<TI>(c));
    auto visible = hn::RebindMask(d, hn::AndNot(hn::Lt(column, first), hn::Lt(column, last)));
    if (mask.shown != nullptr) {
      visible = hn::And(visible, hn::Ne(hn::LoadU(d, mask.shown + c), hn::Zero(d)));
    }
    hn::StoreU(hn::IfThenElse(visible, hn::LoadU(d, scores + c), hidden), d, scores + c);
  }
}

// Hides what the row does not see of products [begin, end), whose bounds are multiples of a vector,
// and returns the largest of the others. NaN is passed over.
HWY_INLINE float LargestVisible(float* HWY_RESTRICT scores, size_t begin, size_t end,
                                const RowMask& mask) {
  const DF d;
  const bool all_visible = mask.shown == nullptr &&
                           mask.visible.begin <= static_cast<int64_t>(begin) &&
                           mask.visible.end >= static_cast<int64_t>(end);
  if (!all_visible) HideColumns(scores, begin, end, mask);
  // Each maximum waits for the one before, so there are several.
  constexpr size_t kWays = 4;
  VF largest[kWays];
  for (size_t i = 0; i < kWays; ++i) largest[i] = hn::Set(d, kNegativeInfinity);
  size_t c = begin;
  for (; c + kWays * kLanes <= end; c += kWays * kLanes) {
    for (size_t i = 0; i < kWays; ++i) {
      largest[i] = hn::Max(hn::LoadU(d, scores + c + i * kLanes), largest[i]);
    }
  }
  for (; c < end; c += kLanes) largest[0] = hn::Max(hn::LoadU(d, scores + c), largest[0]);
  return hn::ReduceMax(d,
                       hn::Max(hn::Max(largest[0], largest[1]), hn::Max(largest[2], largest[3])));
}

// Writes weights in the place of a row's products from c on, or where pairs of them stand.
template <bool kPairs>
HWY_INLINE void StoreWeights(DF d, VF weights, float* row, size_t c) {
  if constexpr (kPairs) {
    const hn::Rebind<BFloat16, DF> dh;
    hn::StoreU(hn::DemoteTo(dh, weights), dh, reinterpret_cast<BFloat16*>(row) + c);
  } else {
    hn::StoreU(weights, d, row + c);
  }
}

// Turns products [begin, end) of a row into 2^(scale * (product - maximum)) and
// carries the row's running maximum (of the products) and sum on. tile_maximum is
// what LargestVisible found. Returns the factor for what the row has accumulated so
// far. Bounds are multiples of a vector, scale is positive and holds the factor that
// makes powers of e from those of 2. The maximum is taken off before the scale comes:
// of the largest product nothing may be left, however large it is. With kPairs weights
// are left as MakePairs leaves numbers.
template <bool kPairs>
HWY_INLINE float SoftmaxRow(float* HWY_RESTRICT scores, size_t begin, size_t end, float scale,
                            float tile_maximum, float& maximum, float& sum) {
  const DF d;
  float new_maximum = tile_maximum > maximum ? tile_maximum : maximum;
  if (new_maximum == kNegativeInfinity) {
    // No visible key yet, or only scores of -inf, or NaN that Max has passed over.
    bool nan = false;
    for (size_t c = begin; c < end; ++c) nan |= std::isnan(scores[c]);
    if (!nan) {
      for (size_t c = begin; c < end; c += kLanes) StoreWeights<kPairs>(d, hn::Zero(d), scores, c);
      return 1.0f;
    }
    new_maximum = std::numeric_limits<float>::quiet_NaN();
  }

  const VF shift = hn::Set(d, new_maximum);
  const VF factor = hn::Set(d, scale);
  VF sums = hn::Zero(d);
  for (size_t c = begin; c < end; c += kLanes) {
    const VF x = hn::Mul(hn::Sub(hn::LoadU(d, scores + c), shift), factor);
    const VF p = Exp2NonPositive(d, x);
    StoreWeights<kPairs>(d, p, scores, c);
    sums = hn::Add(sums, p);
  }
  const float correction =
      maximum == new_maximum
          ? 1.0f
          : hn::GetLane(Exp2NonPositive(d, hn::Set(d, (maximum - new_maximum) * scale)));
  sum = sum * correction + hn::ReduceSum(d, sums);
  maximum = new_maximum;
  return correction;
}

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_SOFTMAX_INL_H_
