// How one run is cut into tasks. Everything follows from shapes alone, never
// from the number of threads, so that results do not depend on it.
#ifndef ROPE_PLAN_H_
#define ROPE_PLAN_H_

#include <algorithm>
#include <cstdint>

#include "attention.h"
#include "divide.h"
#include "visible.h"

namespace rope {

inline constexpr int64_t kTileKeys = 256;  // keys that are packed and scored at a time
inline constexpr int64_t kAngleKeys = 32;  // raw keys whose angles are made at a time

// What a row of a task carries along behind its v_head_size sums where keys are split: its
// maximum and its total.
inline constexpr int64_t kRowStatistics = 2;

// One piece of work: queries [queries) of the heads of some key-value heads, mostly one,
// against keys [keys), of which shorter batch rows have only some. Its rows are those of its first
// key-value head, then those of the next: query by query, the heads of the group side by side.
struct Task {
  int64_t batch = 0;
  Range kv_heads;
  Range queries;
  Range keys;
  int64_t group = 1;  // heads of a key-value head
  size_t index = 0;   // among all tasks: where its partial result stands

  size_t rows_of_head() const { return static_cast<size_t>(queries.size() * group); }
  size_t rows() const { return static_cast<size_t>(kv_heads.size()) * rows_of_head(); }

  // The place in the call of a row's query, and its head.
  int64_t PlaceOf(size_t row) const {
    return queries.begin + static_cast<int64_t>(row % rows_of_head()) / group;
  }
  int64_t HeadOf(size_t row) const {
    const int64_t kv_head = kv_heads.begin + static_cast<int64_t>(row / rows_of_head());
    return kv_head * group + static_cast<int64_t>(row % rows_of_head()) % group;
  }
};

class Plan {
 public:
  template <typename T>
  Plan(const AttentionParams& params, const AttentionCall<T>& args)
      : kv_heads_(params.kv_num_heads),
        group_(params.group()),
        length_(args.length),
        total_(args.max_total()) {
    // Rows of a block: enough to repay packing, few enough that a task stays
    // within kFloats of working memory, and in L2. Where products take half the time, packing
    // weighs twice as much, so long prompts, which have tasks enough, share it among more rows.
    const int64_t kRows = params.fast && args.length * group_ >= 32 * 768 ? 768 : 384;
    // Up to this many rows, packing a tile costs more than it saves.
    constexpr int64_t kRowsInPlace = 16;
    constexpr int64_t kFloats = 256 * 1024;
    const int64_t bands = static_cast<int64_t>(params.bands.size());
    const int64_t per_row = bands * args.head_size + args.v_head_size;
    // Raw keys are packed for each band. On their way there are kAngleKeys rows of angles for
    // each band, and 3 * kAngleKeys rotated keys: 4 times as many rows for each band are enough.
    constexpr int64_t kRawRows = 4 * kAngleKeys;
    // Scores, scores of a band and masks of a block's rows, padding and biases: for each key of a
    // tile no more floats than this.
    constexpr int64_t kFloatsPerKey = 24;
    const int64_t raw_bands = params.raw_cache ? bands : 0;
    const int64_t keys = std::max<int64_t>(1, raw_bands) * kTileKeys + raw_bands * kRawRows;
    const int64_t per_tile = keys * args.head_size + kTileKeys * (args.v_head_size + kFloatsPerKey);
    const int64_t rows = std::clamp<int64_t>((kFloats - per_tile) / per_row, 1, kRows);
    queries_per_block_ = std::clamp<int64_t>(rows / group_, 1, std::max<int64_t>(1, length_));
    const int64_t rows_of_head = queries_per_block_ * group_;
    blocks_ = DivideUp(length_, queries_per_block_);
    in_place_ = blocks_ == 1 && rows_of_head <= kRowsInPlace;
    // Few rows cost little beside the angles of raw keys, so heads share these.
    scores_first_ = params.raw_cache && in_place_;
    if (scores_first_) {
      const int64_t all_rows = (kFloats - per_tile) / (per_row + kTileKeys);
      heads_together_ = std::clamp<int64_t>(all_rows / rows_of_head, 1, kv_heads_);
    }
    rows_per_block_ = rows_of_head * heads_together_;
    units_ = args.batch * DivideUp(kv_heads_, heads_together_) * blocks_;
    // Waking a thread takes as long as some 500,000 products.
    constexpr int64_t kSmall = 1 << 19;
    const int64_t products = units_ * rows_per_block_ * (args.head_size + args.v_head_size);
    small_ = products <= kSmall && products * total_ <= kSmall;
    if (units_ == 0) return;

    // Few query blocks against many keys: also split the keys.
    constexpr int64_t kTasks = 32;
    constexpr int64_t kKeysPerSplit = 512;
    constexpr int64_t kPartialFloats = 256 * 1024;
    const int64_t partial = units_ * rows_per_block_ * (args.v_head_size + kRowStatistics);
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

  // Whether a task makes the scores of all its heads with a tile before it goes on.
  bool scores_first() const { return scores_first_; }

  // Whether all tasks are done before another thread would have begun.
  bool small() const { return small_; }

  // Later query blocks see more keys and come first, so that threads end together.
  Task At(size_t index) const {
    const int64_t unit = static_cast<int64_t>(index) / splits_;
    const int64_t split = static_cast<int64_t>(index) % splits_;
    const int64_t units_of_block = units_ / blocks_;
    const int64_t units_of_row = DivideUp(kv_heads_, heads_together_);
    const int64_t block = blocks_ - 1 - unit / units_of_block;
    Task task;
    task.batch = unit % units_of_block / units_of_row;
    task.kv_heads.begin = unit % units_of_row * heads_together_;
    task.kv_heads.end = std::min(kv_heads_, task.kv_heads.begin + heads_together_);
    task.queries.begin = block * queries_per_block_;
    task.queries.end = std::min(length_, task.queries.begin + queries_per_block_);
    task.keys.begin = split * keys_per_split_;
    task.keys.end = std::min(total_, task.keys.begin + keys_per_split_);
    task.group = group_;
    task.index = index;
    return task;
  }

 private:
  int64_t kv_heads_;
  int64_t group_;
  int64_t length_;
  int64_t total_;
  int64_t queries_per_block_ = 1;
  int64_t heads_together_ = 1;
  int64_t rows_per_block_ = 1;
  int64_t blocks_ = 0;
  int64_t units_ = 0;
  int64_t splits_ = 1;
  bool in_place_ = false;
  bool scores_first_ = false;
  bool small_ = false;
  int64_t keys_per_split_ = 0;
};

}  // namespace rope

#endif  // ROPE_PLAN_H_
