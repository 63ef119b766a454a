// Scores straight from keys as they stand in the cache: for few query rows,
// where packing a tile would cost more than its products.
#if defined(ROPE_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_DOT_INL_H_
#undef ROPE_DOT_INL_H_
#else
#define ROPE_DOT_INL_H_
#endif

#include "element-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

inline constexpr size_t kDotRows = 4;
inline constexpr size_t kDotKeys = 4;

// Keys that are read by turns. Memory is read faster in order, but one key after the other loads
// the queries for each, which elements of 16 bits leave no time for.
template <typename T>
inline constexpr size_t kDotTogether = kIsFloat<T> ? 1 : kDotKeys;

#if HWY_TARGET != HWY_SCALAR
// The sum of a vector's blocks of four lanes.
template <class D>
HWY_INLINE hn::Vec<hn::FixedTag<float, 4>> FoldToFour(D /*d*/, hn::Vec<D> v) {
  if constexpr (HWY_MAX_LANES_D(D) == 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return FoldToFour(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}
#endif

// out[i] = the sum of v[i]'s lanes.
HWY_INLINE void StoreSums(const VF* v, float* HWY_RESTRICT out) {
#if HWY_TARGET == HWY_SCALAR
  for (size_t i = 0; i < kDotKeys; ++i) out[i] = hn::GetLane(v[i]);
#else
  const DF d;
  const hn::RepartitionToWide<DF> d2;
  // Each block of four lanes: (a, b) and (c, e) side by side, then all four.
  const auto ab = hn::Add(hn::InterleaveLower(d, v[0], v[1]), hn::InterleaveUpper(d, v[0], v[1]));
  const auto ce = hn::Add(hn::InterleaveLower(d, v[2], v[3]), hn::InterleaveUpper(d, v[2], v[3]));
  const auto lower = hn::InterleaveLower(d2, hn::BitCast(d2, ab), hn::BitCast(d2, ce));
  const auto upper = hn::InterleaveUpper(d2, hn::BitCast(d2, ab), hn::BitCast(d2, ce));
  const VF sums = hn::Add(hn::BitCast(d, lower), hn::BitCast(d, upper));
  hn::StoreU(FoldToFour(d, sums), hn::FixedTag<float, 4>(), out);
#endif
}

// out[r][k] = the dot product of query row r and key k, kRows x kDotKeys of
// them. Query rows are padded with zeros to whole vectors, keys are not.
template <size_t kRows, typename T>
HWY_INLINE void DotBlock(const float* HWY_RESTRICT queries, size_t query_stride,
                         const T* const* keys, size_t channels, float* HWY_RESTRICT out,
                         size_t out_stride) {
  const DF d;
  VF sum[kRows][kDotKeys];
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t k = 0; k < kDotKeys; ++k) sum[r][k] = hn::Zero(d);
  }
  for (size_t first = 0; first < kDotKeys; first += kDotTogether<T>) {
    size_t x = 0;
    const auto add = [&](const auto& load) HWY_ATTR {
      VF key[kDotTogether<T>];
      for (size_t k = 0; k < kDotTogether<T>; ++k) key[k] = load(keys[first + k] + x);
      for (size_t r = 0; r < kRows; ++r) {
        const VF query = hn::LoadU(d, queries + r * query_stride + x);
        for (size_t k = 0; k < kDotTogether<T>; ++k) {
          sum[r][first + k] = hn::MulAdd(query, key[k], sum[r][first + k]);
        }
      }
    };
    for (; x + kLanes <= channels; x += kLanes) {
      add([&](const T* from) HWY_ATTR { return LoadFloats(d, from); });
    }
    if (x < channels) {
      add([&](const T* from) HWY_ATTR { return LoadFloatsN(d, from, channels - x); });
    }
  }
  for (size_t r = 0; r < kRows; ++r) StoreSums(sum[r], out + r * out_stride);
}

// out[r][begin, end) = queries · keys for any number of rows. Key k starts at
// keys + k * key_stride. Columns up to the next multiple of kDotKeys are written.
template <typename T>
void DotProducts(size_t rows, const float* queries, size_t query_stride, const T* keys,
                 size_t key_stride, size_t begin, size_t end, size_t channels, float* out,
                 size_t out_stride) {
  for (size_t k = begin; k < end; k += kDotKeys) {
    const T* four[kDotKeys];
    for (size_t i = 0; i < kDotKeys; ++i) four[i] = keys + HWY_MIN(k + i, end - 1) * key_stride;
    for (size_t r = 0; r < rows; r += kDotRows) {
      const float* from = queries + r * query_stride;
      float* to = out + r * out_stride + k;
      switch (rows - r) {
        case 1:
          DotBlock<1>(from, query_stride, four, channels, to, out_stride);
          break;
        case 2:
          DotBlock<2>(from, query_stride, four, channels, to, out_stride);
          break;
        case 3:
          DotBlock<3>(from, query_stride, four, channels, to, out_stride);
          break;
        default:
          DotBlock<4>(from, query_stride, four, channels, to, out_stride);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_DOT_INL_H_
