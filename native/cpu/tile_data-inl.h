// The keys and values of one tile, packed or as they stand in the cache, and
// the two products with them.
#if defined(ROPE_TILE_DATA_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_TILE_DATA_INL_H_
#undef ROPE_TILE_DATA_INL_H_
#else
#define ROPE_TILE_DATA_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "dot-inl.h"
#include "product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

// Whether tiles can be multiplied as pairs: those of a run in bfloat16, whose numbers are pairs
// already, and of one in float32, whose caches may be of any type.
template <typename T, typename C = T>
inline constexpr bool kPairable =
    kHasPairs && (kIsFloat<T> || (std::is_same_v<T, BFloat16> && std::is_same_v<C, BFloat16>));

// A factor of 1 for each row of a block: what is in C already is added to as it is.
constexpr std::array<float, kBlockRows> MakeOnes() {
  std::array<float, kBlockRows> ones{};
  for (size_t r = 0; r < kBlockRows; ++r) ones[r] = 1.0f;
  return ones;
}
inline constexpr std::array<float, kBlockRows> kOnes = MakeOnes();

// T is the element type of the run, C that of its caches. Keys come from a cache or as floats,
// values from a cache or as the run's.
template <typename T, typename C>
class TileData {
 public:
  // The memory is for packed tiles: kTileKeys keys and values in whole vectors. With
  // `pairs` (if kPairable) products read pairs of bfloat16: queries come as MakePairs makes them,
  // weights too if WantsPairs.
  TileData(size_t channels, size_t v_channels, bool pairs, float* key_memory, float* value_memory)
      : channels_(channels),
        v_channels_(v_channels),
        pairs_(pairs),
        key_memory_(key_memory),
        value_memory_(value_memory) {}

  // Begins a tile of `count` keys and values. In place they are read where they
  // stand; otherwise they are packed, which is repaid when many rows share them.
  void Begin(size_t count, bool in_place) {
    count_ = count;
    in_place_ = in_place;
  }

  // Packs some keys of the tile, from `first` on, a multiple of kPanel.
  void PackKeys(size_t first, size_t count, const float* keys, size_t stride) {
    if constexpr (kPairable<T, C>) {
      const size_t units = channels_ / 2;
      if (pairs_) {
        return PackTransposed<true>(count, units, keys, stride, {}, key_memory_ + first * units);
      }
    }
    PackTransposed<false>(count, channels_, keys, stride, {}, key_memory_ + first * channels_);
  }

  // Packs keys into other memory from here on.
  void PackKeysInto(float* memory) { key_memory_ = memory; }

  // Takes the tile's keys, which stand `stride` apart, with their scales if they are int8.
  template <typename Key>
  void TakeKeys(const Key* keys, size_t stride, const float* scales) {
    if constexpr (kPairable<T, C>) {
      if (pairs_) {
        return PackTransposed<true>(count_, channels_ / 2, keys, stride, {scales}, key_memory_);
      }
    }
    if (!in_place_) {
      return PackTransposed<false>(count_, channels_, keys, stride, {scales}, key_memory_);
    }
    keys_are_floats_ = kIsFloat<Key>;
    if constexpr (std::is_same_v<Key, C>) {
      keys_ = keys;
    } else {
      float_keys_ = keys;
    }
    key_stride_ = stride;
    key_scales_ = kIsInt8<Key> ? scales : nullptr;
  }

  // Takes the tile's values. Values that do not fill whole vectors are packed
  // all the same.
  template <typename Value>
  void TakeValues(const Value* values, size_t stride, const float* scales) {
    values_are_pairs_ = false;
    values_in_place_ = in_place_ && v_channels_ % kLanes == 0;
    value_scales_ = kIsInt8<Value> && values_in_place_ ? scales : nullptr;
    if constexpr (kPairable<T, C>) {
      // Hidden values that are not finite are left out one by one, not in pairs.
      if (pairs_ && PackRowPairs(count_, v_channels_, values, stride, {scales}, value_memory_)) {
        values_are_finite_ = values_are_pairs_ = true;
        return;
      }
    }
    if (!values_in_place_) {
      values_are_finite_ = PackRows(count_, v_channels_, values, stride, {scales}, value_memory_);
      return;
    }
    values_are_cached_ = std::is_same_v<Value, C>;
    if constexpr (std::is_same_v<Value, C>) {
      values_ = values;
    } else {
      own_values_ = values;
    }
    value_stride_ = stride;
  }

  // scores[r][begin, end) = queries · keys; up to a vector more on either side
  // may be written. Query rows are padded with zeros to whole vectors.
  void Score(size_t rows, const float* queries, size_t query_stride, size_t begin, size_t end,
             float* scores, size_t stride) const {
    if constexpr (kPairable<T, C>) {
      if (pairs_) {
        return ScorePacked<true>(rows, queries, query_stride, begin, end, scores, stride);
      }
    }
    if (!in_place_) {
      return ScorePacked<false>(rows, queries, query_stride, begin, end, scores, stride);
    }
    const auto dot = [&](const auto* keys) {
      const StoredKeys<std::decay_t<decltype(*keys)>> stored{keys, key_stride_, channels_};
      DotProducts(rows, queries, query_stride, stored, begin, end, scores, stride);
    };
    if constexpr (kIsInt8<C>) {
      if (key_scales_ != nullptr) {
        dot(keys_);
        return MultiplyColumns(rows, begin, end, key_scales_, scores, stride);
      }
    }
    if constexpr (!kIsFloat<C>) {
      if (keys_are_floats_) return dot(float_keys_);
    }
    dot(keys_);
  }

  // Multiplies weights by the scales of the values that Accumulate then reads as integers.
  void ScaleWeights(size_t rows, size_t begin, size_t end, float* weights, size_t stride) const {
    if (value_scales_ == nullptr) return;
    MultiplyColumns(rows, begin, end, value_scales_, weights, stride);
  }

  // Whether weights are to come as pairs.
  bool WantsPairs() const { return kPairable<T, C> && values_are_pairs_; }

  // sums[r] = sums[r] * corrections[r] + weights[r][begin, end) · values. Of weights that are
  // pairs, one before and one after the range are zero.
  void Accumulate(size_t rows, const float* weights, size_t weight_stride, size_t begin, size_t end,
                  const float* corrections, float* sums, size_t sum_stride) const {
    for (size_t x = 0; x < v_channels_; x += kPanel) {
      const size_t vectors = PanelVectors(x, v_channels_);
      const size_t width = vectors * kLanes;
      if (values_in_place_) {
        const auto accumulate = [&](const auto* values) {
          BlockOf<false>(rows, vectors, weights + begin, weight_stride,
                         values + begin * value_stride_ + x, value_stride_, end - begin,
                         corrections, sums + x, sum_stride);
        };
        if constexpr (!std::is_same_v<T, C>) {
          if (!values_are_cached_) {
            accumulate(own_values_);
            continue;
          }
        }
        accumulate(values_);
        continue;
      }
      if constexpr (kPairable<T, C>) {
        if (values_are_pairs_) {
          const size_t first = begin / 2;
          BlockOf<true>(rows, vectors, weights + first, weight_stride,
                        value_memory_ + (count_ + 1) / 2 * x + first * width, width,
                        (end + 1) / 2 - first, corrections, sums + x, sum_stride);
          continue;
        }
      }
      BlockOf<false>(rows, vectors, weights + begin, weight_stride,
                     value_memory_ + count_ * x + begin * width, width, end - begin, corrections,
                     sums + x, sum_stride);
    }
  }

  // Whether all values are finite numbers.
  bool ValuesAreFinite() const {
    if (!values_in_place_) return values_are_finite_;
    if (value_scales_ != nullptr) {
      return std::all_of(value_scales_, value_scales_ + count_,
                         [](float scale) { return std::isfinite(scale); });
    }
    if constexpr (!std::is_same_v<T, C>) {
      if (!values_are_cached_) return AreFinite(own_values_);
    }
    return AreFinite(values_);
  }

 private:
  template <typename Value>
  bool AreFinite(const Value* values) const {
    const DF d;
    VF non_finite = hn::Zero(d);  // as in PackRows
    for (size_t j = 0; j < count_; ++j) {
      for (size_t x = 0; x < v_channels_; x += kLanes) {
        const VF v = LoadFloats(d, values + j * value_stride_ + x);
        non_finite = hn::Add(non_finite, hn::Sub(v, v));
      }
    }
    return hn::AllTrue(d, hn::Eq(non_finite, hn::Zero(d)));
  }

  template <bool kPairs>
  void ScorePacked(size_t rows, const float* queries, size_t query_stride, size_t begin, size_t end,
                   float* scores, size_t stride) const {
    // Products are summed up in pieces of this many channels: shorter ones are more
    // exact, but each piece loads and stores the scores once more. Pieces of 32, 64
    // and 128 run at 88, 95 and 98 % of the peak on Zen 4.
    constexpr size_t kDepth = 128;
    const size_t channels = kPairs ? channels_ / 2 : channels_;
    begin = begin / kLanes * kLanes;
    while (begin < end) {
      const size_t panel = begin / kPanel * kPanel;
      const size_t width = PanelVectors(panel, count_) * kLanes;
      const size_t stop = std::min(panel + width, PaddedColumns(end));
      const float* keys = key_memory_ + panel * channels + (begin - panel);
      for (size_t x = 0; x < channels; x += kDepth) {
        BlockOf<kPairs>(rows, (stop - begin) / kLanes, queries + x, query_stride, keys + x * width,
                        width, std::min(kDepth, channels - x), x == 0 ? nullptr : kOnes.data(),
                        scores + begin, stride);
      }
      begin = stop;
    }
  }

  const size_t channels_;
  const size_t v_channels_;
  const bool pairs_;
  float* key_memory_;          // packed [channels][count]
  float* const value_memory_;  // packed [count][v_channels]
  size_t count_ = 0;
  bool in_place_ = false;
  bool values_in_place_ = false;
  bool values_are_finite_ = false;
  bool values_are_pairs_ = false;
  bool keys_are_floats_ = kIsFloat<C>;
  bool values_are_cached_ = true;
  const C* keys_ = nullptr;
  const float* float_keys_ = nullptr;  // instead of keys_, if they are floats and C is not
  const float* key_scales_ = nullptr;  // of keys_, if they are int8
  size_t key_stride_ = 0;
  const C* values_ = nullptr;
  const T* own_values_ = nullptr;        // instead of values_, if not values_are_cached_
  const float* value_scales_ = nullptr;  // of values_, if they are int8
  size_t value_stride_ = 0;
};

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_TILE_DATA_INL_H_
