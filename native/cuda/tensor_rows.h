// The rows of a block on tensor cores: the running softmax over tiles of keys, in
// registers, and what is written in the end.
#ifndef ROPE_CUDA_TENSOR_ROWS_H_
#define ROPE_CUDA_TENSOR_ROWS_H_

#include <algorithm>

#include "attention_kernel.h"
#include "plain_products.h"
#include "tensor_products.h"

namespace rope::cuda {

// The kernel of the same threads that computes a block once more, in float32.
template <typename T, const TileShape& kShape>
using PlainAgain = AttentionKernel<
    T, PlainProducts<T, std::max(16, kShape.threads / 8), 16, kShape.channels, kShape.threads>>;

template <typename T, const TileShape& kShape, typename Block>
class TensorRows {
 public:
  using Products = TensorProducts<T, kShape>;  // which thread has which rows and columns
  using Again = PlainAgain<T, kShape>;
  static constexpr int kLanes = 4;  // threads of a row
  static constexpr int kParts = Products::kParts;
  static constexpr int kOwnRows = 2 * kParts;
  static constexpr int kKeyBlocks = kShape.keys / 8;
  static constexpr int kChannelBlocks = kShape.channels / 8;
  static constexpr float kLog2OfE = 1.44269504f;

  // A thread's share of the block's rows. Weights are powers of two: `bases` are the
  // rows' largest scores in units of ln 2, as they were rounded.
  struct State {
    float scores[kParts][kKeyBlocks][4];  // products, scores, then weights
    typename Products::Weights weights;   // rounded
    float sums[kParts][kChannelBlocks][4];
    float bases[kOwnRows];
    float totals[kOwnRows];
    float corrections[kOwnRows];
    uint32_t any_visible;      // a bit for each row that sees a key
    uint32_t shown[kOwnRows];  // a bit for each of the thread's columns of a tile
  };

  using States = typename Block::template PerThread<State>;

  ROPE_DEVICE TensorRows(Block& block, const Call<T>& call, const Task& task)
      : block_(block), call_(call), task_(task) {}

  ROPE_DEVICE States& states() { return states_; }

  ROPE_DEVICE void Clear() {
    block_.Lanes([&](int thread) { Clear(states_[thread]); });
  }

  // Finds out which keys of a tile the rows see, before its products are made: behind them all
  // registers are taken.
  ROPE_DEVICE void Look(const Span& tile) {
    if (kind() == ScoreKind::kAny) return;  // scores are made one by one
    block_.Lanes([&](int thread) {
      State& state = states_[thread];
      if (tile.sight == Sight::kAll) {
        state.any_visible = ~0u;
        return;
      }
      const TileMask<T> mask(call_, task_, tile);
      ROPE_UNROLL
      for (int m = 0; m < kOwnRows; ++m) {
        state.shown[m] = ShownTo(Row(thread, m).index, mask, tile, thread);
        if (state.shown[m] != 0) state.any_visible |= 1u << m;
      }
    });
  }

  // Turns products into weights and carries the rows' maxima and totals on.
  ROPE_DEVICE void Weigh(const Span& tile) {
    // Of what stands in scores, in units of ln 2.
    const float factor = kind() == ScoreKind::kScaled ? call_.score.scale * kLog2OfE : kLog2OfE;
    if (kind() != ScoreKind::kAny) {
      block_.Lanes([&](int thread) {
        if (kind() == ScoreKind::kSloped) ScoreBySlope(tile, thread);
        if (tile.sight != Sight::kAll) Hide(states_[thread]);
      });
    } else if constexpr (!kShape.warpgroups) {
      block_.Lanes([&](int thread) { Score(tile, thread); });
    }
    block_.Lanes([&](int thread) { TakeLargest(states_[thread]); });
    block_.template Reduce<kLanes, kOwnRows>(
        [&](int thread) { return states_[thread].corrections; },
        [](float a, float b) { return std::fmax(a, b); });
    block_.Lanes([&](int thread) { Raise(states_[thread], factor); });
  }

  // Writes the rows. Infinite keys and values make NaN of rows that give them no weight, since
  // 0 times infinity is NaN: such blocks are computed by the kernel that passes them over.
  ROPE_DEVICE void Finish() {
    if (block_.AnyThread([&](int thread) { return IsNonFinite(states_[thread]); })) {
      ComputeAgain();
    } else {
      WriteAll();
    }
  }

 private:
  ROPE_DEVICE ScoreKind kind() const { return call_.score.kind; }

  ROPE_DEVICE void ComputeAgain() {
    for (int first = 0; first < task_.rows; first += Again::kRows) {
      Task task = task_;
      task.first_in_block = first;
      task.rows = std::min(int32_t{Again::kRows}, task_.rows - first);
      typename Again::template Worker<Block>(block_, call_, task).Run();
    }
  }

  // Turns the scores of hidden keys into -inf.
  ROPE_DEVICE static void Hide(State& state) {
    ROPE_UNROLL
    for (int m = 0; m < kOwnRows; ++m) {
      ROPE_UNROLL
      for (int x = 0; x < 2 * kKeyBlocks; ++x) {
        float& score = state.scores[m / 2][x / 2][m % 2 * 2 + x % 2];
        if ((state.shown[m] >> x & 1u) == 0) score = kNegativeInfinity;
      }
    }
  }

  // A bit for each of a thread's columns of a tile: whether the query at an index sees it.
  ROPE_DEVICE static uint32_t ShownTo(int64_t index, const TileMask<T>& mask, const Span& tile,
                                      int thread) {
    const Columns columns = mask.ColumnsOf(index);
    uint32_t shown = Between(columns.begin, columns.end, thread) |
                     Between(columns.first_begin, columns.first_end, thread);
    if (tile.sight != Sight::kMasked) return shown;
    ROPE_ROLLED
    for (int x = 0; x < 2 * kKeyBlocks; ++x) {
      const int column = Products::ColumnOf(thread, x / 2, x % 2);
      if ((shown >> x & 1u) != 0 && !mask.Shows(index, column)) shown &= ~(1u << x);
    }
    return shown;
  }

  // Those of the columns from one to another, and of all in front of one: of eight columns a thread
  // has two.
  ROPE_DEVICE static uint32_t Between(int begin, int end, int thread) {
    return InFrontOf(end, thread) & ~InFrontOf(begin, thread);
  }
  ROPE_DEVICE static uint32_t InFrontOf(int column, int thread) {
    static_assert(2 * kKeyBlocks <= 32);
    const int from = column - Products::ColumnOf(thread, 0, 0);  // of the thread's first one
    if (from <= 0) return 0;
    const int count = from / 8 * 2 + std::min(from % 8, 2);
    return count >= 32 ? ~0u : (1u << count) - 1;
  }

  // Turns products into scores where there is more to it, hidden ones into -inf: in
  // memory, row by row, since the registers are taken.
  ROPE_DEVICE void Score(const Span& tile, int thread) {
    State& state = states_[thread];
    float copy[kOwnRows][2 * kKeyBlocks];
    ROPE_UNROLL
    for (int m = 0; m < kOwnRows; ++m) {
      ROPE_UNROLL
      for (int x = 0; x < 2 * kKeyBlocks; ++x) {
        copy[m][x] = state.scores[m / 2][x / 2][m % 2 * 2 + x % 2];
      }
    }
    const TileMask<T> mask(call_, task_, tile);
    ROPE_ROLLED
    for (int m = 0; m < kOwnRows; ++m) {
      const RowState row = Row(thread, m);
      const Columns columns = mask.ColumnsOf(row.index);
      ROPE_ROLLED
      for (int x = 0; x < 2 * kKeyBlocks; ++x) {
        const int column = Products::ColumnOf(thread, x / 2, x % 2);
        if (columns.Has(column) && mask.Shows(row.index, column) &&
            Modify(call_, task_, row, tile.keys.begin + column, copy[m][x])) {
          state.any_visible |= 1u << m;
        } else {
          copy[m][x] = kNegativeInfinity;
        }
      }
    }
    ROPE_UNROLL
    for (int m = 0; m < kOwnRows; ++m) {
      ROPE_UNROLL
      for (int x = 0; x < 2 * kKeyBlocks; ++x) {
        state.scores[m / 2][x / 2][m % 2 * 2 + x % 2] = copy[m][x];
      }
    }
  }

  // Turns products into scores where all keys are visible and nothing but slopes is added: in
  // registers, since that is quick.
  ROPE_DEVICE void ScoreBySlope(const Span& tile, int thread) {
    State& state = states_[thread];
    ROPE_UNROLL
    for (int m = 0; m < kOwnRows; ++m) {
      const RowState row = Row(thread, m);
      const float slope = call_.score.distances.slopes[row.head];
      const auto ahead = static_cast<int32_t>(row.index - tile.keys.begin);
      ROPE_UNROLL
      for (int x = 0; x < 2 * kKeyBlocks; ++x) {
        const int32_t distance = ahead - Products::ColumnOf(thread, x / 2, x % 2);
        float& score = state.scores[m / 2][x / 2][m % 2 * 2 + x % 2];
        score =
            std::fma(score, call_.score.scale, -slope * std::fabs(static_cast<float>(distance)));
      }
    }
  }

  ROPE_DEVICE RowState Row(int thread, int m) const {
    return RowState::Of(call_, task_, Products::RowOf(thread, m));
  }

  // Each row's largest score of this thread's. fmax passes over NaN, which its weight keeps.
  ROPE_DEVICE static void TakeLargest(State& state) {
    ROPE_UNROLL
    for (int m = 0; m < kOwnRows; ++m) {
      float largest = kNegativeInfinity;
      ROPE_UNROLL
      for (int n = 0; n < kKeyBlocks; ++n) {
        const float* scores = state.scores[m / 2][n] + m % 2 * 2;
        largest = std::fmax(largest, std::fmax(scores[0], scores[1]));
      }
      state.corrections[m] = largest;
    }
  }

  ROPE_DEVICE static void Raise(State& state, float factor) {
    ROPE_UNROLL
    for (int m = 0; m < kOwnRows; ++m) {
      const float base = std::fmax(state.bases[m], state.corrections[m] * factor);
      // Without a visible key, or with scores of -inf alone, there is no weight.
      const float from = base == kNegativeInfinity ? 0.0f : base;
      state.corrections[m] = PowerOfTwo(state.bases[m] - from);
      state.bases[m] = base;
      float total = state.totals[m] * state.corrections[m];
      ROPE_UNROLL
      for (int n = 0; n < kKeyBlocks; ++n) {
        ROPE_UNROLL
        for (int i = 0; i < 2; ++i) {
          float& score = state.scores[m / 2][n][m % 2 * 2 + i];
          score = PowerOfTwo(std::fma(score, factor, -from));
          total += score;
        }
      }
      state.totals[m] = total;
    }
  }

  ROPE_DEVICE static void Clear(State& state) {
    state.any_visible = 0;
    state.weights = {};
    ROPE_UNROLL
    for (int m = 0; m < kOwnRows; ++m) {
      state.bases[m] = kNegativeInfinity;
      state.totals[m] = 0.0f;
      ROPE_UNROLL
      for (int n = 0; n < kChannelBlocks; ++n) {
        state.sums[m / 2][n][m % 2 * 2] = state.sums[m / 2][n][m % 2 * 2 + 1] = 0.0f;
      }
    }
  }

  // Whether some sum is not finite: 0 times a finite number is 0, and NaN otherwise.
  ROPE_DEVICE static bool IsNonFinite(const State& state) {
    float zero = 0.0f;
    ROPE_UNROLL
    for (int m = 0; m < kOwnRows; ++m) {
      zero += state.totals[m] * 0.0f;
      ROPE_UNROLL
      for (int n = 0; n < kChannelBlocks; ++n) {
        const float* sums = state.sums[m / 2][n] + m % 2 * 2;
        zero += sums[0] * 0.0f + sums[1] * 0.0f;
      }
    }
    return zero != 0.0f;
  }

  // Adds up what the threads of a row have and writes it.
  ROPE_DEVICE void WriteAll() {
    block_.Lanes([&](int thread) {
      State& state = states_[thread];
      ROPE_UNROLL
      for (int m = 0; m < kOwnRows; ++m) {
        state.corrections[m] = (state.any_visible >> m & 1u) != 0 ? 1.0f : 0.0f;
      }
    });
    block_.template Reduce<kLanes, kOwnRows>([&](int thread) { return states_[thread].totals; },
                                             [](float a, float b) { return a + b; });
    block_.template Reduce<kLanes, kOwnRows>(
        [&](int thread) { return states_[thread].corrections; },
        [](float a, float b) { return std::fmax(a, b); });
    block_.Lanes([&](int thread) {
      ROPE_UNROLL
      for (int m = 0; m < kOwnRows; ++m) Write(thread, m);
    });
  }

  ROPE_DEVICE void Write(int thread, int m) {
    const State& state = states_[thread];
    const int number = Products::RowOf(thread, m);
    if (number >= task_.rows) return;
    RowState row = Row(thread, m);
    row.maximum = static_cast<float>(static_cast<double>(state.bases[m]) / kLog2OfE);
    row.total = state.totals[m];
    row.any_visible = state.corrections[m] != 0.0f;
    const RowWriter<T> writer(call_, task_, number, row, call_.schedule.splits > 1);
    ROPE_UNROLL
    for (int n = 0; n < kChannelBlocks; ++n) {
      const float* sums = state.sums[m / 2][n] + m % 2 * 2;
      writer.Channels(Products::ColumnOf(thread, n, 0), sums[0], sums[1]);
    }
    if (thread % kLanes == 0) writer.Statistics();
  }

  Block& block_;
  const Call<T>& call_;
  const Task task_;
  States states_;
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_TENSOR_ROWS_H_
