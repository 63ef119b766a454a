// Which rows and keys each block of the attention kernel works on. For kernels
// on any device: constexpr throughout.
#ifndef ROPE_CUDA_SCHEDULE_H_
#define ROPE_CUDA_SCHEDULE_H_

#include "call.h"

namespace rope::cuda {

// Rows are the queries of all heads that share a key-value head, side by side:
// row r is query r / group of head kv_head * group + r % group.
struct Task {
  int64_t batch = 0, kv_head = 0;
  int64_t block = 0;  // of the batch row's query rows
  int64_t unit = 0;   // of batch row, key-value head and block
  int64_t split = 0;  // of the unit's keys
  int64_t first_row = 0;
  int64_t rows = 0;
};

// Later blocks see more keys and come first, so that all end at about the same time.
template <typename T>
constexpr Task TaskOf(const Call<T>& call, int64_t index) {
  Task task;
  task.split = index % call.splits;
  task.unit = index / call.splits;
  const int64_t heads = call.batch * call.kv_num_heads;
  task.block = call.blocks - 1 - task.unit / heads;
  task.batch = task.unit % heads / call.kv_num_heads;
  task.kv_head = task.unit % call.kv_num_heads;
  task.first_row = task.block * call.shape.rows;
  const int64_t rows = call.length * call.group() - task.first_row;
  task.rows = rows < call.shape.rows ? rows : call.shape.rows;
  return task;
}

// The places in the call of the queries of a block of rows.
constexpr Range PlacesOf(int64_t first_row, int64_t rows, int64_t group) {
  return {first_row / group, (first_row + rows - 1) / group + 1};
}

// The tiles of some spans that belong to one of `splits` workers: every splits-th.
class TileWalk {
 public:
  constexpr TileWalk(const Range* begin, const Range* end, int64_t tile_keys, int64_t split,
                     int64_t splits)
      : span_(begin),
        end_(end),
        at_(begin == end ? 0 : begin->begin),
        tile_keys_(tile_keys),
        skip_(split),
        splits_(splits) {}

  // Takes the next tile; false if there is none.
  constexpr bool Next(Range& tile) {
    for (; span_ != end_; Step()) {
      if (skip_-- > 0) continue;
      tile = {at_, at_ + tile_keys_ < span_->end ? at_ + tile_keys_ : span_->end};
      skip_ = splits_ - 1;
      Step();
      return true;
    }
    return false;
  }

 private:
  constexpr void Step() {
    at_ += tile_keys_;
    if (at_ < span_->end) return;
    ++span_;
    if (span_ != end_) at_ = span_->begin;
  }

  const Range* span_;
  const Range* end_;
  int64_t at_;
  int64_t tile_keys_;
  int64_t skip_;
  int64_t splits_;
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_SCHEDULE_H_
