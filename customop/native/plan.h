// How one run is cut into tasks. Everything follows from shapes alone, never
// from the number of threads, so that results do not depend on it.
#ifndef ROPE_PLAN_H_
#define ROPE_PLAN_H_

#include <algorithm>
#include <cstdint>

#include "attention.h"
#include "visible.h"
#include "workspace.h"

namespace rope {

inline constexpr int64_t kTileKeys = 256;  // keys that are packed and scored at a time

// One piece of work: queries [queries) of the heads of one key-value head
// against keys [keys), of which shorter batch rows have only some. Row r of a task is query
// queries.begin + r / group of head kv_head * group + r % group.
struct Task {
  int64_t batch = 0;
  int64_t kv_head = 0;
  Range queries;
  Range keys;
  size_t index = 0;  // among all tasks: where its partial result stands
};

class Plan {
 public:
  template <typename T>
  Plan(const AttentionParams& params, const AttentionArgs<T>& args)
      : kv_heads_(params.kv_num_heads), length_(args.length), total_(args.max_total()) {
    // Rows of a block: enough to repay packing, few enough that a task stays
    // within kFloats of working memory, and in L2.
    constexpr int64_t kRows = 384;
    // Up to this many rows, packing a tile costs more than it saves.
    constexpr int64_t kRowsInPlace = 16;
    constexpr int64_t kFloats = 256 * 1024;
    const int64_t bands = static_cast<int64_t>(params.bands.size());
    const int64_t per_row = bands * args.head_size + args.v_head_size;
    const int64_t per_tile = kTileKeys * (args.head_size + args.v_head_size + 24);
    const int64_t rows = std::clamp<int64_t>((kFloats - per_tile) / per_row, 1, kRows);
    queries_per_block_ =
        std::clamp<int64_t>(rows / params.group(), 1, std::max<int64_t>(1, length_));
    rows_per_block_ = queries_per_block_ * params.group();
    blocks_ = DivideUp(length_, queries_per_block_);
    units_ = args.batch * kv_heads_ * blocks_;
    in_place_ = blocks_ == 1 && rows_per_block_ <= kRowsInPlace;
    // Waking a thread takes as long as some 500,000 products.
    constexpr int64_t kSmall = 1 << 19;
    const int64_t products = units_ * rows_per_block_ * (args.head_size + args.v_head_size);
    small_ = products <= kSmall && products * total_ <= kSmall;
    if (units_ == 0) return;

    // Few query blocks against many keys: also split the keys.
    constexpr int64_t kTasks = 32;
    constexpr int64_t kKeysPerSplit = 512;
    constexpr int64_t kPartialFloats = 256 * 1024;
    const int64_t partial = units_ * rows_per_block_ * (args.v_head_size + 2);
    const int64_t wanted =
        std::min({DivideUp(kTasks, units_), total_ / kKeysPerSplit, kPartialFloats / partial});
    if (wanted > 1) {
      keys_per_split_ = RoundUp(DivideUp(total_, wanted), kTileKeys);
      splits_ = DivideUp(total_, keys_per_split_);
    } else {
      keys_per_split_ = total_;
    }
  }

  size_t tasks() const { return static_cast<size_t>(units_ * splits_); }
  size_t units() const { return static_cast<size_t>(units_); }
  int64_t splits() const { return splits_; }
  int64_t rows_per_block() const { return rows_per_block_; }

  // Whether tiles are read where they stand. Each key then belongs to one task.
  bool in_place() const { return in_place_; }

  // Whether all tasks are done before another thread would have begun.
  bool small() const { return small_; }

  // Later query blocks see more keys and come first, so that threads end together.
  Task At(size_t index) const {
    const int64_t unit = static_cast<int64_t>(index) / splits_;
    const int64_t split = static_cast<int64_t>(index) % splits_;
    const int64_t heads = units_ / blocks_;
    const int64_t block = blocks_ - 1 - unit / heads;
    Task task;
    task.batch = unit % heads / kv_heads_;
    task.kv_head = unit % heads % kv_heads_;
    task.queries.begin = block * queries_per_block_;
    task.queries.end = std::min(length_, task.queries.begin + queries_per_block_);
    task.keys.begin = split * keys_per_split_;
    task.keys.end = std::min(total_, task.keys.begin + keys_per_split_);
    task.index = index;
    return task;
  }

 private:
  int64_t kv_heads_;
  int64_t length_;
  int64_t total_;
  int64_t queries_per_block_ = 1;
  int64_t rows_per_block_ = 1;
  int64_t blocks_ = 0;
  int64_t units_ = 0;
  int64_t splits_ = 1;
  bool in_place_ = false;
  bool small_ = false;
  int64_t keys_per_split_ = 0;
};

}  // namespace rope

#endif  // ROPE_PLAN_H_
