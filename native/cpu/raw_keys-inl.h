// A few keys of a raw cache, which are rotated and multiplied.
#if defined(ROPE_RAW_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_RAW_KEYS_INL_H_
#undef ROPE_RAW_KEYS_INL_H_
#else
#define ROPE_RAW_KEYS_INL_H_
#endif

#include <type_traits>
#include <vector>

#include "dot-inl.h"
#include "key_angles-inl.h"
#include "rotation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

// Up to kAngleKeys keys of a batch row, whose angles are made once for all heads.
template <typename T>
class RawKeys {
 public:
  // The floats that it needs of memory.
  static size_t Floats(const KeyAngles& angles, size_t channels) {
    return static_cast<size_t>(kAngleKeys) * (angles.maps() * angles.row_size() + channels);
  }

  RawKeys(const AttentionParams& params, const KeyAngles& key_angles, size_t channels,
          float* memory)
      : params_(params),
        key_angles_(key_angles),
        channels_(channels),
        angles_(memory),
        rotated_(memory +
                 static_cast<size_t>(kAngleKeys) * key_angles.maps() * key_angles.row_size()),
        ready_(key_angles.maps()) {}

  void Begin(int64_t batch, Range keys) {
    batch_ = batch;
    keys_ = keys;
    std::fill(ready_.begin(), ready_.end(), false);
  }

  // Writes those keys of a head that stand at `from`, rotated to where a map has them. scales are
  // those of keys of int8.
  template <typename Key>
  void Rotate(size_t map, Range keys, const Key* from, size_t stride, const float* scales,
              float* out) {
    const float* angles = AnglesOf(map, keys.begin);
    const size_t count = static_cast<size_t>(keys.size());
    for (size_t j = 0; j < count; ++j) {
      RotateHead(params_, from + j * stride, angles + j * key_angles_.row_size(), channels_,
                 out + j * channels_);
      if constexpr (kIsInt8<Key>)
        StoreScaled(out + j * channels_, scales[j], channels_, out + j * channels_);
    }
    (void)scales;
    if (params_.fast) RoundTo<T>(out, count * channels_);
  }

  // scores[r][0, ...) = queries · those keys. Columns up to the next multiple of kDotKeys are
  // written.
  template <typename Key>
  void Score(size_t map, Range keys, const Key* from, size_t stride, const float* scales,
             size_t rows, const float* queries, size_t query_stride, float* scores,
             size_t score_stride) {
    const size_t count = static_cast<size_t>(keys.size());
    const size_t pairs = key_angles_.row_size() / 2;
    const bool rounds = params_.fast && !kIsFloat<T>;
    if (2 * pairs == channels_ && pairs % kLanes == 0 && !params_.interleaved && !rounds) {
      // Other heads read theirs in between, so the CPU does not see that memory is read in order.
      const RotatedKeys<Key> rotated{from, stride, AnglesOf(map, keys.begin), pairs,
                                     static_cast<size_t>(kAngleKeys)};
      DotProducts(rows, queries, query_stride, rotated, 0, count, scores, score_stride);
      if constexpr (kIsInt8<Key>) {
        MultiplyColumns(rows, 0, count, scales, scores, score_stride);
      }
      return;
    }
    Rotate(map, keys, from, stride, scales, rotated_);
    const StoredKeys<float> rotated{rotated_, channels_, channels_};
    DotProducts(rows, queries, query_stride, rotated, 0, count, scores, score_stride);
  }

 private:
  const float* AnglesOf(size_t map, int64_t key) {
    float* rows = angles_ + map * static_cast<size_t>(kAngleKeys) * key_angles_.row_size();
    if (!ready_[map]) key_angles_.Fill(map, batch_, keys_, rows);
    ready_[map] = true;
    return rows + static_cast<size_t>(key - keys_.begin) * key_angles_.row_size();
  }

  const AttentionParams& params_;
  const KeyAngles& key_angles_;
  const size_t channels_;
  float* const angles_;   // [maps][kAngleKeys][cosines, sines]
  float* const rotated_;  // [kAngleKeys][channels]
  int64_t batch_ = 0;
  Range keys_;
  std::vector<bool> ready_;  // by map: angles_
};

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_RAW_KEYS_INL_H_
