// The angles of a raw cache's keys, which every run rotates anew.
#if defined(ROPE_KEY_ANGLES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_KEY_ANGLES_INL_H_
#undef ROPE_KEY_ANGLES_INL_H_
#else
#define ROPE_KEY_ANGLES_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "angles-inl.h"
#include "divide.h"
#include "plan.h"
#include "visible.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

// Cosines and sines for the keys of a run, for each map: bands that place keys alike share a map.
// A table, made in float64, has those of every kAngleKeys-th key, and those of the distances from
// 0 to kAngleKeys - 1. The angle of any other key is the sum of two angles of the table: that of
// the table's key before it, and that of the distance from there. To add two angles costs a
// fraction of a sine, and the table stays small.
class KeyAngles {
 public:
  // `shifts` are position - index of each row's tokens; one row of tables serves
  // the whole batch where they are the same.
  KeyAngles(const AttentionParams& params, Host& host, const std::vector<int64_t>& shifts,
            int64_t total)
      : params_(params), pairs_(params.frequencies.size()), shifts_(shifts) {
    if (!params.raw_cache) return;
    for (const Band& band : params.bands) {
      size_t map = 0;
      while (map < maps_.size() && !maps_[map].SameKeys(band)) ++map;
      if (map == maps_.size()) maps_.push_back(band);
      map_of_.push_back(map);
    }
    if (pairs_ == 0) return;
    for (const float f : params.frequencies) {
      highest_ = std::max(highest_, std::abs(static_cast<double>(f)));
    }
    if (std::equal(shifts.begin() + 1, shifts.end(), shifts.begin())) shifts_.resize(1);
    blocks_ = DivideUp(total, kAngleKeys);
    FillTable(host);
  }

  bool ok() const { return !table_ || table_->data() != nullptr; }
  size_t maps() const { return maps_.size(); }
  size_t MapOf(size_t band) const { return map_of_[band]; }
  // Numbers for one key: cosines, then sines.
  size_t row_size() const { return 2 * pairs_; }

  // Writes a row for each of some keys of a batch row.
  void Fill(size_t map, int64_t batch, Range keys, float* rows) const {
    if (pairs_ == 0) return;
    const Band& band = maps_[map];
    const int64_t shift_row = shifts_.size() == 1 ? 0 : batch;
    const int64_t shift = shifts_[static_cast<size_t>(shift_row)];
    while (!keys.empty()) {
      const int64_t block = keys.begin / kAngleKeys;
      const int64_t end = std::min(keys.end, (block + 1) * kAngleKeys);
      const double place = Place(band, keys.begin + shift);
      const double steps = place - Place(band, block * kAngleKeys + shift);
      // Places grow by one from key to key, unless a group shares one or a chunk begins.
      const int64_t more = end - 1 - keys.begin;
      const bool in_order = Place(band, end - 1 + shift) - place == static_cast<double>(more);
      const int64_t count = in_order ? more + 1 : 1;
      const double farthest = std::max(std::abs(place), std::abs(place + kAngleKeys));
      const bool summed = steps >= 0 && steps < kAngleKeys && CanRound(band.key_scale * farthest);
      for (int64_t j = 0; j < count; ++j, rows += row_size()) {
        const double position = band.key_scale * (place + static_cast<double>(j));
        if (summed) {
          FillSum(TableRow(map, kAngleKeys + shift_row * blocks_ + block),
                  TableRow(map, static_cast<int64_t>(steps) + j), position, rows);
        } else {
          FillRow(params_.frequencies, position, params_.exact_angles, params_.gain, rows);
        }
      }
      keys.begin += count;
    }
  }

 private:
  // Up to this angle, what rounding to float32 adds to it is so small that the first terms of
  // its sine and cosine are enough.
  static constexpr double kLargestAngle = 131072;

  bool CanRound(double position) const {
    return params_.exact_angles ||
           (HWY_NATIVE_FMA && std::abs(position) * highest_ <= kLargestAngle);
  }

  // The place that a band gives a position, before its key_scale.
  static double Place(const Band& band, int64_t position) {
    const bool own = band.group == 1 && band.chunk == 0;  // divisions are slow
    return own ? static_cast<double>(position) : band.Shared(position);
  }

  // The first kAngleKeys rows of a map are those of the distances.
  int64_t rows_per_map() const {
    return kAngleKeys + static_cast<int64_t>(shifts_.size()) * blocks_;
  }
  float* TableRow(size_t map, int64_t row) const {
    return table_->data() +
           (map * static_cast<size_t>(rows_per_map()) + static_cast<size_t>(row)) * row_size();
  }

  void FillTable(Host& host) {
    const int64_t rows = static_cast<int64_t>(maps()) * rows_per_map();
    table_.emplace(host, static_cast<size_t>(rows) * row_size());
    if (table_->data() == nullptr) return;
    const int64_t rows_per_task = kPairsPerTask / static_cast<int64_t>(pairs_) + 1;
    ForEach(host, static_cast<size_t>(DivideUp(rows, rows_per_task)), [&](size_t task) {
      const int64_t begin = static_cast<int64_t>(task) * rows_per_task;
      for (int64_t r = begin; r < std::min(rows, begin + rows_per_task); ++r) {
        const size_t map = static_cast<size_t>(r / rows_per_map());
        const Band& band = maps_[map];
        const int64_t row = r % rows_per_map();
        double place = static_cast<double>(row);
        if (row >= kAngleKeys) {
          const int64_t block = row - kAngleKeys;
          const int64_t shift = shifts_[static_cast<size_t>(block / blocks_)];
          place = Place(band, block % blocks_ * kAngleKeys + shift);
        }
        FillRow(params_.frequencies, band.key_scale * place, true,
                row < kAngleKeys ? 1 : params_.gain, TableRow(map, row));
      }
    });
  }

  // Writes cosines and sines of the sum of two angles, which is that of a position.
  void FillSum(const float* base, const float* distance, double position,
               float* HWY_RESTRICT out) const {
    const DF d;
    const float as_float = static_cast<float>(position);
    const VF at = hn::Set(d, as_float);
    const VF lost = hn::Set(d, static_cast<float>(position - static_cast<double>(as_float)));
    for (size_t x = 0; x < pairs_; x += kLanes) {
      const size_t count = HWY_MIN(kLanes, pairs_ - x);
      const auto load = [&](const float* from) HWY_ATTR {
        return count == kLanes ? hn::LoadU(d, from) : hn::LoadN(d, from, count);
      };
      const VF base_cosine = load(base + x);
      const VF base_sine = load(base + pairs_ + x);
      const VF distance_cosine = load(distance + x);
      const VF distance_sine = load(distance + pairs_ + x);
      VF cosine = hn::NegMulAdd(base_sine, distance_sine, hn::Mul(base_cosine, distance_cosine));
      VF sine = hn::MulAdd(base_cosine, distance_sine, hn::Mul(base_sine, distance_cosine));
      if (!params_.exact_angles) {
        // What rounding adds to the angle; then a rotation by it, which is three shears.
        const VF frequency = load(params_.frequencies.data() + x);
        const VF angle = hn::Mul(at, frequency);
        const VF more = hn::NegMulSub(lost, frequency, hn::MulSub(at, frequency, angle));
        const VF half = hn::Mul(more, hn::Set(d, 0.5f));
        cosine = hn::NegMulAdd(sine, half, cosine);
        sine = hn::MulAdd(cosine, more, sine);
        cosine = hn::NegMulAdd(sine, half, cosine);
      }
      if (count == kLanes) {
        hn::StoreU(cosine, d, out + x);
        hn::StoreU(sine, d, out + pairs_ + x);
      } else {
        hn::StoreN(cosine, d, out + x, count);
        hn::StoreN(sine, d, out + pairs_ + x, count);
      }
    }
  }

  const AttentionParams& params_;
  const size_t pairs_;
  std::vector<int64_t> shifts_;  // one, or of each batch row
  std::vector<Band> maps_;       // the first band of each map
  std::vector<size_t> map_of_;   // by band
  double highest_ = 0;           // frequency
  int64_t blocks_ = 0;           // of kAngleKeys keys
  std::optional<ScratchFloats> table_;
};

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_KEY_ANGLES_INL_H_
