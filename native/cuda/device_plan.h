// The plan of a run whose positions, lengths, masks and document ids lie on the device: the host
// knows shapes and capacities, and a kernel reads the rest.
#ifndef ROPE_CUDA_DEVICE_PLAN_H_
#define ROPE_CUDA_DEVICE_PLAN_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plan.h"
#include "plan_kernel.h"

namespace rope::cuda {

template <typename T>
class DevicePlan : Plan<T> {
 public:
  using E = Element<T>;

  DevicePlan(const AttentionParams& params, const AttentionCall<T>& args, Device<E>& device,
             Call<E>& call, Upload& upload, const DeviceNumbers& numbers)
      : Plan<T>(params, device, call, upload), args_(args), numbers_(numbers) {}

  const AttentionCall<T>& args() const { return args_; }

  void TakeRows() {
    plan_.columns = std::min(args_.columns, args_.max_total());
    plan_.cache_lengths = args_.row_past;
    plan_.positions = args_.positions;
    plan_.positions_batch_stride = args_.positions_batch_stride;
    plan_.axes = args_.position_axes;
    plan_.positions_axis_stride = args_.positions_axis_stride;
    plan_.mask = args_.mask;
    plan_.mask_batch_stride = args_.mask_batch_stride;
    plan_.temperature = params_.temperature;
    plan_.faults = numbers_.faults;
    plan_.consecutive = args_.positions != nullptr && params_.positions_follow();
    Reserve(args_.row_past != nullptr, args_.batch, plan_.row_past, call_.row_past);
    Reserve(true, args_.batch, plan_.shifts, call_.shifts);
    Reserve(true, args_.batch, plan_.refused, call_.refused);
    call_.mask.documents = args_.documents;
    call_.mask.documents_batch_stride = args_.documents_batch_stride;
    call_.mask.shown_batch_stride = ColumnStride();
    Reserve(args_.mask != nullptr, ColumnsOfMask(), plan_.shown, call_.mask.shown);
    plan_.counts_first_keys = params_.first_keys_shown && args_.mask != nullptr &&
                              params_.first_keys > 0 && params_.window > 0;
    Reserve(plan_.counts_first_keys, args_.batch, plan_.first_keys_ends,
            call_.mask.first_keys_ends);
  }

  void TakePositions(const std::vector<Band>& /*tables*/) {
    const int64_t rows = PositionsShared() ? 1 : args_.batch;
    call_.query_angles.rows = rows * args_.length;
    call_.query_angles.batch_stride = rows == 1 ? 0 : args_.length;
    this->ReserveAngles(call_.query_angles);
    Reserve(params_.temperature.slope > 0, args_.batch * args_.length, plan_.temperatures,
            call_.score.temperatures);
    plan_.rule = numbers_.rule;
    if (plan_.rule.longer != nullptr) {
      longer_.assign(plan_.rule.longer, plan_.rule.longer + plan_.rule.pairs);
      upload_.Add(longer_, plan_.rule.longer);
    }
    if (!params_.raw_cache) return;
    this->ReserveKeyAngles(args_.positions == nullptr || RowsAlike() ? 1 : args_.batch);
    if (plan_.rule.any()) upload_.Reserve(call_.rotation.pairs, plan_.frequencies);
  }

  // Makes distances count the keys that a mask shows, if it may hide some.
  bool TakeShownBefore() {
    if (!params_.distance_shown || args_.mask == nullptr) return false;
    call_.score.shown_before_stride = ColumnStride();
    Reserve(true, ColumnsOfMask(), plan_.shown_before, call_.score.shown_before);
    return true;
  }

  // Room for the spans of every block, and as many splits as the most tiles that one may have.
  void TakeSchedule() {
    this->TakeBlocks();
    Schedule& schedule = call_.schedule;
    plan_.rows_alike = RowsAlike();
    const int64_t rows = plan_.rows_alike ? 1 : args_.batch;
    schedule.batch_stride = plan_.rows_alike ? 0 : schedule.blocks;
    plan_.spans_of_block = call_.band_count * KeyGroups::kSpans;
    Reserve(true, rows * schedule.blocks * plan_.spans_of_block, plan_.spans, schedule.spans);
    Reserve(true, rows * schedule.blocks, plan_.lists, schedule.lists);
    this->TakeSplits(DivideUp(MostKeys(), schedule.shape.keys));
  }

  void Launch() {
    plan_.call = call_;
    this->device_.LaunchPlan(PlanKernel<E>::Blocks(plan_), plan_);
    if (plan_.frequencies != nullptr) call_.rotation.frequencies = plan_.frequencies;
  }

 private:
  using Plan<T>::params_;
  using Plan<T>::call_;
  using Plan<T>::upload_;

  // Memory that the plan's kernel writes and the others read, if it is wanted.
  template <typename V>
  void Reserve(bool wanted, int64_t count, V*& written, const V*& read) {
    if (!wanted) return;
    upload_.Reserve(count, written);
    upload_.Share(written, read);
  }

  bool PositionsShared() const {
    return args_.positions == nullptr ? args_.row_past == nullptr
                                      : args_.positions_batch_stride == 0;
  }
  // Whether everything that says which keys are visited is the same for all rows of the batch.
  bool RowsAlike() const {
    return args_.row_past == nullptr && PositionsShared() &&
           (args_.mask == nullptr || args_.mask_batch_stride == 0) &&
           (args_.documents == nullptr || args_.documents_batch_stride == 0);
  }

  int64_t ColumnStride() const { return args_.mask_batch_stride == 0 ? 0 : plan_.columns; }
  int64_t ColumnsOfMask() const {
    return plan_.columns * (args_.mask_batch_stride == 0 ? 1 : args_.batch);
  }

  // That some block of queries sees, about.
  int64_t MostKeys() const {
    const int64_t total = args_.max_total();
    if (params_.window == 0 || params_.window >= total) return total;
    const int64_t places = this->PlacesOfBlock(0).size();
    return std::min(total, params_.window * (params_.causal ? 1 : 2) + places + params_.first_keys);
  }

  const AttentionCall<T>& args_;
  const DeviceNumbers& numbers_;
  std::vector<float> longer_;
  PlanCall<E> plan_;
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_DEVICE_PLAN_H_
