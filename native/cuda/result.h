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
  float total = 0;           // of the weights relative to it
  bool any_visible = false;  // of the keys

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

  // No visible key yet, or only scores of -inf: no weight.
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
      : call_(call), task_(task), state_(state), channels_(call.v_head_size) {
    if (partial) {
      const int64_t part = static_cast<int64_t>(task.unit) * call.schedule.splits + task.split;
      partial_ =
          call.schedule.partials +
          (part * call.schedule.partial_rows + task.first_in_block + row) * call.partial_width();
      return;
    }
    output_ = call.output.At(task.batch, state.head, state.place);
    if (call.refuses(task.batch)) {
      factor_ = log_sum_exp_ = __builtin_nanf("");
    } else if (state.total != 0.0f) {
      factor_ = 1.0f / state.total;
      log_sum_exp_ = state.maximum + std::log(state.total);
      if (call.score.sinks != nullptr) {
        const float sink = call.score.sinks[state.head];
        const float largest = Larger(state.maximum, sink);
        const float weight = std::exp(state.maximum - largest);
        factor_ = weight / (state.total * weight + std::exp(sink - largest));
      }
    } else if (state.any_visible) {
      // Keys whose scores are all -inf, where softmax is 0 / 0.
      factor_ = log_sum_exp_ = __builtin_nanf("");
    }
  }

  ROPE_DEVICE void Channel(int64_t c, float sum) const {
    if (partial_ != nullptr) {
      partial_[c] = sum;
    } else {
      output_[c] = FromFloat<T>(sum * factor_);
    }
  }

  // An even channel and the next one, as far as the head has them.
  ROPE_DEVICE void Channels(int64_t c, float sum, float next) const {
    if (c >= channels_) return;
    if (partial_ != nullptr && channels_ % 2 == 0) {
      StorePair<float>(sum, next, partial_ + c);
    } else if (partial_ == nullptr && channels_ % 2 == 0 &&
               reinterpret_cast<uintptr_t>(output_) % (2 * sizeof(T)) == 0) {
      StorePair<T>(sum * factor_, next * factor_, output_ + c);
    } else {
      Channel(c, sum);
      if (c + 1 < channels_) Channel(c + 1, next);
    }
  }

  // What a row has once: its log-sum-exp, or maximum and total.
  ROPE_DEVICE void Statistics() const {
    if (partial_ != nullptr) {
      partial_[channels_] = state_.maximum;
      // -1: sees keys, but their scores are all -inf.
      partial_[channels_ + 1] = state_.total == 0.0f && state_.any_visible ? -1.0f : state_.total;
    } else if (call_.log_sum_exp != nullptr) {
      call_.log_sum_exp[(task_.batch * call_.num_heads + state_.head) * call_.length +
                        state_.place] = log_sum_exp_;
    }
  }

 private:
  const Call<T>& call_;
  const Task& task_;
  const RowState& state_;
  const int64_t channels_;
  float* partial_ = nullptr;  // null: the row's result is written
  T* output_ = nullptr;
  float factor_ = 0.0f;
  float log_sum_exp_ = kNegativeInfinity;
};

// Adds up the splits of each row, always in the same order.
template <typename T>
struct MergeKernel {
  static constexpr int kThreads = 128;
  static constexpr int kTogether = 32;  // loads of a thread that are under way

  static int64_t Blocks(const Call<T>& call) { return call.units() * call.schedule.partial_rows; }
  static int64_t SharedFloats(const Call<T>& call) { return call.schedule.splits; }

  template <typename Block>
  ROPE_DEVICE static void Run(Block& block, const Call<T>& call) {
    const Schedule& schedule = call.schedule;
    const int row = static_cast<int>(block.index() % schedule.partial_rows);
    const int64_t width = call.partial_width();
    const Task task = TaskOf(call, block.index() / schedule.partial_rows * schedule.splits);
    if (row >= task.rows) return;
    const float* first =
        schedule.partials +
        (static_cast<int64_t>(task.unit) * schedule.splits * schedule.partial_rows + row) * width;
    const int64_t stride = schedule.partial_rows * width;
    const int splits = static_cast<int>(schedule.splits);
    float* const weights = block.shared();
    // Every warp looks at all splits, so that each thread knows the row.
    typename Block::template PerThread<Statistics> all;
    block.Lanes([&](int thread) {
      all[thread] = {};
      for (int s = thread % kLanes; s < splits; s += kLanes) {
        all[thread].maximum = Larger(all[thread].maximum, first[s * stride + call.v_head_size]);
      }
    });
    block.template Reduce<kLanes, 1>([&](int thread) { return &all[thread].maximum; },
                                     [](float a, float b) { return Larger(a, b); });
    block.Lanes([&](int thread) {
      for (int s = thread % kLanes; s < splits; s += kLanes) {
        const float* statistics = first + s * stride + call.v_head_size;
        const float total = statistics[1];
        // Without a total no key of the split has a weight: its sums are zeros.
        const bool any = total > 0.0f || total != total;
        const float weight = any ? std::exp(statistics[0] - all[thread].maximum) : 0.0f;
        if (weight != 0.0f) all[thread].sums[0] += total * weight;
        if (total != 0.0f) all[thread].sums[1] = 1.0f;
        if (thread < kLanes) weights[s] = weight;
      }
    });
    block.template Reduce<kLanes, 2>([&](int thread) { return all[thread].sums; },
                                     [](float a, float b) { return a + b; });
    block.Barrier();
    block.ForThreads([&](int thread) {
      RowState state = RowState::Of(call, task, row);
      state.maximum = all[thread].maximum;
      state.total = all[thread].sums[0];
      state.any_visible = all[thread].sums[1] != 0.0f;
      const RowWriter<T> writer(call, task, row, state, false);
      for (int64_t c = thread; c < call.v_head_size; c += kThreads) {
        float sum = 0.0f;
        for (int s = 0; s < splits; s += kTogether) {
          float parts[kTogether];
          ROPE_UNROLL
          for (int i = 0; i < kTogether; ++i) {
            parts[i] =
                s + i < splits && weights[s + i] != 0.0f ? first[(s + i) * stride + c] : 0.0f;
          }
          ROPE_UNROLL
          for (int i = 0; i < kTogether; ++i) {
            if (s + i < splits && weights[s + i] != 0.0f) sum += parts[i] * weights[s + i];
          }
        }
        writer.Channel(c, sum);
      }
      if (thread == 0) writer.Statistics();
    });
  }

 private:
  static constexpr int kLanes = 32;

  // Of the splits of a row.
  struct Statistics {
    float maximum = kNegativeInfinity;
    float sums[2] = {};  // the total, and how many threads met a split that sees keys
  };
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_RESULT_H_
