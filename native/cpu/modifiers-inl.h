// What happens to a score between the product and the softmax: scale, bias,
// softcap, biases.
#if defined(ROPE_MODIFIERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_MODIFIERS_INL_H_
#undef ROPE_MODIFIERS_INL_H_
#else
#define ROPE_MODIFIERS_INL_H_
#endif

#include <limits>

#include "attention.h"
#include "distance_run.h"
#include "element-inl.h"
#include "softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

// tanh, relative error below 2.5e-7; NaN for NaN.
HWY_INLINE VF Tanh(DF d, VF x) {
  const VF one = hn::Set(d, 1.0f);
  const VF size = hn::Abs(x);
  // x + x^3 * q(x^2) for |x| <= 0.625; q is the minimax fit, off by 9e-9.
  const VF u = hn::Mul(x, x);
  VF q = hn::Set(d, -5.704985932e-03f);
  q = hn::MulAdd(q, u, hn::Set(d, 2.063908614e-02f));
  q = hn::MulAdd(q, u, hn::Set(d, -5.373971537e-02f));
  q = hn::MulAdd(q, u, hn::Set(d, 1.333144158e-01f));
  q = hn::MulAdd(q, u, hn::Set(d, -3.333328068e-01f));
  const VF near = hn::MulAdd(hn::Mul(x, u), q, x);
  const VF t = ExpNonPositive(d, hn::Mul(size, hn::Set(d, -2.0f)));
  const VF far = hn::CopySign(hn::Div(hn::Sub(one, t), hn::Add(one, t)), x);
  return hn::IfThenElse(hn::Le(size, hn::Set(d, 0.625f)), near, far);
}

// What the heads of a query add to the scores of a tile's keys by distance.
class DistanceBiases {
 public:
  // `memory` is for a tile's keys; only buckets need it.
  DistanceBiases(const DistanceRun& run, float* memory) : run_(run), memory_(memory) {}

  bool any() const { return run_.distances.any(); }

  // Takes a head of the query at an index, and the columns [begin, end) of a tile.
  void Begin(int64_t batch, int64_t head, int64_t index, Range tile, size_t begin, size_t end) {
    const Distances& all = run_.distances;
    const int32_t* row = run_.shown_before.Row(batch);
    before_ = row == nullptr ? nullptr : row + tile.begin;
    own_ = static_cast<int32_t>(row == nullptr ? index - tile.begin : row[index]);
    slope_ = all.slopes == nullptr ? 0.0f : all.slopes[head];
    buckets_ = nullptr;
    bucket_ = 0.0f;
    if (all.buckets == 0) return;
    // The distance falls from column to column, and with it the bucket. Of most tiles all keys are
    // in one bucket.
    const size_t last = HWY_MIN(end, static_cast<size_t>(tile.size()));
    if (DistanceTo(last - 1) >= all.starts[all.buckets - 1]) {
      bucket_ = all.BiasOf(all.buckets - 1, head);
    } else if (all.buckets == 1 || DistanceTo(begin) < all.starts[1]) {
      bucket_ = all.BiasOf(0, head);
    } else if (before_ == nullptr && !run_.table.empty()) {
      buckets_ = run_.table.Row(head, own_);
    } else {
      buckets_ = memory_;
      Fill(head, begin, last);
      for (size_t c = last; c < end; ++c) memory_[c] = 0.0f;
    }
  }

  // The biases of the columns from c on.
  HWY_INLINE VF At(DF d, size_t c) const {
    const VF bucket = buckets_ == nullptr ? hn::Set(d, bucket_) : hn::LoadU(d, buckets_ + c);
    if (run_.distances.slopes == nullptr) return bucket;
    const hn::RebindToSigned<DF> di;
    using TI = hn::TFromD<decltype(di)>;
    const auto keys =
        before_ == nullptr ? hn::Iota(di, static_cast<TI>(c)) : hn::LoadU(di, before_ + c);
    const VF distance = hn::Abs(hn::ConvertTo(d, hn::Sub(hn::Set(di, own_), keys)));
    return hn::NegMulAdd(hn::Set(d, slope_), distance, bucket);
  }

 private:
  int64_t DistanceTo(size_t column) const {
    return own_ - (before_ == nullptr ? static_cast<int64_t>(column) : int64_t{before_[column]});
  }

  void Fill(int64_t head, size_t begin, size_t end) {
    int64_t bucket = run_.distances.BucketOf(DistanceTo(begin));
    for (size_t c = begin; c < end; ++c) {
      while (bucket > 0 && DistanceTo(c) < run_.distances.starts[bucket]) --bucket;
      memory_[c] = run_.distances.BiasOf(bucket, head);
    }
  }

  const DistanceRun& run_;
  float* const memory_;              // [kTileKeys]: of buckets that no table has
  const int32_t* before_ = nullptr;  // the places of a tile's keys; null: they are the columns
  int32_t own_ = 0;                  // that of the query
  float slope_ = 0.0f;
  const float* buckets_ = nullptr;  // bucket biases by column; null: all are in one bucket:
  float bucket_ = 0.0f;
};

template <typename T>
class ScoreModifiers {
 public:
  static constexpr size_t kBuffers = 3;  // of a tile's keys each

  ScoreModifiers(const AttentionParams& params, const AttentionCall<T>& args,
                 const DistanceRun& distances, float scale, float* memory, size_t tile_keys)
      : args_(args),
        scale_(scale),
        softcap_(params.softcap),
        before_(args.bias_before_softcap.data == nullptr ? nullptr : memory),
        after_(args.bias.data == nullptr ? nullptr : memory + tile_keys),
        distances_(distances, memory + 2 * tile_keys),
        only_distances_(softcap_ == 0 && before_ == nullptr && after_ == nullptr) {}

  // Whether a run needs more than the scale, which the softmax applies itself.
  static bool Any(const AttentionParams& params, const AttentionCall<T>& args) {
    return params.softcap > 0 || args.bias.data != nullptr ||
           args.bias_before_softcap.data != nullptr || params.has_distances();
  }

  // Turns the products [begin, end) of a row, columns of the tile, into scores.
  // Bounds are multiples of a vector. Where a bias hides keys, the mask without them is
  // written to `shown`.
  void Apply(int64_t batch, int64_t head, int64_t place, Range tile, size_t begin, size_t end,
             float* HWY_RESTRICT scores, RowMask& mask, float* shown) {
    if (distances_.any()) {
      distances_.Begin(batch, head, args_.past(batch) + place, tile, begin, end);
      if (only_distances_) return AddDistances(begin, end, scores);
    }
    Load(args_.bias_before_softcap, batch, head, place, tile, begin, end, before_);
    Load(args_.bias, batch, head, place, tile, begin, end, after_);
    const DF d;
    const VF scale = hn::Set(d, scale_);
    const VF cap = hn::Set(d, softcap_);
    // Of a denormal cap the reciprocal would be infinite, and 0 times that no number.
    const VF over_cap = hn::Set(d, HWY_MIN(1.0f / softcap_, std::numeric_limits<float>::max()));
    const VF infinity = hn::Set(d, kNegativeInfinity);
    auto hidden = hn::MaskFalse(d);
    for (size_t c = begin; c < end; c += kLanes) {
      VF s = hn::Mul(hn::LoadU(d, scores + c), scale);
      if (before_ != nullptr) {
        const VF bias = hn::LoadU(d, before_ + c);
        hidden = hn::Or(hidden, hn::Eq(bias, infinity));
        s = hn::Add(s, bias);
      }
      if (softcap_ > 0) s = hn::Mul(Tanh(d, hn::Mul(s, over_cap)), cap);
      if (after_ != nullptr) {
        const VF bias = hn::LoadU(d, after_ + c);
        hidden = hn::Or(hidden, hn::Eq(bias, infinity));
        s = hn::Add(s, bias);
      }
      if (distances_.any()) s = hn::Add(s, distances_.At(d, c));
      hn::StoreU(s, d, scores + c);
    }
    if (hn::AllFalse(d, hidden)) return;
    for (size_t c = begin; c < end; ++c) {
      const bool off = (before_ != nullptr && before_[c] == kNegativeInfinity) ||
                       (after_ != nullptr && after_[c] == kNegativeInfinity);
      shown[c] = off ? 0.0f : mask.shown == nullptr ? 1.0f : mask.shown[c];
    }
    mask.shown = shown;
  }

 private:
  // Apply where there is nothing else.
  void AddDistances(size_t begin, size_t end, float* HWY_RESTRICT scores) const {
    const DF d;
    const VF scale = hn::Set(d, scale_);
    for (size_t c = begin; c < end; c += kLanes) {
      hn::StoreU(hn::MulAdd(hn::LoadU(d, scores + c), scale, distances_.At(d, c)), d, scores + c);
    }
  }

  // Puts the biases of columns [begin, end) to the same places of `out`.
  static void Load(const Bias<T>& bias, int64_t batch, int64_t head, int64_t place, Range tile,
                   size_t begin, size_t end, float* out) {
    if (out == nullptr) return;
    const size_t real = HWY_MIN(end, static_cast<size_t>(tile.size()));
    const T* from = bias.At(batch, head, place, tile.begin);
    if (bias.key_stride == 0) {
      std::fill(out + begin, out + real, ToFloat(*from));
    } else {
      Convert(from + begin, real - begin, out + begin);
    }
    std::fill(out + real, out + end, 0.0f);
  }

  const AttentionCall<T>& args_;
  const float scale_;
  const float softcap_;
  float* const before_;  // a row's bias before the softcap, null if there is none
  float* const after_;   // and the one after it
  DistanceBiases distances_;
  const bool only_distances_;
};

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_MODIFIERS_INL_H_
