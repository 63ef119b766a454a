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
// threads have which rows, keys and channels (plain_products.h, tensor_products.h).
template <typename T, typename Products>
struct AttentionKernel {
  static constexpr int kThreads = Products::kThreads;
  static constexpr int kRows = Products::kRows;
  static constexpr int kKeys = Products::kKeys;
  static constexpr int kLanes = Products::kLanes;  // threads of a row
  static constexpr int kOwnRows = Products::kOwnRows;
  static constexpr int kOwnKeys = Products::kOwnKeys;
  static constexpr int kOwnChannels = Products::kOwnChannels;

  static int64_t Blocks(const Call<T>& call) { return call.units() * call.splits; }
  static int64_t SharedFloats(const Call<T>& call) {
    return Products::SharedFloats(call.head_size, call.v_head_size);
  }

  // A thread's share of the block's rows.
  struct State {
    RowState rows[kOwnRows];
    float products[kOwnRows][kOwnKeys];  // of one band
    float scores[kOwnRows][kOwnKeys];    // then weights
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
          total_(call.total(task_.batch)),
          indices_(IndicesOf(call, task_)),
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
      const int64_t* first = call_.first_span + task_.batch * call_.blocks + task_.block;
      TileWalk walk(call_.spans + first[0], call_.spans + first[1], kKeys, task_.split,
                    call_.splits);
      for (Range tile; walk.Next(tile);) ComputeTile(tile);
      Finish();
    }

   private:
    ROPE_DEVICE void ComputeTile(Range tile) {
      int32_t loaded = -1;  // the key map whose keys the tile holds
      for (int64_t band = 0; band < call_.band_count; ++band) {
        if (!BandTouches(call_, band, indices_, call_.shifts[task_.batch], total_, tile)) continue;
        if (band != query_band_) LoadQueries(band);
        if (call_.map_of[band] != loaded) LoadKeys(tile, call_.map_of[band]);
        query_band_ = band;
        loaded = call_.map_of[band];
        products_.Multiply(block_, states_, QueriesAreRounded(call_),
                           KeysAreRounded(call_, task_, tile));
        Select(tile, band);
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
      products_.Accumulate(block_, states_, static_cast<int>(tile.size()), odd, call_.fast);
    }

    // The block's queries as a band has them; zeros behind the last row and channel.
    ROPE_DEVICE void LoadQueries(int64_t band) {
      const int64_t channels = products_.channels();
      block_.ForThreads([&](int thread) {
        for (int64_t i = thread; i < kRows * channels; i += kThreads) {
          const int row = static_cast<int>(i / channels);
          const int c = static_cast<int>(i % channels);
          const bool there = row < task_.rows && c < call_.head_size;
          products_.StoreQuery(row, c, there ? QueryChannel(call_, task_, row, band, c) : 0.0f);
        }
      });
    }

    ROPE_DEVICE void LoadKeys(Range tile, int32_t map) {
      if (KeysComeInChunks(call_)) return LoadKeyChunks(tile);
      const int64_t channels = products_.channels();
      block_.ForThreads([&](int thread) {
        for (int64_t i = thread; i < kKeys * channels; i += kThreads) {
          const int column = static_cast<int>(i / channels);
          const int c = static_cast<int>(i % channels);
          const bool there = tile.begin + column < tile.end && c < call_.head_size;
          products_.StoreKey(column, c,
                             there ? KeyChannel(call_, task_, tile.begin + column, map, c) : 0.0f);
        }
      });
    }

    ROPE_DEVICE void LoadKeyChunks(Range tile) {
      const int chunks = products_.channels() / kChunk;
      block_.ForThreads([&](int thread) {
        for (int i = thread; i < kKeys * chunks; i += kThreads) {
          const int column = i / chunks;
          const int c = i % chunks * kChunk;
          alignas(16) float numbers[kChunk] = {};
          if (tile.begin + column < tile.end && c < call_.head_size) {
            KeyChunk(call_, task_, tile.begin + column, c, numbers);
          }
          products_.StoreKeys(column, c, numbers);
        }
      });
    }

    // Takes the products of keys at the band's distances for scores.
    ROPE_DEVICE void Select(Range tile, int64_t band) {
      block_.ForThreads([&](int thread) {
        State& state = states_[thread];
        ROPE_UNROLL
        for (int m = 0; m < kOwnRows; ++m) {
          const Range own = BandKeysOf(call_, task_, state.rows[m].index, band, total_);
          ROPE_UNROLL
          for (int n = 0; n < kOwnKeys; ++n) {
            const int64_t key = tile.begin + Products::ColumnOf(thread, n);
            if (own.begin <= key && key < own.end) state.scores[m][n] = state.products[m][n];
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
          const int64_t key = tile.begin + Products::ColumnOf(thread, n);
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
          state.scores[m][n] = state.rows[m].Weight(state.scores[m][n]);
          state.rows[m].total += state.scores[m][n];
        }
      }
    }

    // Puts the tile's values where its keys were. Whether this thread met one
    // that is no finite number.
    ROPE_DEVICE bool LoadValues(Range tile, int thread) {
      bool odd = false;
      const int channels = products_.v_channels();
      const int size = static_cast<int>(call_.v_head_size);
      // Neighbouring threads take neighbouring keys: transposed, they stand side by side.
      for (int i = thread; i < (channels + kChunk - 1) / kChunk * kKeys; i += kThreads) {
        const int column = i % kKeys;
        const int begin = i / kKeys * kChunk;
        alignas(16) T values[kChunk] = {};
        if (tile.begin + column < tile.end) {
          const T* row = ValueRow(call_, task_, tile.begin + column) + begin;
          if (begin + kChunk <= size) {
            CopyChunk<T>(row, values);
          } else {
            for (int x = 0; begin + x < size; ++x) values[x] = row[x];
          }
        }
        ROPE_UNROLL
        for (int x = 0; x < kChunk; ++x) {
          odd = odd || !IsFinite(values[x]);
          if (begin + x < channels) products_.StoreValue(column, begin + x, values[x]);
        }
      }
      return odd;
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
          const int row = Products::RowOf(thread, m);
          if (row >= task_.rows) continue;
          state.rows[m].seen = state.corrections[m] != 0.0f;
          const RowWriter<T> writer(call_, task_, row, state.rows[m], call_.splits > 1);
          ROPE_UNROLL
          for (int n = 0; n < kOwnChannels; ++n) {
            const int c = Products::ColumnOf(thread, n);
            if (c < call_.v_head_size) writer.Channel(c, state.sums[m][n]);
          }
          if (thread % kLanes == 0) writer.Rest();
        }
      });
    }

    Block& block_;
    const Call<T>& call_;
    const Task task_;
    const int64_t total_;
    const Range indices_;  // of the block's queries
    Products products_;
    int64_t query_band_ = -1;  // the band that the queries in shared memory are turned for
    typename Block::template PerThread<State> states_;
  };

  template <typename Block>
  ROPE_DEVICE static void Run(Block& block, const Call<T>& call) {
    Worker<Block>(block, call).Run();
  }
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_ATTENTION_KERNEL_H_
