// cos and sin of the positions of one run, made in float64.
#if defined(ROPE_ANGLES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_ANGLES_INL_H_
#undef ROPE_ANGLES_INL_H_
#else
#define ROPE_ANGLES_INL_H_
#endif

#include <cstdint>
#include <vector>

#include "attention.h"
#include "divide.h"
#include "positions.h"
#include "sincos-inl.h"
#include "workspace.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

// Channel pairs whose angles one task makes: some 20 us of work.
inline constexpr int64_t kPairsPerTask = 8192;

// One row of a table: rotary_dim / 2 cosines, then as many sines, both times the
// gain. Angles that are not exact are as exporters compute them: position and
// product rounded to float32. `position(d, x, count)` gives those of pairs [x, x + count).
template <typename Position>
HWY_INLINE void FillRowAt(const std::vector<float>& frequencies, const Position& position,
                          bool exact, float gain_of_both, float* row) {
  const DD d;
  const hn::Rebind<float, DD> df;
  const size_t pairs = frequencies.size();
  const auto gain = hn::Set(d, static_cast<double>(gain_of_both));
  for (size_t x = 0; x < pairs; x += hn::Lanes(d)) {
    const size_t count = HWY_MIN(hn::Lanes(d), pairs - x);
    const auto frequency = hn::LoadN(df, frequencies.data() + x, count);
    const VD at = position(d, x, count);
    const VD angle = exact ? hn::Mul(at, hn::PromoteTo(d, frequency))
                           : hn::PromoteTo(d, hn::Mul(hn::DemoteTo(df, at), frequency));
    VD sine;
    VD cosine;
    SinCos(d, angle, sine, cosine);
    hn::StoreN(hn::DemoteTo(df, hn::Mul(cosine, gain)), df, row + x, count);
    hn::StoreN(hn::DemoteTo(df, hn::Mul(sine, gain)), df, row + pairs + x, count);
  }
}

// A row whose pairs all stand at one position.
inline void FillRow(const std::vector<float>& frequencies, double position, bool exact, float gain,
                    float* row) {
  const auto same = [position](DD d, size_t, size_t) HWY_ATTR { return hn::Set(d, position); };
  FillRowAt(frequencies, same, exact, gain, row);
}

// A row whose pairs stand at positions of their own: pair x at axis(axes[x]).
template <typename Axis>
inline void FillRowOfAxes(const std::vector<float>& frequencies, const std::vector<int64_t>& axes,
                          const Axis& axis, bool exact, float gain, float* row) {
  const auto own = [&](DD d, size_t x, size_t count) HWY_ATTR {
    double lanes[HWY_MAX_LANES_D(DD)] = {};
    for (size_t i = 0; i < count; ++i) lanes[i] = static_cast<double>(axis(axes[x + i]));
    return hn::LoadU(d, lanes);
  };
  FillRowAt(frequencies, own, exact, gain, row);
}

// A row for each row of positions. Table 0 rotates keys; band b's queries use TableOf(b), which is
// table 0 unless the band moves the query.
class AngleTables {
 public:
  // With `shared` positions one row of tables serves the whole batch.
  AngleTables(const AttentionParams& params, Host& host, int64_t batch, int64_t length, bool shared)
      : params_(params),
        length_(length),
        pairs_(static_cast<int64_t>(params.frequencies.size())),
        batch_stride_(shared ? 0 : length),
        rows_(shared ? length : batch * length),
        values_(host, static_cast<size_t>(CountTables(params) * rows_ * 2 * pairs_)) {}

  bool ok() const { return pairs_ == 0 || rows_ == 0 || values_.data() != nullptr; }
  bool rotates() const { return pairs_ != 0; }

  const float* KeyRow(int64_t batch, int64_t row) const { return Row(0, batch, row); }
  const float* QueryRow(size_t band, int64_t batch, int64_t row) const {
    return Row(TableOf(band), batch, row);
  }

  // Fills every table.
  template <typename T>
  void Fill(Host& host, const Positions<T>& positions) {
    if (!rotates()) return;
    FillTable(host, 0, Band{}, positions);
    for (size_t b = 0; b < params_.bands.size(); ++b) {
      if (TableOf(b) != 0) FillTable(host, TableOf(b), params_.bands[b], positions);
    }
  }

 private:
  static int64_t CountTables(const AttentionParams& params) {
    int64_t count = 1;
    for (const Band& band : params.bands) count += band.MovesQuery();
    return count;
  }

  int64_t TableOf(size_t band) const {
    if (!params_.bands[band].MovesQuery()) return 0;
    int64_t table = 0;
    for (size_t b = 0; b <= band; ++b) table += params_.bands[b].MovesQuery();
    return table;
  }

  float* Row(int64_t table, int64_t batch, int64_t row) const {
    return values_.data() + (table * rows_ + batch * batch_stride_ + row) * 2 * pairs_;
  }

  template <typename T>
  void FillTable(Host& host, int64_t table, const Band& band, const Positions<T>& positions) {
    const int64_t rows_per_task = kPairsPerTask / pairs_ + 1;
    ForEach(host, static_cast<size_t>(DivideUp(rows_, rows_per_task)), [&](size_t task) {
      const int64_t begin = static_cast<int64_t>(task) * rows_per_task;
      const int64_t end = begin + rows_per_task < rows_ ? begin + rows_per_task : rows_;
      for (int64_t r = begin; r < end; ++r) {
        if (!params_.position_axes.empty()) {
          const auto axis = [&](int64_t a) {
            return positions.AtAxis(r / length_, r % length_, a);
          };
          FillRowOfAxes(params_.frequencies, params_.position_axes, axis, params_.exact_angles,
                        params_.gain, Row(table, 0, r));
          continue;
        }
        const double p = band.QueryAt(positions.At(r / length_, r % length_));
        FillRow(params_.frequencies, p, params_.exact_angles, params_.gain, Row(table, 0, r));
      }
    });
  }

  const AttentionParams& params_;
  const int64_t length_;
  const int64_t pairs_;
  const int64_t batch_stride_;
  const int64_t rows_;
  ScratchFloats values_;
};

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_ANGLES_INL_H_
