// Plans a run on the device: the keys that each block of query rows visits, and the angles. So
// launches follow from shapes alone, and the host reads no number.
#ifndef ROPE_CUDA_PLAN_KERNEL_H_
#define ROPE_CUDA_PLAN_KERNEL_H_

#include <algorithm>
#include <cstdint>

#include "divide.h"
#include "plan_spans.h"
#include "rotation.h"

namespace rope::cuda {

template <typename T>
struct PlanKernel {
  static constexpr int kThreads = 256;

  static int64_t Blocks(const PlanCall<T>& plan) {
    return SpanBlocks(plan) + DivideUp(Entries(plan), int64_t{kThreads});
  }
  static int64_t SharedFloats(const PlanCall<T>& plan) {
    return static_cast<int64_t>(sizeof(Shared) / sizeof(float)) +
           (plan.rule.any() ? plan.call.rotation.pairs : 0);
  }

  template <typename Block>
  ROPE_DEVICE static void Run(Block& block, const PlanCall<T>& plan) {
    Shared& shared = *reinterpret_cast<Shared*>(block.shared());
    const int64_t angles = block.index() - SpanBlocks(plan);
    if (angles >= 0) return FillEntries(block, shared, plan, angles);
    const int64_t of_row = BlocksOfRow(plan);
    SpanPlanner<T, Block, kThreads>(block, shared.spans, plan, block.index() / of_row,
                                    block.index() % of_row)
        .Run();
  }

 private:
  union Shared {
    Shared() = delete;  // it is memory of any content
    SpanMemory<kThreads> spans;
    int64_t reach[kThreads];
  };

  // A row without queries has one, which writes what the row has.
  ROPE_DEVICE_HOST static int64_t BlocksOfRow(const PlanCall<T>& plan) {
    return plan.call.schedule.blocks > 0 ? plan.call.schedule.blocks : 1;
  }
  ROPE_DEVICE_HOST static int64_t SpanBlocks(const PlanCall<T>& plan) {
    return (plan.rows_alike ? 1 : plan.call.batch) * BlocksOfRow(plan);
  }

  ROPE_DEVICE_HOST static int64_t Angles(const Call<T>& call) {
    return (call.query_angles.all_rows() + call.key_angles.all_rows()) * call.rotation.pairs;
  }
  // Angles, then temperatures.
  ROPE_DEVICE_HOST static int64_t Entries(const PlanCall<T>& plan) {
    return Angles(plan.call) +
           (plan.temperatures == nullptr ? 0 : plan.call.batch * plan.call.length);
  }

  template <typename Block>
  ROPE_DEVICE static void FillEntries(Block& block, Shared& shared, const PlanCall<T>& plan,
                                      int64_t piece) {
    const Call<T>& call = plan.call;
    const Rotation rotation = RotationOf(block, shared, plan, piece == 0);
    const int64_t pairs = rotation.pairs;
    const int64_t query_rows = call.query_angles.all_rows();
    block.ForThreads([&](int thread) {
      const int64_t entry = piece * kThreads + thread;
      if (entry >= Angles(call)) {
        const int64_t token = entry - Angles(call);
        if (entry < Entries(plan)) {
          const int64_t p = plan.Position(token / call.length, token % call.length, 0);
          plan.temperatures[token] = static_cast<float>(plan.temperature.At(p));
        }
        return;
      }
      const int64_t row = entry / pairs;
      if (row < query_rows) {
        const auto position = [&](int64_t axis, int64_t own) {
          return plan.Position(own / call.length, own % call.length, axis);
        };
        FillQueryAngle(rotation, call.query_angles, position, row, entry % pairs);
      } else {
        FillKeyAngle(
            rotation, call.key_angles, [&](int64_t b) { return ShiftOf(plan, b); },
            row - query_rows, entry % pairs);
      }
    });
  }

  ROPE_DEVICE static int64_t ShiftOf(const PlanCall<T>& plan, int64_t b) {
    if (plan.positions == nullptr) return 0;
    int64_t place = 0;
    while (place < plan.call.length && !plan.Shows(b, plan.past(b) + place)) ++place;
    return plan.ShiftAt(b, place);
  }

  // With the frequencies for how far the call reaches: the largest position of a token that is
  // shown, and one more.
  template <typename Block>
  ROPE_DEVICE static Rotation RotationOf(Block& block, Shared& shared, const PlanCall<T>& plan,
                                         bool writes) {
    Rotation rotation = plan.call.rotation;
    if (!plan.rule.any()) return rotation;
    const Call<T>& call = plan.call;
    const int64_t reach = Together<kThreads>(
        block, shared.reach,
        [&](int thread) {
          int64_t own = 0;
          for (int64_t i = thread; i < call.batch * call.length; i += kThreads) {
            const int64_t b = i / call.length, place = i % call.length;
            if (!plan.Shows(b, plan.past(b) + place)) continue;
            for (int64_t axis = 0; axis < plan.axes; ++axis) {
              const int64_t position = plan.Position(b, place, axis);
              if (plan.CanBe(position)) own = std::max(own, position + 1);
            }
          }
          return own;
        },
        [](int64_t a, int64_t b) { return std::max(a, b); });
    float* const frequencies = block.shared() + sizeof(Shared) / sizeof(float);
    block.ForThreads([&](int thread) {
      for (int64_t pair = thread; pair < rotation.pairs; pair += kThreads) {
        const float f = plan.rule.At(rotation.frequencies, pair, reach);
        frequencies[pair] = f;
        if (writes && plan.frequencies != nullptr) plan.frequencies[pair] = f;
      }
    });
    rotation.frequencies = frequencies;
    return rotation;
  }
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_PLAN_KERNEL_H_
