// A row's running softmax, and what is written of it.
#ifndef ROPE_CUDA_RESULT_H_
#define ROPE_CUDA_RESULT_H_

#include <cmath>

#include "element.h"
#include "schedule.h"

namespace rope::cuda {

constexpr float kNegativeInfinity = -__builtin_inff();

// The larger number; NaN is the largest of all and stays.
ROPE_DEVICE float Larger(float a, float b) { return a != a || a > b ? a : b; }

struct RowState {
  int64_t place = 0;  // of its query in the call
  int64_t head = 0;
  int64_t index = -1;  // among all keys; -1: there is no such row
  float maximum = kNegativeInfinity;
  float total = 0;    // of the weights relative to it
  bool seen = false;  // some key

  template <typename T>
  ROPE_DEVICE static RowState Of(const Call<T>& call, const Task& task, int row) {
    RowState state;
    if (row >= task.rows) return state;
    state.place = task.PlaceOf(call, row);
    state.head = task.HeadOf(call, row);
    state.index = call.past(task.batch) + state.place;
    return state;
  }

  // Takes a tile's largest score up; gives the factor for what there is so far.
  ROPE_DEVICE float Raise(float largest) {
    const float next = Larger(maximum, largest);
    const float correction = maximum == next ? 1.0f : std::exp(maximum - next);
    maximum = next;
    total *= correction;
    return correction;
  }

  // Nothing seen yet, or only -inf: no weight.
  ROPE_DEVICE float Weight(float score) const {
    if (maximum == kNegativeInfinity || score == kNegativeInfinity) return 0.0f;
    return std::exp(score - maximum);
  }
};

// Writes one row: its output, or with several splits its partial result.
template <typename T>
class RowWriter {
 public:
  ROPE_DEVICE RowWriter(const Call<T>& call, const Task& task, int64_t row, const RowState& state,
                        bool partial)
      : call_(call), task_(task), row_(row), state_(state), partial_(partial) {
    if (partial) return;
    if (state.total != 0.0f) {
      factor_ = 1.0f / state.total;
      log_sum_exp_ = state.maximum + std::log(state.total);
      if (call.sinks != nullptr) {
        const float sink = call.sinks[state.head];
        const float largest = Larger(state.maximum, sink);
        const float weight = std::exp(state.maximum - largest);
        factor_ = weight / (state.total * weight + std::exp(sink - largest));
      }
    } else if (state.seen) {
      // Keys whose scores are all -inf, where softmax is 0 / 0.
      factor_ = log_sum_exp_ = __builtin_nanf("");
    }
  }

  ROPE_DEVICE void Channel(int64_t c, float sum) const {
    if (partial_) {
      Partial()[c] = sum;
    } else {
      call_.output.At(task_.batch, state_.head, state_.place)[c] = FromFloat<T>(sum * factor_);
    }
  }

  // What a row has once: its log-sum-exp, or maximum and total.
  ROPE_DEVICE void Rest() const {
    if (partial_) {
      float* partial = Partial() + call_.v_head_size;
      partial[0] = state_.maximum;
      // -1: has seen keys, but only scores of -inf.
      partial[1] = state_.total == 0.0f && state_.seen ? -1.0f : state_.total;
    } else if (call_.log_sum_exp != nullptr) {
      call_.log_sum_exp[(task_.batch * call_.num_heads + state_.head) * call_.length +
                        state_.place] = log_sum_exp_;
    }
  }

 private:
  ROPE_DEVICE float* Partial() const {
    const int64_t part = static_cast<int64_t>(task_.unit) * call_.splits + task_.split;
    return call_.partials +
           (part * call_.partial_rows + task_.first_in_block + row_) * (call_.v_head_size + 2);
  }

  const Call<T>& call_;
  const Task& task_;
  const int64_t row_;
  const RowState& state_;
  const bool partial_;
  float factor_ = 0.0f;
  float log_sum_exp_ = kNegativeInfinity;
};

// Adds up the splits of each row, always in the same order.
template <typename T>
struct MergeKernel {
  static constexpr int kThreads = 64;

  static int64_t Blocks(const Call<T>& call) { return call.units() * call.partial_rows; }
  static int64_t SharedFloats(const Call<T>&) { return 0; }

  template <typename Block>
  ROPE_DEVICE static void Run(Block& block, const Call<T>& call) {
    const int row = static_cast<int>(block.index() % call.partial_rows);
    const int64_t width = call.v_head_size + 2;
    const Task task = TaskOf(call, block.index() / call.partial_rows * call.splits);
    if (row >= task.rows) return;
    const float* first =
        call.partials +
        (static_cast<int64_t>(task.unit) * call.splits * call.partial_rows + row) * width;
    const int64_t stride = call.partial_rows * width;
    block.ForThreads([&](int thread) {
      RowState state = RowState::Of(call, task, row);
      for (int64_t s = 0; s < call.splits; ++s) {
        const float* rest = first + s * stride + call.v_head_size;
        state.maximum = Larger(state.maximum, rest[0]);
        state.seen = state.seen || rest[1] != 0.0f;
      }
      for (int64_t s = 0; s < call.splits; ++s) {
        const float* rest = first + s * stride + call.v_head_size;
        // Without a total a split has seen nothing that weighs: its sums are zeros.
        if (rest[1] > 0.0f || rest[1] != rest[1]) {
          state.total += rest[1] * std::exp(rest[0] - state.maximum);
        }
      }
      const RowWriter<T> writer(call, task, row, state, false);
      for (int64_t c = thread; c < call.v_head_size; c += kThreads) {
        float sum = 0.0f;
        for (int64_t s = 0; s < call.splits; ++s) {
          const float* part = first + s * stride;
          const float total = part[call.v_head_size + 1];
          if (total > 0.0f || total != total) {
            sum += part[c] * std::exp(part[call.v_head_size] - state.maximum);
          }
        }
        writer.Channel(c, sum);
      }
      if (thread == 0) writer.Rest();
    });
  }
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_RESULT_H_
