// What the kernel that plans a run is given, and what it makes: a plain value that is copied to the
// device.
#ifndef ROPE_CUDA_PLAN_CALL_H_
#define ROPE_CUDA_PLAN_CALL_H_

#include <cstdint>

#include "call.h"
#include "faults.h"
#include "frequency_rule.h"
#include "max_position.h"
#include "temperature.h"

namespace rope::cuda {

// Where a run's positions, lengths and masks lie, all on the device. Of the call the kernel reads
// what is uploaded or follows from shapes; what it points to below is written.
template <typename T>
struct PlanCall {
  Call<T> call;

  const int32_t* cache_lengths = nullptr;  // [batch]; null: max_past each
  int64_t columns = 0;                     // keys for which every input has a column
  const int64_t* positions = nullptr;      // [axes, batch or 1, length]; null: indices
  int64_t positions_batch_stride = 0, axes = 1, positions_axis_stride = 0;
  const int64_t* mask = nullptr;  // [batch or 1, columns or more]; null: every key is shown
  int64_t mask_batch_stride = 0;
  bool counts_first_keys = false;  // only keys that the mask shows count as first keys
  bool consecutive = false;        // a row's positions must follow one another
  Temperature temperature;
  FrequencyRule rule;  // on the device

  bool rows_alike = false;     // what one row of the batch has, all have
  int64_t spans_of_block = 0;  // that have room
  Span* spans = nullptr;       // [batch or 1, blocks, spans_of_block]
  SpanList* lists = nullptr;   // [batch or 1, blocks]
  int32_t* row_past = nullptr;
  int64_t* shifts = nullptr;
  int64_t* first_keys_ends = nullptr;
  uint8_t* shown = nullptr;         // [batch or 1, columns]; null: no mask
  int32_t* shown_before = nullptr;  // likewise; null: distances count all keys
  float* temperatures = nullptr;
  float* frequencies = nullptr;  // [pairs] by the rule; null: no other kernel asks
  uint8_t* refused = nullptr;
  uint8_t* faults = nullptr;  // [kFaults], which the host reads later; null: nobody does

  // Cached tokens of a row; 0 where the input says what cannot be.
  constexpr int64_t past(int64_t b) const {
    if (cache_lengths == nullptr) return call.max_past;
    return LengthFits(b) && cache_lengths[b] + call.new_keys <= columns ? cache_lengths[b] : 0;
  }
  constexpr bool LengthFits(int64_t b) const {
    return cache_lengths == nullptr || (cache_lengths[b] >= 0 && cache_lengths[b] <= call.max_past);
  }
  constexpr bool Shows(int64_t b, int64_t index) const {
    return mask == nullptr || mask[b * mask_batch_stride + index] != 0;
  }
  constexpr int64_t Position(int64_t b, int64_t place, int64_t axis) const {
    if (positions == nullptr) return past(b) + place;
    return positions[axis * positions_axis_stride + b * positions_batch_stride + place];
  }
  static constexpr bool CanBe(int64_t position) {
    return position >= 0 && position <= kMaxPosition;
  }
  // Position - index of a row's first new token that is shown, whose place this is.
  constexpr int64_t ShiftAt(int64_t b, int64_t place) const {
    if (positions == nullptr || place >= call.length) return 0;
    const int64_t position = Position(b, place, 0);
    return CanBe(position) ? position - past(b) - place : 0;
  }
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_PLAN_CALL_H_
