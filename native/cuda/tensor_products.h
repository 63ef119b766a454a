// The two products of a tile of 16-bit numbers on tensor cores (mma.m16n8k16).
#ifndef ROPE_CUDA_TENSOR_PRODUCTS_H_
#define ROPE_CUDA_TENSOR_PRODUCTS_H_

#include "tensor_tiles.h"

namespace rope::cuda {

// Each warp multiplies kParts times 16 rows: of 16 x 8 results, thread t of a warp
// has rows t / 4 and t / 4 + 8 and columns 2 (t % 4) and the next one. What a thread
// has is a state with
//   float scores[kParts][kKeys / 8][4], sums[kParts][kChannels / 8][4]
// whose last index is 2 * row + column, and Weights.
//
// A number is two of T, the rounded one and its residual (tensor_tiles.h). The product of two
// residuals, smaller than 2^-16 of the whole, is left out.
template <typename T, const TileShape& kShape>
class TensorProducts {
 public:
  using Tiles = TensorTiles<T, kShape>;
  static constexpr int kParts = kShape.rows * 2 / kShape.threads;
  static constexpr int kKeys = kShape.keys;
  static constexpr int kChannels = kShape.channels;
  static_assert(kParts * kShape.threads == kShape.rows * 2 && kKeys % 16 == 0 &&
                kChannels % 16 == 0);

  // Weights as operands of sixteen keys each: results of one product are laid out as an
  // operand of the next.
  struct Weights {
    uint32_t pairs[kKeys / 16][kParts][4], residuals[kKeys / 16][kParts][4];
  };

  // The m-th of a thread's rows, two of each part, and its i-th column of block n.
  ROPE_DEVICE static int RowOf(int thread, int m) {
    return (thread / 32 * kParts + m / 2) * 16 + m % 2 * 8 + thread % 32 / 4;
  }
  ROPE_DEVICE static int ColumnOf(int thread, int n, int i) { return n * 8 + thread % 4 * 2 + i; }

  // scores = queries · keys, of the tile in a stage.
  template <typename Block, typename States>
  ROPE_DEVICE static void Multiply(Block& block, States& states, int stage, bool query_residuals,
                                   bool key_residuals) {
    const int of_stage = stage * Tiles::kTileBytes;
    typename Block::template PerThread<Operands> operands;
    block.Lanes([&](int t) {
      ROPE_UNROLL
      for (int p = 0; p < kParts; ++p) {
        ROPE_UNROLL
        for (int n = 0; n < kKeys / 8; ++n) {
          ROPE_UNROLL
          for (int i = 0; i < 4; ++i) states[t].scores[p][n][i] = 0.0f;
        }
      }
    });
    ROPE_UNROLL
    for (int k = 0; k < kChannels; k += 16) {
      ROPE_UNROLL
      for (int p = 0; p < kParts; ++p) {
        LoadRows(block, Tiles::kQueries, p, k, [&](int t) { return operands[t].a[p]; });
        if (!query_residuals) continue;
        LoadRows(block, Tiles::kQueryResiduals, p, k,
                 [&](int t) { return operands[t].a_residual[p]; });
      }
      ROPE_UNROLL
      for (int n = 0; n < kKeys / 8; n += 2) {
        const auto b = [&](int t) { return operands[t].b; };
        const auto b_residual = [&](int t) { return operands[t].b_residual; };
        const auto a = [&](int t, int p) { return operands[t].a[p]; };
        const auto a_residual = [&](int t, int p) { return operands[t].a_residual[p]; };
        LoadColumns(block, Tiles::kKeyTile + of_stage, n, k, b);
        const auto scores = [&](int t, int p) { return states[t].scores[p] + n; };
        Add(block, scores, a, b);
        if (key_residuals) {
          LoadColumns(block, Tiles::kKeyResiduals + of_stage, n, k, b_residual);
          Add(block, scores, a, b_residual);
        }
        if (query_residuals) Add(block, scores, a_residual, b);
      }
    }
  }

  // Rounds weights, which stand in scores. They take half the registers then.
  template <typename State>
  ROPE_DEVICE static void Round(State& state, bool residuals) {
    ROPE_UNROLL
    for (int k = 0; k < kKeys / 16; ++k) {
      ROPE_UNROLL
      for (int p = 0; p < kParts; ++p) {
        ROPE_UNROLL
        for (int i = 0; i < 4; ++i) {
          const float* weights = state.scores[p][2 * k + i / 2] + i % 2 * 2;
          const uint32_t pair = RoundedPair<T>(weights[0], weights[1]);
          state.weights.pairs[k][p][i] = pair;
          if (!residuals) continue;
          state.weights.residuals[k][p][i] = RoundedPair<T>(weights[0] - ToFloat(LowOf<T>(pair)),
                                                            weights[1] - ToFloat(HighOf<T>(pair)));
        }
      }
    }
  }

  // sums = sums * corrections.
  template <typename State>
  ROPE_DEVICE static void Correct(State& state) {
    ROPE_UNROLL
    for (int p = 0; p < kParts; ++p) {
      ROPE_UNROLL
      for (int n = 0; n < kChannels / 8; ++n) {
        ROPE_UNROLL
        for (int i = 0; i < 4; ++i) state.sums[p][n][i] *= state.corrections[2 * p + i / 2];
      }
    }
  }

  // sums = sums * corrections + weights · values.
  template <typename Block, typename States>
  ROPE_DEVICE static void Accumulate(Block& block, States& states, bool weight_residuals) {
    typename Block::template PerThread<Operands> operands;
    block.Lanes([&](int t) { Correct(states[t]); });
    ROPE_UNROLL
    for (int k = 0; k < kKeys / 16; ++k) {
      ROPE_UNROLL
      for (int n = 0; n < kChannels / 8; n += 2) {
        const auto b = [&](int t) { return operands[t].b; };
        LoadValues(block, 16 * k, n, b);
        const auto sums = [&](int t, int p) { return states[t].sums[p] + n; };
        Add(block, sums, [&](int t, int p) { return states[t].weights.pairs[k][p]; }, b);
        if (!weight_residuals) continue;
        Add(block, sums, [&](int t, int p) { return states[t].weights.residuals[k][p]; }, b);
      }
    }
  }

 private:
  struct Operands {
    uint32_t a[kParts][4], a_residual[kParts][4];  // of 16 columns
    uint32_t b[4], b_residual[4];                  // of two blocks of eight columns
  };

  // Channels [k, k + 16) of a part's rows of queries.
  template <typename Block, typename Out>
  ROPE_DEVICE static void LoadRows(Block& block, int tile, int p, int k, const Out& out) {
    block.template LoadMatrices<false>(
        [&](int t) {
          const int row = (t / 32 * kParts + p) * 16 + t % 16;
          return tile + row * Tiles::kPitch + (k + t % 32 / 16 * 8) * 2;
        },
        out);
  }
  // The same channels of keys [8 n, 8 n + 16).
  template <typename Block, typename Out>
  ROPE_DEVICE static void LoadColumns(Block& block, int tile, int n, int k, const Out& out) {
    block.template LoadMatrices<false>(
        [&](int t) {
          const int key = n * 8 + t % 32 / 16 * 8 + t % 8;
          return tile + key * Tiles::kPitch + (k + t / 8 % 2 * 8) * 2;
        },
        out);
  }
  // Channels [8 n, 8 n + 16) of the values of keys [k, k + 16).
  template <typename Block, typename Out>
  ROPE_DEVICE static void LoadValues(Block& block, int k, int n, const Out& out) {
    block.template LoadMatrices<true>(
        [&](int t) {
          const int key = k + t / 8 % 2 * 8 + t % 8;
          return Tiles::kValueTile + key * Tiles::kPitch + (n * 8 + t % 32 / 16 * 8) * 2;
        },
        out);
  }

  // Adds a(thread, part) · b(thread) to two blocks of eight columns of each part.
  template <typename Block, typename Sums, typename A, typename B>
  ROPE_DEVICE static void Add(Block& block, const Sums& sums, const A& a, const B& b) {
    ROPE_UNROLL
    for (int p = 0; p < kParts; ++p) {
      ROPE_UNROLL
      for (int h = 0; h < 2; ++h) {
        block.template Mma<T>([&](int t, int i) -> float& { return sums(t, p)[h][i]; },
                              [&](int t, int i) { return a(t, p)[i]; },
                              [&](int t, int i) { return b(t)[2 * h + i]; });
      }
    }
  }
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_TENSOR_PRODUCTS_H_
