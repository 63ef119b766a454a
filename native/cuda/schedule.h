// Which rows and keys each block of the attention kernel works on. For kernels
// on any device: constexpr throughout.
#ifndef ROPE_CUDA_SCHEDULE_H_
#define ROPE_CUDA_SCHEDULE_H_

#include <algorithm>

#include "call.h"

namespace rope::cuda {

// Query rows that a key-value head of a batch row may have.
inline constexpr int64_t kMostRows = int64_t{1} << 31;

// Rows are the queries of all heads that share a key-value head, side by side:
// row r of a batch row is query r / group of head kv_head * group + r % group. A
// grid has fewer than 2^31 blocks, so 32 bits hold all of a task.
struct Task {
  int32_t batch = 0, kv_head = 0;
  int32_t block = 0;           // of the batch row's query rows
  int32_t unit = 0;            // of batch row, key-value head and block
  int32_t split = 0;           // of the unit's keys
  int32_t first_in_block = 0;  // where only some of a block's rows are computed
  int32_t rows = 0;            // of those

  // Of a row of the task: its query's place in the call, and its head.
  template <typename T>
  constexpr int64_t PlaceOf(const Call<T>& call, int row) const {
    return RowOf(call, row) / static_cast<uint32_t>(call.group());
  }
  template <typename T>
  constexpr int64_t HeadOf(const Call<T>& call, int row) const {
    return kv_head * call.group() + RowOf(call, row) % static_cast<uint32_t>(call.group());
  }

 private:
  // Fewer than kMostRows, in 32 bits since divisions of 64 are slow on a device.
  template <typename T>
  constexpr uint32_t RowOf(const Call<T>& call, int row) const {
    return static_cast<uint32_t>(block * call.schedule.shape.rows + first_in_block + row);
  }
};

// Later blocks see more keys and come first, so that all end at about the same time.
template <typename T>
constexpr Task TaskOf(const Call<T>& call, int64_t index) {
  Task task;
  task.split = static_cast<int32_t>(index % call.schedule.splits);
  task.unit = static_cast<int32_t>(index / call.schedule.splits);
  const auto kv_heads = static_cast<int32_t>(call.kv_num_heads);
  const auto heads = static_cast<int32_t>(call.batch) * kv_heads;
  task.block = static_cast<int32_t>(call.schedule.blocks) - 1 - task.unit / heads;
  task.batch = task.unit % heads / kv_heads;
  task.kv_head = task.unit % kv_heads;
  const int64_t first_row = static_cast<int64_t>(task.block) * call.schedule.shape.rows;
  task.rows = static_cast<int32_t>(
      std::min<int64_t>(call.schedule.shape.rows, call.length * call.group() - first_row));
  return task;
}

// The places in the call of the queries of a block of rows.
constexpr Range PlacesOf(int64_t first_row, int64_t rows, int64_t group) {
  return {first_row / group, (first_row + rows - 1) / group + 1};
}

// The tiles of a task: of those of its block's spans, one after the other, every
// splits-th.
template <typename T>
class TileWalk {
 public:
  constexpr TileWalk(const Call<T>& call, const Task& task, int tile_keys)
      : call_(call), tile_keys_(tile_keys), number_(task.split) {
    const SpanList list = call.schedule.lists[task.batch * call.schedule.batch_stride + task.block];
    span_ = list.first;
    end_ = list.end;
  }

  // Takes the next tile; false if there is none.
  constexpr bool Next(Span& tile) {
    for (; span_ != end_; ++span_) {
      const Span& span = call_.schedule.spans[span_];
      const int64_t at = span.keys.begin + int64_t{number_} * tile_keys_;
      if (at < span.keys.end) {
        number_ += static_cast<int32_t>(call_.schedule.splits);
        tile = {{at, std::min(at + tile_keys_, span.keys.end)}, span.band, span.sight};
        return true;
      }
      number_ -= static_cast<int32_t>((span.keys.size() + tile_keys_ - 1) / tile_keys_);
    }
    return false;
  }

 private:
  const Call<T>& call_;
  const int tile_keys_;
  int32_t span_ = 0, end_ = 0;
  int32_t number_;  // of the next tile, counted from the span's first one
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_SCHEDULE_H_
