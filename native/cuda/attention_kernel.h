// Attention of blocks of query rows, tile by tile of keys: one running softmax
// per row (FlashAttention-2, Dao 2023, algorithm 1), in float32.
#ifndef ROPE_CUDA_ATTENTION_KERNEL_H_
#define ROPE_CUDA_ATTENTION_KERNEL_H_

#include "result.h"
#include "rotation.h"
#include "schedule.h"
#include "scores.h"

namespace rope::cuda {

// Products says how the two products of a tile are made, and with that which
// threads have which rows, keys and channels (plain_products.h).
template <typename T, typename Products>
struct AttentionKernel {
  static constexpr int kThreads = Products::kThreads;
  static constexpr int kRows = Products::kRows;
  static constexpr int kKeys = Products::kKeys;
  static constexpr int kLanes = Products::kLanes;  // threads of a row
  static constexpr int kOwnRows = Products::kOwnRows;
  static constexpr int kOwnKeys = Products::kOwnKeys;
  static constexpr int kOwnChannels = Products::kOwnChannels;

  static int64_t Blocks(const Call<T>& call) { return call.units() * call.schedule.splits; }
  static int64_t SharedFloats(const Call<T>& call) {
    return Products::SharedFloats(call.head_size, call.v_head_size);
  }

  // A thread's share of the block's rows.
  struct State {
    RowState rows[kOwnRows];
    float scores[kOwnRows][kOwnKeys];  // products, then weights
    float corrections[kOwnRows];
    float sums[kOwnRows][kOwnChannels];
  };

  template <typename Block>
  class Worker {
   public:
    ROPE_DEVICE Worker(Block& block, const Call<T>& call, const Task& task)
        : block_(block),
          call_(call),
          task_(task),
          products_(block.shared(), call.head_size, call.v_head_size) {}

    ROPE_DEVICE void Run() {
      block_.ForThreads([&](int thread) {
        State& state = states_[thread];
        ROPE_UNROLL
        for (int m = 0; m < kOwnRows; ++m) {
          state.rows[m] = RowState::Of(call_, task_, Products::RowOf(thread, m));
          ROPE_UNROLL
          for (int n = 0; n < kOwnChannels; ++n) state.sums[m][n] = 0.0f;
        }
      });
      TileWalk<T> walk(call_, task_, kKeys);
      int64_t band = -1;
      for (Span tile; walk.Next(tile);) {
        if (tile.band != band) LoadQueries(tile.band);
        band = tile.band;
        ComputeTile(tile);
      }
      Finish();
    }

   private:
    ROPE_DEVICE void ComputeTile(const Span& tile) {
      LoadKeys(tile.keys, call_.key_angles.of_band[tile.band]);
      products_.Multiply(block_, states_);
      const TileMask<T> mask(call_, task_, tile);
      block_.ForThreads([&](int thread) { Score(mask, tile.keys, thread); });
      block_.template Reduce<kLanes, kOwnRows>(
          [&](int thread) { return states_[thread].corrections; },
          [](float a, float b) { return Larger(a, b); });
      block_.ForThreads([&](int thread) { Weigh(thread); });
      const bool non_finite =
          block_.AnyThread([&](int thread) { return LoadValues(tile.keys, thread); });
      products_.Accumulate(block_, states_, static_cast<int>(tile.keys.size()), non_finite);
    }

    // The block's queries as a band has them.
    ROPE_DEVICE void LoadQueries(int64_t band) {
      const int chunks = ChunksOf(products_.channels());
      block_.ForThreads([&](int thread) {
        for (int i = thread; i < kRows * chunks; i += kThreads) {
          const int row = i / chunks;
          const int c = i % chunks * kChunk;
          alignas(16) float numbers[kChunk];
          QueryChunk(call_, task_, row, band, c, numbers);
          products_.StoreQueries(row, c, numbers);
        }
      });
    }

    ROPE_DEVICE void LoadKeys(Range tile, int32_t map) {
      const int chunks = ChunksOf(products_.channels());
      block_.ForThreads([&](int thread) {
        for (int i = thread; i < kKeys * chunks; i += kThreads) {
          const int column = i / chunks;
          const int c = i % chunks * kChunk;
          alignas(16) float numbers[kChunk] = {};
          if (tile.begin + column < tile.end) {
            KeyChunk<true>(call_, task_, tile.begin + column, map, c, numbers);
          }
          products_.StoreKeys(column, c, numbers);
        }
      });
    }

    // Turns products into scores, hidden ones into -inf; leaves each row's largest
    // of this thread's in corrections.
    ROPE_DEVICE void Score(const TileMask<T>& mask, Range tile, int thread) {
      State& state = states_[thread];
      ROPE_UNROLL
      for (int m = 0; m < kOwnRows; ++m) {
        float largest = kNegativeInfinity;
        const Columns columns = mask.ColumnsOf(state.rows[m].index);
        ROPE_UNROLL
        for (int n = 0; n < kOwnKeys; ++n) {
          float& score = state.scores[m][n];
          const int column = Products::ColumnOf(thread, n);
          if (columns.Has(column) && mask.Shows(state.rows[m].index, column) &&
              Modify(call_, task_, state.rows[m], tile.begin + column, score)) {
            state.rows[m].any_visible = true;
          } else {
            score = kNegativeInfinity;
          }
          largest = Larger(largest, score);
        }
        state.corrections[m] = largest;
      }
    }

    // Turns scores into weights and carries the rows' maxima and totals on.
    ROPE_DEVICE void Weigh(int thread) {
      State& state = states_[thread];
      ROPE_UNROLL
      for (int m = 0; m < kOwnRows; ++m) {
        state.corrections[m] = state.rows[m].Raise(state.corrections[m]);
        ROPE_UNROLL
        for (int n = 0; n < kOwnKeys; ++n) {
          state.scores[m][n] = state.rows[m].Weight(state.scores[m][n]);
          state.rows[m].total += state.scores[m][n];
        }
      }
    }

    // Puts the tile's values where its keys were. Whether this thread met a non-finite one.
    ROPE_DEVICE bool LoadValues(Range tile, int thread) {
      bool non_finite = false;
      const int chunks = ChunksOf(products_.v_channels());
      for (int i = thread; i < kKeys * chunks; i += kThreads) {
        const int column = i / chunks;
        const int c = i % chunks * kChunk;
        float values[kChunk] = {};
        if (tile.begin + column < tile.end) {
          ValueRow(call_, task_, tile.begin + column).Load(c, values);
        }
        ROPE_UNROLL
        for (int x = 0; x < kChunk; ++x) non_finite = non_finite || !IsFinite(values[x]);
        products_.StoreValues(column, c, values);
      }
      return non_finite;
    }

    // Adds up what the threads of a row have and writes it.
    ROPE_DEVICE void Finish() {
      const auto reduce = [&](const auto& value, const auto& combine) {
        block_.Lanes([&](int thread) {
          ROPE_UNROLL
          for (int m = 0; m < kOwnRows; ++m) {
            states_[thread].corrections[m] = value(states_[thread].rows[m]);
          }
        });
        block_.template Reduce<kLanes, kOwnRows>(
            [&](int thread) { return states_[thread].corrections; }, combine);
      };
      reduce([](const RowState& row) { return row.total; }, [](float a, float b) { return a + b; });
      block_.Lanes([&](int thread) {
        ROPE_UNROLL
        for (int m = 0; m < kOwnRows; ++m) {
          states_[thread].rows[m].total = states_[thread].corrections[m];
        }
      });
      reduce([](const RowState& row) { return row.any_visible ? 1.0f : 0.0f; },
             [](float a, float b) { return a > b ? a : b; });
      block_.ForThreads([&](int thread) {
        State& state = states_[thread];
        ROPE_UNROLL
        for (int m = 0; m < kOwnRows; ++m) {
          const int row = Products::RowOf(thread, m);
          if (row >= task_.rows) continue;
          state.rows[m].any_visible = state.corrections[m] != 0.0f;
          const RowWriter<T> writer(call_, task_, row, state.rows[m], call_.schedule.splits > 1);
          ROPE_UNROLL
          for (int n = 0; n < kOwnChannels; ++n) {
            const int c = Products::ColumnOf(thread, n);
            if (c < call_.v_head_size) writer.Channel(c, state.sums[m][n]);
          }
          if (thread % kLanes == 0) writer.Statistics();
        }
      });
    }

    Block& block_;
    const Call<T>& call_;
    const Task task_;
    Products products_;
    typename Block::template PerThread<State> states_;
  };

  template <typename Block>
  ROPE_DEVICE static void Run(Block& block, const Call<T>& call) {
    Worker<Block>(block, call, TaskOf(call, block.index())).Run();
  }
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_ATTENTION_KERNEL_H_
