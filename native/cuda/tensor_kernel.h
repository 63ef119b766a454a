// Attention of blocks of query rows on tensor cores, tile by tile of keys: the
// algorithm of attention_kernel.h, with copies that go on during the products.
#ifndef ROPE_CUDA_TENSOR_KERNEL_H_
#define ROPE_CUDA_TENSOR_KERNEL_H_

#include <algorithm>

#include "tensor_rows.h"

namespace rope::cuda {

template <typename T, const TileShape& kShape>
struct TensorKernel {
  using Tiles = TensorTiles<T, kShape>;
  using Products = TensorProducts<T, kShape>;
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
      bool more = walk.Next(tile);
      if (more) Start(tile, -1, 0);
      block_.EndCopies();
      for (int stage = 0; more; stage ^= kShape.ahead ? 1 : 0)
        more = ComputeTile(walk, tile, stage);
      rows_.Finish();
    }

   private:
    // Brings a tile's keys to shared memory, and the queries of its band unless they are there:
    // `band` is the one whose queries are, -1 for none.
    ROPE_DEVICE void Start(const Span& tile, int32_t band, int stage) {
      const bool copies = tiles_.CopiesKeys(tile.keys);
      if (copies) tiles_.CopyKeys(block_, tile.keys, stage);
      if (tile.band != band) tiles_.StoreQueries(block_, tile.band);
      if (!copies) {
        tiles_.StoreKeys(block_, tile.keys, call_.key_angles.of_band[tile.band], stage);
      }
    }

    // Takes the next tile, if there is one, and starts to copy its keys if they are just copied.
    struct Next {
      Span tile;
      bool more = false, early = false;
    };
    ROPE_DEVICE Next TakeNext(TileWalk<T>& walk, int32_t band, int stage) {
      Next next;
      next.more = walk.Next(next.tile);
      next.early = next.more && next.tile.band == band && tiles_.CopiesKeys(next.tile.keys) &&
                   !tiles_.ResidualsInValues(next.tile.keys);
      if (next.early) tiles_.CopyKeys(block_, next.tile.keys, stage);
      block_.EndCopies();
      return next;
    }

    // Computes a tile whose keys are being copied to a stage. The keys of the next tile are copied
    // while this tile's weights are multiplied, or, where there is a stage for them, from the begin
    // on. Queries of another band, and keys that are not just copied, take registers of their own
    // and so come after that. Values come at once, or when they take the place of residuals.
    ROPE_DEVICE bool ComputeTile(TileWalk<T>& walk, Span& tile, int stage) {
      const int next_stage = kShape.ahead ? stage ^ 1 : 0;
      const bool late = tiles_.ResidualsInValues(tile.keys);
      block_.template AwaitCopies<0>();
      block_.Barrier();
      if (!late) tiles_.StartValues(block_, tile.keys);
      block_.EndCopies();
      Next next;
      if (kShape.ahead) next = TakeNext(walk, tile.band, next_stage);
      rows_.Look(tile);
      Products::Multiply(block_, rows_.states(), stage, tiles_.residuals(),
                         tiles_.HaveResiduals(tile.keys));
      if (!kShape.ahead) block_.Barrier();
      if (late) {
        tiles_.StartValues(block_, tile.keys);
        block_.EndCopies();
      }
      rows_.Weigh(tile);
      block_.Lanes(
          [&](int thread) { Products::Round(rows_.states()[thread], tiles_.residuals()); });
      if (!kShape.ahead) next = TakeNext(walk, tile.band, next_stage);
      block_.template AwaitCopies<1>();
      block_.Barrier();
      Products::Accumulate(block_, rows_.states(), tiles_.residuals());
      if (next.more && tiles_.ResidualsInValues(next.tile.keys)) block_.Barrier();
      if (next.more && !next.early) Start(next.tile, tile.band, next_stage);
      block_.EndCopies();
      tile = next.tile;
      return next.more;
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

}  // namespace rope::cuda

#endif  // ROPE_CUDA_TENSOR_KERNEL_H_
