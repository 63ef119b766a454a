// The plan of a run whose positions, lengths, masks and document ids the host reads.
#ifndef ROPE_CUDA_HOST_PLAN_H_
#define ROPE_CUDA_HOST_PLAN_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "block_spans.h"
#include "first_keys.h"
#include "padding.h"
#include "plan.h"
#include "positions.h"
#include "ring.h"
#include "rotation.h"
#include "shown_before.h"

namespace rope::cuda {

template <typename T>
class HostPlan : Plan<T> {
 public:
  using E = Element<T>;

  HostPlan(const AttentionParams& params, const AttentionCall<T>& args, Device<E>& device,
           Call<E>& call, Upload& upload)
      : Plan<T>(params, device, call, upload),
        args_(args),
        ring_call_(params, args_),
        positions_(params, args_),
        padding_(args_.mask, args_.mask_batch_stride, args_.batch, args_.max_total()),
        first_keys_(params, args_) {}

  // The call that is planned: where caches are rings, of the tokens that are left.
  const AttentionCall<T>& args() const { return args_; }

  // Where each row's cached tokens end, and how a ring has turned.
  void TakeRows() {
    if (args_.ring.rows > 0) {
      upload_.Add(std::vector<int64_t>(args_.ring.turns, args_.ring.turns + args_.batch),
                  call_.ring.turns);
    }
    if (args_.row_past != nullptr) {
      upload_.Add(std::vector<int32_t>(args_.row_past, args_.row_past + args_.batch),
                  call_.row_past);
    }
  }

  // Positions, the tables of their angles, and temperatures; `tables` are the queries'.
  void TakePositions(const std::vector<Band>& tables) {
    const int64_t rows = positions_.shared() ? 1 : args_.batch;
    std::vector<int64_t> positions, shifts;
    std::vector<float> temperatures;
    for (int64_t b = 0; b < args_.batch; ++b) {
      shifts.push_back(positions_.Shift(b));
      for (int64_t place = 0; place < args_.length; ++place) {
        const int64_t p = positions_.At(b < rows ? b : 0, place);
        if (b < rows) positions.push_back(p);
        if (params_.temperature.slope > 0) {
          temperatures.push_back(static_cast<float>(params_.temperature.At(p)));
        }
      }
    }
    if (!params_.position_axes.empty()) positions = PositionsOfAxes(rows);
    call_.query_angles.rows = rows * args_.length;
    call_.query_angles.batch_stride = rows == 1 ? 0 : args_.length;
    upload_.Add(positions, call_.positions);
    upload_.Add(shifts, call_.shifts);
    if (!temperatures.empty()) upload_.Add(temperatures, call_.score.temperatures);
    if (MakesAngles()) return MakeAngles(positions, tables);
    this->ReserveAngles(call_.query_angles);
    if (!params_.raw_cache) return;
    const bool one = std::equal(shifts.begin() + 1, shifts.end(), shifts.begin());
    this->ReserveKeyAngles(one ? 1 : args_.batch);
  }

  // Makes distances count the keys that a mask shows. False: it shows all of them.
  bool TakeShownBefore() {
    const ShownBefore before(params_, args_, 0);
    if (before.counts().empty()) return false;
    call_.score.shown_before_stride = before.stride();
    upload_.Add(before.counts(), call_.score.shown_before);
    return true;
  }

  // The spans of keys that each block of query rows visits. It follows from shapes and masks alone.
  void TakeSchedule() {
    this->TakeBlocks();
    Schedule& schedule = call_.schedule;
    BlockSpans<T> block_spans(params_, args_, positions_, padding_, first_keys_,
                              schedule.shape.keys);
    std::vector<Span> spans;
    std::vector<SpanList> lists;
    int64_t most_tiles = 0;
    const int64_t alike = RowsVisitTheSame() ? 1 : args_.batch;
    schedule.batch_stride = alike == 1 ? 0 : schedule.blocks;
    for (int64_t i = 0; i < alike * schedule.blocks; ++i) {
      const size_t first = spans.size();
      block_spans.Add(i / schedule.blocks, this->PlacesOfBlock(i % schedule.blocks), spans);
      lists.push_back({static_cast<int32_t>(first), static_cast<int32_t>(spans.size())});
      int64_t tiles = 0;
      for (size_t s = first; s < spans.size(); ++s) {
        tiles += DivideUp(spans[s].keys.size(), schedule.shape.keys);
      }
      most_tiles = std::max(most_tiles, tiles);
    }
    const bool masked = std::any_of(spans.begin(), spans.end(),
                                    [](const Span& span) { return span.sight == Sight::kMasked; });
    upload_.Add(spans, schedule.spans);
    upload_.Add(lists, schedule.lists);
    this->TakeSplits(most_tiles);
    TakeMask(masked);
  }

  // Launches what comes before the other kernels.
  void Launch() {
    const int64_t blocks = MakesAngles() ? 0 : AngleKernel<E>::Blocks(call_);
    if (blocks > 0) this->device_.Launch(Kernel::kAngles, blocks, call_);
  }

 private:
  using Plan<T>::params_;
  using Plan<T>::call_;
  using Plan<T>::upload_;

  // Angles that the host makes faster than a launch would.
  static constexpr int64_t kFewAngles = 256;

  std::vector<int64_t> PositionsOfAxes(int64_t rows) const {
    std::vector<int64_t> positions;
    for (int64_t axis = 0; axis < args_.position_axes; ++axis) {
      for (int64_t i = 0; i < rows * args_.length; ++i) {
        positions.push_back(positions_.AtAxis(i / args_.length, i % args_.length, axis));
      }
    }
    return positions;
  }

  // Whether the host makes the angles, as it does those of a few tokens: a launch of its own would
  // take longer.
  bool MakesAngles() const {
    return !params_.raw_cache && call_.query_angles.all_rows() * call_.rotation.pairs <= kFewAngles;
  }

  void MakeAngles(const std::vector<int64_t>& positions, const std::vector<Band>& bands) {
    Rotation rotation = call_.rotation;
    rotation.frequencies = params_.frequencies.data();
    rotation.axes = params_.position_axes.empty() ? nullptr : params_.position_axes.data();
    AngleTables tables = call_.query_angles;
    tables.bands = bands.data();
    std::vector<float> values(static_cast<size_t>(tables.all_rows() * 2 * rotation.pairs));
    tables.values = values.data();
    const auto position = [&](int64_t axis, int64_t row) {
      return positions[static_cast<size_t>(axis * tables.rows + row)];
    };
    for (int64_t row = 0; row < tables.all_rows(); ++row) {
      for (int64_t pair = 0; pair < rotation.pairs; ++pair) {
        FillQueryAngle(rotation, tables, position, row, pair);
      }
    }
    upload_.Add(values, call_.query_angles.values);
  }

  // Whether the queries of all batch rows see keys of the same indices.
  bool RowsVisitTheSame() const {
    for (int64_t b = 1; b < args_.batch; ++b) {
      if (args_.past(b) != args_.past(0) || first_keys_.End(b) != first_keys_.End(0) ||
          positions_.Shift(b) != positions_.Shift(0)) {
        return false;
      }
    }
    return padding_.SameRows() && (args_.documents == nullptr || args_.documents_batch_stride == 0);
  }

  void TakeMask(bool masked) {
    Mask& mask = call_.mask;
    if (!first_keys_.ends().empty()) upload_.Add(first_keys_.ends(), mask.first_keys_ends);
    if (!masked) return;  // no block asks for a single key
    if (padding_.holes()) {
      mask.shown_batch_stride = padding_.batch_stride();
      upload_.Add(padding_.shown(), mask.shown);
    }
    if (args_.documents != nullptr) {
      const int64_t columns = args_.max_total();
      const int64_t rows = args_.documents_batch_stride == 0 ? 1 : args_.batch;
      std::vector<int64_t> ids;
      for (int64_t b = 0; b < rows; ++b) {
        const int64_t* row = args_.documents + b * args_.documents_batch_stride;
        ids.insert(ids.end(), row, row + columns);
      }
      mask.documents_batch_stride = rows == 1 ? 0 : columns;
      upload_.Add(ids, mask.documents);
    }
  }

  AttentionCall<T> args_;
  const RingCall<T> ring_call_;
  const Positions<T> positions_;
  const Padding padding_;
  const FirstKeys first_keys_;
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_HOST_PLAN_H_
