// Attention of blocks of query rows by warpgroups (sm_90a): the algorithm of tensor_kernel.h,
// with products that go on during the softmax (as in FlashAttention-3, Shah and others 2024).
#ifndef ROPE_CUDA_WARPGROUP_KERNEL_H_
#define ROPE_CUDA_WARPGROUP_KERNEL_H_

#include <algorithm>

#include "tensor_rows.h"
#include "warpgroup_products.h"

namespace rope::cuda {

template <typename T, const TileShape& kShape>
struct WarpgroupKernel {
  using Tiles = TensorTiles<T, kShape>;
  using Layout = TensorProducts<T, kShape>;
  using Products = WarpgroupProducts<T, kShape>;
  static constexpr int kThreads = kShape.threads;

  static int64_t Blocks(const Call<T>& call) { return call.units() * call.schedule.splits; }
  static int64_t SharedFloats(const Call<T>& call) {
    return std::max(Tiles::SharedFloats(), PlainAgain<T, kShape>::SharedFloats(call));
  }

  template <typename Block>
  class Worker {
   public:
    using Rows = TensorRows<T, kShape, Block>;

    ROPE_DEVICE Worker(Block& block, const Call<T>& call)
        : block_(block),
          call_(call),
          task_(TaskOf(call, block.index())),
          tiles_(call, task_),
          rows_(block, call, task_) {}

    ROPE_DEVICE void Run() {
      rows_.Clear();
      TileWalk<T> walk(call_, task_, kShape.keys);
      Span tile;
      if (walk.Next(tile)) {
        StartKeys(tile, 0);
        tiles_.StoreQueries(block_, tile.band);
        // So that the first tile, too, has one before it: without weights, of values that are 0.
        tiles_.StartValues(block_, {0, 0}, 1);
        block_.EndCopies();
        int stage = 0;
        while (ComputeTile(walk, tile, stage)) stage ^= 1;
        AwaitTiles();
        block_.BeginProducts();
        Products::Accumulate(block_, rows_.states(), stage, tiles_.residuals());
        block_.EndProducts();
        block_.template AwaitProducts<0>();
        Hold();
      }
      rows_.Finish();
    }

   private:
    ROPE_DEVICE void StartKeys(const Span& tile, int stage) {
      if (tiles_.CopiesKeys(tile.keys)) {
        tiles_.CopyKeys(block_, tile.keys, stage);
      } else {
        tiles_.StoreKeys(block_, tile.keys, call_.key_angles.of_band[tile.band], stage);
      }
    }

    // Shows every thread's copies and stores to all products, and to all threads that the products
    // of before have ended.
    ROPE_DEVICE void AwaitTiles() {
      block_.template AwaitCopies<0>();
      block_.ShowToProducts();
      block_.Barrier();
    }

    // Makes weights of a tile, whose keys are in a stage or on their way there, while those of the
    // tile before are multiplied with its values, which are in the other stage. Starts to copy the
    // tile's values. Takes the next tile, if there is one, and starts to copy its keys. Queries of
    // another band, and keys that are not just copied, take registers of their own and so come
    // after the products.
    ROPE_DEVICE bool ComputeTile(TileWalk<T>& walk, Span& tile, int stage) {
      AwaitTiles();
      rows_.Look(tile);
      Hold();
      block_.BeginProducts();
      Products::Multiply(block_, rows_.states(), stage, tiles_.residuals(),
                         kShape.residuals && Block::Uniform(tiles_.HaveResiduals(tile.keys)));
      block_.EndProducts();
      Products::Accumulate(block_, rows_.states(), stage ^ 1, tiles_.residuals());
      block_.EndProducts();
      Span next;
      const bool more = walk.Next(next);
      const bool early = more && next.band == tile.band && tiles_.CopiesKeys(next.keys);
      tiles_.StartValues(block_, tile.keys, stage);
      if (early) tiles_.CopyKeys(block_, next.keys, stage ^ 1);
      block_.EndCopies();
      block_.template AwaitProducts<1>();
      HoldScores();
      rows_.Weigh(tile);
      HoldScores();
      block_.Lanes([&](int thread) {  // or ptxas would move the wait in front of the softmax
        const auto& state = rows_.states()[thread];
        Block::Settle(state.totals[0] + state.totals[1]);
      });
      block_.template AwaitProducts<0>();
      Hold();
      block_.Lanes([&](int thread) {
        Layout::Correct(rows_.states()[thread]);
        Layout::Round(rows_.states()[thread], tiles_.residuals());
      });
      if (more && !early) {
        if (next.band != tile.band) {
          block_.Barrier();  // others still multiply with the queries
          tiles_.StoreQueries(block_, next.band);
        }
        StartKeys(next, stage ^ 1);
        block_.EndCopies();
      }
      tile = next;
      return more;
    }

    // Registers that products read or write stay as they are while these are under way.
    ROPE_DEVICE void HoldScores() {
      block_.Lanes([&](int thread) {
        Block::template Hold<sizeof(rows_.states()[0].scores) / 4>(
            rows_.states()[thread].scores[0][0]);
      });
    }
    ROPE_DEVICE void Hold() {
      HoldScores();
      block_.Lanes([&](int thread) {
        auto& state = rows_.states()[thread];
        Block::template Hold<sizeof(state.sums) / 4>(state.sums[0][0]);
        Block::template Hold<sizeof(state.weights.pairs) / 4>(state.weights.pairs[0][0]);
        if (tiles_.residuals()) {
          Block::template Hold<sizeof(state.weights.residuals) / 4>(state.weights.residuals[0][0]);
        }
      });
    }

    Block& block_;
    const Call<T>& call_;
    const Task task_;
    const Tiles tiles_;
    Rows rows_;
  };

  template <typename Block>
  ROPE_DEVICE static void Run(Block& block, const Call<T>& call) {
    Worker<Block>(block, call).Run();
  }
};

template <typename Kernel>
inline constexpr bool kNeedsWarpgroups = false;
template <typename T, const TileShape& kShape>
inline constexpr bool kNeedsWarpgroups<WarpgroupKernel<T, kShape>> = true;

}  // namespace rope::cuda

#endif  // ROPE_CUDA_WARPGROUP_KERNEL_H_
