// What the plans of a run have in common. A plan says which keys each block of query rows visits,
// and where tokens stand: that of the host follows from what it reads there (host_plan.h), that of
// the device from what a kernel reads there (device_plan.h).
#ifndef ROPE_CUDA_PLAN_H_
#define ROPE_CUDA_PLAN_H_

#include <algorithm>
#include <cstdint>

#include "attention.h"
#include "divide.h"
#include "run.h"
#include "tile_shapes.h"
#include "upload.h"

namespace rope::cuda {

template <typename T>
class Plan {
 public:
  using E = Element<T>;

 protected:
  Plan(const AttentionParams& params, Device<E>& device, Call<E>& call, Upload& upload)
      : params_(params), device_(device), call_(call), upload_(upload) {}

  // Cuts the query rows into blocks.
  void TakeBlocks() {
    const int64_t rows = call_.length * params_.group();
    call_.schedule.shape = Shape(rows, std::max(call_.head_size, call_.v_head_size));
    call_.schedule.blocks = DivideUp(rows, call_.schedule.shape.rows);
  }

  // Cuts the tiles of a block, which are so many at most, into splits.
  void TakeSplits(int64_t most_tiles) {
    constexpr int64_t kTilesPerSplit = 4;
    constexpr int64_t kMostSplits = 256;
    Schedule& schedule = call_.schedule;
    if (call_.units() == 0) return;
    const int64_t most_splits = std::min(most_tiles / kTilesPerSplit, kMostSplits);
    if (most_splits <= 1) return;
    // Blocks that have to wait for others would begin when all of these end.
    schedule.splits =
        std::clamp<int64_t>(device_.BlocksAtOnce(call_) / call_.units(), 1, most_splits);
    if (schedule.splits == 1) return;
    schedule.partial_rows = std::min<int64_t>(call_.length * params_.group(), schedule.shape.rows);
    upload_.Reserve(call_.units() * schedule.splits * schedule.partial_rows * call_.partial_width(),
                    schedule.partials);
  }

  // The queries' places of a block of a batch row.
  Range PlacesOfBlock(int64_t block) const {
    const int64_t first_row = block * call_.schedule.shape.rows;
    const int64_t left = call_.length * params_.group() - first_row;
    return PlacesOf(first_row, std::min<int64_t>(call_.schedule.shape.rows, left), params_.group());
  }

  void ReserveAngles(AngleTables& tables) {
    upload_.Reserve(tables.all_rows() * 2 * call_.rotation.pairs, tables.values);
  }

  // Of a raw cache, for each row of the batch or one for all.
  void ReserveKeyAngles(int64_t rows) {
    call_.key_angles.batch_rows = rows;
    upload_.Reserve(call_.key_angles.all_rows() * 2 * call_.rotation.pairs,
                    call_.key_angles.values);
  }

  const AttentionParams& params_;
  Device<E>& device_;
  Call<E>& call_;
  Upload& upload_;

 private:
  TileShape Shape(int64_t rows, int64_t channels) const {
    if (sizeof(E) != 2) return ShapeFor(rows, channels);
    // Scores that are made one by one, and keys that each band rotates otherwise, are made in
    // memory: warpgroups have no registers to spare.
    const bool plain =
        call_.score.kind != ScoreKind::kAny && (!params_.raw_cache || call_.key_angles.count == 1);
    return plain && FitWarpgroups(rows, channels) && device_.HasWarpgroups()
               ? WarpgroupShapeFor(channels, call_.residuals)
               : TensorShapeFor(rows, channels, call_.residuals);
  }
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_PLAN_H_
