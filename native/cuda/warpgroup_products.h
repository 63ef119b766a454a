// The two products of a tile of 16-bit numbers by warpgroups (wgmma.m64nNk16). Threads have of
// rows, keys and channels what tensor_products.h says; each warpgroup multiplies 64 rows.
#ifndef ROPE_CUDA_WARPGROUP_PRODUCTS_H_
#define ROPE_CUDA_WARPGROUP_PRODUCTS_H_

#include "tensor_products.h"
#include "wgmma.h"

namespace rope::cuda {

template <typename T, const TileShape& kShape>
class WarpgroupProducts {
 public:
  using Tiles = TensorTiles<T, kShape>;
  static_assert(kShape.rows == kShape.threads / kWarpgroupThreads * kWarpgroupRows);

  // Begins scores = queries · keys, of the tile in a stage.
  template <typename Block, typename States>
  ROPE_DEVICE static void Multiply(Block& block, States& states, int stage, bool query_residuals,
                                   bool key_residuals) {
    const int keys = Tiles::kKeyTile + stage * Tiles::kTileBytes;
    Add(block, states, Tiles::kQueries, keys, false);
    if (key_residuals) {
      Add(block, states, Tiles::kQueries, Tiles::kKeyResiduals + stage * Tiles::kTileBytes, true);
    }
    if (query_residuals) Add(block, states, Tiles::kQueryResiduals, keys, true);
  }

  // Begins sums += weights · values.
  template <typename Block, typename States>
  ROPE_DEVICE static void Accumulate(Block& block, States& states, int stage,
                                     bool weight_residuals) {
    const auto sums = [&](int t) { return states[t].sums[0][0]; };
    const uint64_t values = DescriptorOf(
        block.Address(Tiles::kValueTile + stage * Tiles::kTileBytes), kEightRows, kSquareBytes);
    block.ForWarpgroups([&](int warpgroup) {
      ROPE_UNROLL
      for (int k = 0; k < kShape.keys / 16; ++k) {
        const uint64_t from = Further(values, 2 * k * kEightRows);
        block.template MultiplyRegisters<T, kShape.channels>(
            warpgroup, sums, [&](int t) { return states[t].weights.pairs[k][0]; }, from);
        if (!weight_residuals) continue;
        block.template MultiplyRegisters<T, kShape.channels>(
            warpgroup, sums, [&](int t) { return states[t].weights.residuals[k][0]; }, from);
      }
    });
  }

 private:
  static constexpr int kEightRows = kSquareRows * Tiles::kPitch;

  // scores = rows · keys, or that added to them.
  template <typename Block, typename States>
  ROPE_DEVICE static void Add(Block& block, States& states, int rows, int keys, bool adds) {
    const auto scores = [&](int t) { return states[t].scores[0][0]; };
    const auto at = [&](int place) {
      return DescriptorOf(block.Address(place), kEightRows, kSquareBytes);
    };
    const uint64_t b = at(keys);
    block.ForWarpgroups([&](int warpgroup) {
      const uint64_t a = at(rows + warpgroup * kWarpgroupRows * Tiles::kPitch);
      ROPE_UNROLL
      for (int k = 0; k < kShape.channels; k += 16) {
        constexpr int kSize = static_cast<int>(sizeof(T));
        constexpr int kAcross = kSquareRowBytes / kSize;
        const int step = k / kAcross * kSquareBytes + k % kAcross * kSize;
        block.template MultiplyShared<T, kShape.keys>(warpgroup, scores, Further(a, step),
                                                      Further(b, step), adds || k > 0);
      }
    });
  }
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_WARPGROUP_PRODUCTS_H_
