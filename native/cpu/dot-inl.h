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

// How many keys are multiplied side by side, so that they share the loads of queries. One key
// after the other, memory is read faster. Keys of 16 bits are half the bytes for as many products,
// so that the products take longer than the reading.
template <typename T>
inline constexpr size_t kDotTogether = kIsFloat<T> ? 1 : 2;

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

// out[0], ... = the sums of the lanes of a, b, c and e.
HWY_INLINE void StoreSums(VF a, VF b, VF c, VF e, float* HWY_RESTRICT out) {
#if HWY_TARGET == HWY_SCALAR
  const VF all[] = {a, b, c, e};
  for (size_t i = 0; i < kDotKeys; ++i) out[i] = hn::GetLane(all[i]);
#else
  const DF d;
  const hn::RepartitionToWide<DF> d2;
  // Each block of four lanes: (a, b) and (c, e) side by side, then all four.
  const auto ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const auto ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  const auto lower = hn::InterleaveLower(d2, hn::BitCast(d2, ab), hn::BitCast(d2, ce));
  const auto upper = hn::InterleaveUpper(d2, hn::BitCast(d2, ab), hn::BitCast(d2, ce));
  const VF sums = hn::Add(hn::BitCast(d, lower), hn::BitCast(d, upper));
  hn::StoreU(FoldToFour(d, sums), hn::FixedTag<float, 4>(), out);
#endif
}

// Keys of a tile as they stand in memory.
template <typename T>
struct StoredKeys {
  static constexpr size_t kTogether = kDotTogether<T>;
  const T* keys;
  size_t stride;
  size_t channels;

  // sum[i][r] = what the lanes of the dot product of query row r and key k[i] are to add up to.
  template <size_t kRows>
  HWY_INLINE void Dot(const float* HWY_RESTRICT queries, size_t query_stride, const size_t* k,
                      VF (*sum)[kRows]) const {
    const DF d;
    for (size_t i = 0; i < kTogether; ++i) {
      for (size_t r = 0; r < kRows; ++r) sum[i][r] = hn::Zero(d);
    }
    size_t x = 0;
    const auto add = [&](const auto& load) HWY_ATTR {
      VF key[kTogether];
      for (size_t i = 0; i < kTogether; ++i) key[i] = load(keys + k[i] * stride + x);
      for (size_t r = 0; r < kRows; ++r) {
        const VF query = hn::LoadU(d, queries + r * query_stride + x);
        for (size_t i = 0; i < kTogether; ++i) sum[i][r] = hn::MulAdd(query, key[i], sum[i][r]);
      }
    };
    for (; x + kLanes <= channels; x += kLanes) {
      add([&](const T* from) HWY_ATTR { return LoadFloats(d, from); });
    }
    if (x < channels) {
      add([&](const T* from) HWY_ATTR { return LoadFloatsN(d, from, channels - x); });
    }
  }
};

// Keys of a raw cache, each rotated by its row of cosines and sines while it is read. All channels
// are rotated, pair x is (x, pairs + x), and pairs fill whole vectors.
template <typename T>
struct RotatedKeys {
  static constexpr size_t kTogether = 1;
  const T* keys;
  size_t stride;
  const float* angles;
  size_t pairs;
  size_t ahead;  // keys are fetched so many keys before they are read

  template <size_t kRows>
  HWY_INLINE void Dot(const float* HWY_RESTRICT queries, size_t query_stride, const size_t* k,
                      VF (*sum)[kRows]) const {
    const DF d;
    for (size_t r = 0; r < kRows; ++r) sum[0][r] = hn::Zero(d);
    const T* key = keys + *k * stride;
    const float* row = angles + *k * 2 * pairs;
    constexpr size_t kLine = 64 / sizeof(T);
    for (size_t x = 0; x < 2 * pairs; x += kLine) FetchToL2(key + ahead * stride + x);
    for (size_t x = 0; x < pairs; x += kLanes) {
      const VF a = LoadFloats(d, key + x);
      const VF b = LoadFloats(d, key + pairs + x);
      const VF c = hn::LoadU(d, row + x);
      const VF s = hn::LoadU(d, row + pairs + x);
      const VF first = hn::NegMulAdd(b, s, hn::Mul(a, c));
      const VF second = hn::MulAdd(a, s, hn::Mul(b, c));
      for (size_t r = 0; r < kRows; ++r) {
        const float* query = queries + r * query_stride + x;
        sum[0][r] = hn::MulAdd(hn::LoadU(d, query), first, sum[0][r]);
        sum[0][r] = hn::MulAdd(hn::LoadU(d, query + pairs), second, sum[0][r]);
      }
    }
  }
};

// out[r][0, kDotKeys) = the dot products of query row r and keys k[0], k[1], ... Query rows are
// padded with zeros to whole vectors, keys are not.
template <size_t kRows, typename Keys>
HWY_INLINE void DotBlock(const float* HWY_RESTRICT queries, size_t query_stride, const Keys& keys,
                         const size_t* k, float* HWY_RESTRICT out, size_t out_stride) {
  VF sum[kDotKeys][kRows];
  // Written out, since a loop would keep the sums in memory.
  constexpr size_t kTogether = Keys::kTogether;
  keys.template Dot<kRows>(queries, query_stride, k, sum);
  if constexpr (kTogether < 2) keys.template Dot<kRows>(queries, query_stride, k + 1, sum + 1);
  if constexpr (kTogether < 4) keys.template Dot<kRows>(queries, query_stride, k + 2, sum + 2);
  if constexpr (kTogether < 2) keys.template Dot<kRows>(queries, query_stride, k + 3, sum + 3);
  for (size_t r = 0; r < kRows; ++r) {
    StoreSums(sum[0][r], sum[1][r], sum[2][r], sum[3][r], out + r * out_stride);
  }
}

// out[r][begin, end) = queries · keys for any number of rows. Columns up to the next multiple of
// kDotKeys are written.
template <typename Keys>
void DotProducts(size_t rows, const float* queries, size_t query_stride, const Keys& keys,
                 size_t begin, size_t end, float* out, size_t out_stride) {
  for (size_t k = begin; k < end; k += kDotKeys) {
    size_t four[kDotKeys];
    for (size_t i = 0; i < kDotKeys; ++i) four[i] = HWY_MIN(k + i, end - 1);
    for (size_t r = 0; r < rows; r += kDotRows) {
      const float* from = queries + r * query_stride;
      float* to = out + r * out_stride + k;
      switch (rows - r) {
        case 1:
          DotBlock<1>(from, query_stride, keys, four, to, out_stride);
          break;
        case 2:
          DotBlock<2>(from, query_stride, keys, four, to, out_stride);
          break;
        case 3:
          DotBlock<3>(from, query_stride, keys, four, to, out_stride);
          break;
        default:
          DotBlock<4>(from, query_stride, keys, four, to, out_stride);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_DOT_INL_H_
