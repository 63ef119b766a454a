// Attention of blocks of query rows, tile by tile of keys: one running softmax
// per row (FlashAttention-2, Dao 2023, algorithm 1), all in float32.
#ifndef ROPE_CUDA_ATTENTION_KERNEL_H_
#define ROPE_CUDA_ATTENTION_KERNEL_H_

#include <algorithm>

#include "result.h"
#include "rotation.h"
#include "schedule.h"
#include "scores.h"

namespace rope::cuda {

// Eight threads share a query row: thread t has the rows of group t / 8 and of
// those the keys and channels with the remainder t % 8.
template <typename T, int kRows, int kKeys, int kChannels>
struct AttentionKernel {
  static constexpr TileShape kShape{kRows, kKeys, kChannels};
  static constexpr int kThreads = 128;
  static constexpr int kLanes = 8;
  static constexpr int kGroups = kThreads / kLanes;
  static constexpr int kOwnRows = kRows / kGroups;
  static constexpr int kOwnKeys = kKeys / kLanes;
  static constexpr int kOwnChannels = kChannels / kLanes;
  static_assert(kOwnRows * kGroups == kRows && kOwnKeys * kLanes == kKeys &&
                kOwnChannels * kLanes == kChannels);

  static int64_t Blocks(const Call<T>& call) { return call.units() * call.splits; }

  // Shared memory: queries, then a tile of keys or of values, then weights. Rows
  // are one float longer than they need, so that neighbouring rows lie in other banks.
  static int64_t SharedFloats(const Call<T>& call) {
    const int64_t longer = std::max(call.head_size, call.v_head_size);
    return kRows * (call.head_size + 1) + kKeys * (longer + 1) + kRows * (kKeys + 1);
  }

  // A thread's share of the block's rows.
  struct State {
    RowState rows[kOwnRows];
    float scores[kOwnRows][kOwnKeys];
    float corrections[kOwnRows];
    float sums[kOwnRows][kOwnChannels];
  };

  template <typename Block>
  class Worker {
   public:
    ROPE_DEVICE Worker(Block& block, const Call<T>& call)
        : block_(block),
          call_(call),
          task_(TaskOf(call, block.index())),
          past_(call.past(task_.batch)),
          total_(call.total(task_.batch)),
          indices_(IndicesOf(call, task_)),
          queries_(block.shared()),
          keys_(queries_ + kRows * (call.head_size + 1)),
          weights_(keys_ + kKeys * (Longer() + 1)) {}

    ROPE_DEVICE void Run() {
      block_.ForThreads([&](int thread) {
        State& state = states_[thread];
        ROPE_UNROLL
        for (int m = 0; m < kOwnRows; ++m) {
          state.rows[m] = RowState::Of(call_, task_, RowOf(thread, m));
          ROPE_UNROLL
          for (int n = 0; n < kOwnChannels; ++n) state.sums[m][n] = 0.0f;
        }
      });
      const int64_t* first = call_.first_span + task_.batch * call_.blocks + task_.block;
      TileWalk walk(call_.spans + first[0], call_.spans + first[1], kKeys, task_.split,
                    call_.splits);
      for (Range tile; walk.Next(tile);) ComputeTile(tile);
      Finish();
    }

   private:
    ROPE_DEVICE static int RowOf(int thread, int m) { return thread / kLanes * kOwnRows + m; }
    ROPE_DEVICE static int ColumnOf(int thread, int n) { return thread % kLanes + n * kLanes; }
    ROPE_DEVICE int64_t Longer() const {
      return call_.head_size > call_.v_head_size ? call_.head_size : call_.v_head_size;
    }

    ROPE_DEVICE void ComputeTile(Range tile) {
      int32_t loaded = -1;  // the key map whose keys the tile holds
      for (int64_t band = 0; band < call_.band_count; ++band) {
        if (!BandTouches(call_, band, indices_, call_.shifts[task_.batch], total_, tile)) continue;
        if (band != query_band_) LoadQueries(band);
        if (call_.map_of[band] != loaded) LoadKeys(tile, call_.map_of[band]);
        query_band_ = band;
        loaded = call_.map_of[band];
        Multiply(tile, band);
      }
      const TileMask<T> mask(call_, task_, indices_, tile);
      block_.ForThreads([&](int thread) { Score(mask, tile, thread); });
      ROPE_UNROLL
      for (int m = 0; m < kOwnRows; ++m) {
        block_.template Reduce<kLanes>(
            [&](int thread) -> float& { return states_[thread].corrections[m]; },
            [](float a, float b) { return Larger(a, b); });
      }
      block_.ForThreads([&](int thread) { Weigh(thread); });
      const bool odd = block_.AnyThread([&](int thread) { return LoadValues(tile, thread); });
      block_.ForThreads([&](int thread) {
        odd ? Accumulate<true>(tile, thread) : Accumulate<false>(tile, thread);
      });
    }

    // The block's queries as a band has them; zeros behind the last row.
    ROPE_DEVICE void LoadQueries(int64_t band) {
      const int64_t size = call_.head_size;
      block_.ForThreads([&](int thread) {
        for (int64_t i = thread; i < kRows * size; i += kThreads) {
          const int64_t row = i / size;
          const int64_t c = i % size;
          queries_[row * (size + 1) + c] =
              row < task_.rows ? QueryChannel(call_, task_, row, band, c) : 0.0f;
        }
      });
    }

    ROPE_DEVICE void LoadKeys(Range tile, int32_t map) {
      const int64_t size = call_.head_size;
      block_.ForThreads([&](int thread) {
        for (int64_t i = thread; i < kKeys * size; i += kThreads) {
          const int64_t key = tile.begin + i / size;
          const int64_t c = i % size;
          keys_[i / size * (size + 1) + c] =
              key < tile.end ? KeyChannel(call_, task_, key, map, c) : 0.0f;
        }
      });
    }

    // scores = queries · keys, as far as they are at the band's distances.
    ROPE_DEVICE void Multiply(Range tile, int64_t band) {
      const int64_t stride = call_.head_size + 1;
      block_.ForThreads([&](int thread) {
        float products[kOwnRows][kOwnKeys] = {};
        const float* queries = queries_ + RowOf(thread, 0) * stride;
        const float* keys = keys_ + ColumnOf(thread, 0) * stride;
        for (int64_t c = 0; c < call_.head_size; ++c) {
          float k[kOwnKeys];
          ROPE_UNROLL
          for (int n = 0; n < kOwnKeys; ++n) k[n] = keys[n * kLanes * stride + c];
          ROPE_UNROLL
          for (int m = 0; m < kOwnRows; ++m) {
            const float q = queries[m * stride + c];
            ROPE_UNROLL
            for (int n = 0; n < kOwnKeys; ++n) products[m][n] += q * k[n];
          }
        }
        State& state = states_[thread];
        ROPE_UNROLL
        for (int m = 0; m < kOwnRows; ++m) {
          const Range own = BandKeysOf(call_, task_, state.rows[m].index, band, total_);
          ROPE_UNROLL
          for (int n = 0; n < kOwnKeys; ++n) {
            const int64_t key = tile.begin + ColumnOf(thread, n);
            if (own.begin <= key && key < own.end) state.scores[m][n] = products[m][n];
          }
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
        ROPE_UNROLL
        for (int n = 0; n < kOwnKeys; ++n) {
          float& score = state.scores[m][n];
          const int64_t key = tile.begin + ColumnOf(thread, n);
          if (key < tile.end && mask.Shows(state.rows[m], key) &&
              Modify(call_, task_, state.rows[m], key, score)) {
            state.rows[m].seen = true;
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
          const float weight = state.rows[m].Weight(state.scores[m][n]);
          state.rows[m].total += weight;
          weights_[RowOf(thread, m) * (kKeys + 1) + ColumnOf(thread, n)] = weight;
        }
      }
    }

    // Puts the tile's values where its keys were. Whether this thread met one
    // that is no finite number.
    ROPE_DEVICE bool LoadValues(Range tile, int thread) {
      const int64_t size = call_.v_head_size;
      bool odd = false;
      for (int64_t i = thread; i < kKeys * size; i += kThreads) {
        const int64_t key = tile.begin + i / size;
        const float v = key < tile.end ? ToFloat(ValueRow(call_, task_, key)[i % size]) : 0.0f;
        odd = odd || v - v != 0.0f;
        keys_[i / size * (size + 1) + i % size] = v;
      }
      return odd;
    }

    // sums = sums * corrections + weights · values. With kOdd, keys without
    // weight are passed over: 0 times infinity is not nothing.
    template <bool kOdd>
    ROPE_DEVICE void Accumulate(Range tile, int thread) {
      State& state = states_[thread];
      ROPE_UNROLL
      for (int m = 0; m < kOwnRows; ++m) {
        ROPE_UNROLL
        for (int n = 0; n < kOwnChannels; ++n) state.sums[m][n] *= state.corrections[m];
      }
      const int64_t stride = call_.v_head_size + 1;
      const float* weights = weights_ + RowOf(thread, 0) * (kKeys + 1);
      for (int64_t j = 0; j < tile.size(); ++j) {
        float v[kOwnChannels];
        ROPE_UNROLL
        for (int n = 0; n < kOwnChannels; ++n) {
          const int c = ColumnOf(thread, n);
          v[n] = c < call_.v_head_size ? keys_[j * stride + c] : 0.0f;
        }
        ROPE_UNROLL
        for (int m = 0; m < kOwnRows; ++m) {
          const float weight = weights[m * (kKeys + 1) + j];
          if (kOdd && weight == 0.0f) continue;
          ROPE_UNROLL
          for (int n = 0; n < kOwnChannels; ++n) state.sums[m][n] += weight * v[n];
        }
      }
    }

    // Adds up what the threads of a row have and writes it.
    ROPE_DEVICE void Finish() {
      ROPE_UNROLL
      for (int m = 0; m < kOwnRows; ++m) {
        block_.template Reduce<kLanes>(
            [&](int thread) -> float& { return states_[thread].rows[m].total; },
            [](float a, float b) { return a + b; });
        block_.ForThreads([&](int thread) {
          RowState& row = states_[thread].rows[m];
          states_[thread].corrections[m] = row.seen ? 1.0f : 0.0f;
        });
        block_.template Reduce<kLanes>(
            [&](int thread) -> float& { return states_[thread].corrections[m]; },
            [](float a, float b) { return a > b ? a : b; });
      }
      block_.ForThreads([&](int thread) {
        State& state = states_[thread];
        ROPE_UNROLL
        for (int m = 0; m < kOwnRows; ++m) {
          const int row = RowOf(thread, m);
          if (row >= task_.rows) continue;
          state.rows[m].seen = state.corrections[m] != 0.0f;
          const RowWriter<T> writer(call_, task_, row, state.rows[m], call_.splits > 1);
          ROPE_UNROLL
          for (int n = 0; n < kOwnChannels; ++n) {
            const int c = ColumnOf(thread, n);
            if (c < call_.v_head_size) writer.Channel(c, state.sums[m][n]);
          }
          if (thread % kLanes == 0) writer.Rest();
        }
      });
    }

    Block& block_;
    const Call<T>& call_;
    const Task task_;
    const int64_t past_;
    const int64_t total_;
    const Range indices_;  // of the block's queries
    float* const queries_;
    float* const keys_;  // or values
    float* const weights_;
    int64_t query_band_ = -1;  // the band that queries_ are turned for
    typename Block::template PerThread<State> states_;
  };

  template <typename Block>
  ROPE_DEVICE static void Run(Block& block, const Call<T>& call) {
    Worker<Block>(block, call).Run();
  }
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_ATTENTION_KERNEL_H_
