// Angles of the keys of a raw cache, which are rotated when they are read.
#ifndef ROPE_CUDA_KEY_ANGLES_H_
#define ROPE_CUDA_KEY_ANGLES_H_

#include <cmath>

#include "call.h"
#include "device.h"

namespace rope::cuda {

// A table with a row for each key would be as large as the keys, and its sines in float64 would
// take longer than reading them. So there are two small ones, whose angles add up: one row for each
// kKeyStep positions, and kKeyStep rows for those between.
//
// Positions of a band's map are counted from that of a row's first key, so that no row of the first
// table is below zero, whatever the shift.
ROPE_DEVICE_HOST int64_t FirstShared(const Band& band, int64_t shift) {
  if (band.chunk > 0) return 0;
  return shift / band.group - (shift % band.group < 0 ? 1 : 0);
}
ROPE_DEVICE_HOST int64_t SharedOf(const Band& band, int64_t position) {
  return band.group == 1 && band.chunk == 0 ? position
                                            : static_cast<int64_t>(band.Shared(position));
}

// How many rows the first table of so many keys has for a band.
inline int64_t KeyRowsOf(const Band& band, int64_t keys) {
  const int64_t last =
      band.chunk > 0 ? (band.chunk - 1) / band.group : (keys + band.group - 1) / band.group;
  return last / kKeyStep + 1;
}

// Makes one pair's cosine and sine, from float64, in a row of the tables: those of the first one,
// then those of the second. shift(b) is that of a row of the batch. What is rounded to float32 is
// left to KeyAngles.
template <typename Shift>
ROPE_DEVICE void FillKeyAngle(const Rotation& rotation, const KeyTables& tables, const Shift& shift,
                              int64_t row, int64_t pair) {
  const int64_t first_rows = tables.first_rows();
  const bool first = row < first_rows;
  const int64_t in_table = first ? row : row - first_rows;
  const int64_t of_map = first ? tables.batch_rows * tables.rows : kKeyStep;
  const Band& band = tables.bands[in_table / of_map];
  const int64_t place = in_table % of_map;
  const int64_t shared =
      first ? FirstShared(band, shift(place / tables.rows)) + place % tables.rows * kKeyStep
            : place;
  const double angle = band.key_scale * static_cast<double>(shared) *
                       static_cast<double>(rotation.frequencies[pair]);
  const double gain = first ? static_cast<double>(rotation.gain) : 1.0;
  float* angles = tables.values + row * 2 * rotation.pairs;
  angles[pair] = static_cast<float>(std::cos(angle) * gain);
  angles[rotation.pairs + pair] = static_cast<float>(std::sin(angle) * gain);
}

// The angles of one key.
class KeyAngles {
 public:
  template <typename T>
  ROPE_DEVICE KeyAngles(const Call<T>& call, int64_t map, int64_t batch, int64_t key)
      : rotation_(call.rotation) {
    const KeyTables& tables = call.key_angles;
    const Band& band = tables.bands[map];
    const int64_t shift = call.shifts[batch];
    const int64_t shared = SharedOf(band, key + shift);
    const int64_t behind = shared - FirstShared(band, shift);
    const int64_t row = tables.batch_rows == 1 ? 0 : batch;
    const int64_t pitch = 2 * rotation_.pairs;
    first_ =
        tables.values + ((map * tables.batch_rows + row) * tables.rows + behind / kKeyStep) * pitch;
    second_ = tables.values + (tables.first_rows() + map * kKeyStep + behind % kKeyStep) * pitch;
    const double position = band.key_scale * static_cast<double>(shared);
    rounded_ = static_cast<float>(position);
    lost_ = static_cast<float>(position - static_cast<double>(rounded_));
  }

  ROPE_DEVICE void At(int64_t pair, float& cosine, float& sine) const {
    const float c1 = first_[pair], s1 = first_[rotation_.pairs + pair];
    const float c2 = second_[pair], s2 = second_[rotation_.pairs + pair];
    cosine = c1 * c2 - s1 * s2;
    sine = s1 * c2 + c1 * s2;
    if (!rotation_.exact_angles) Round(rotation_.frequencies[pair], cosine, sine);
  }

 private:
  // Exporters round the position and its product with the frequency to float32, which turns the
  // angle by as much as the roundings took.
  ROPE_DEVICE void Round(float frequency, float& cosine, float& sine) const {
    const float angle = rounded_ * frequency;
    const float turn = -std::fma(rounded_, frequency, -angle) - lost_ * frequency;
    float c, s;
    if (std::fabs(turn) < 0.0625f) {
      const float square = turn * turn;
      c = 1.0f - square * (0.5f - square * (1.0f / 24.0f));
      s = turn - turn * square * (1.0f / 6.0f);
    } else {
      c = std::cos(turn);
      s = std::sin(turn);
    }
    const float before = cosine;
    cosine = before * c - sine * s;
    sine = sine * c + before * s;
  }

  const Rotation& rotation_;
  const float *first_, *second_;  // rows of the two tables
  float rounded_, lost_;          // the position, and what float32 does not hold of it
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_KEY_ANGLES_H_
