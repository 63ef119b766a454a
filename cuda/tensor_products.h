// The products of a tile of 16-bit numbers on tensor cores.
#ifndef ROPE_CUDA_TENSOR_PRODUCTS_H_
#define ROPE_CUDA_TENSOR_PRODUCTS_H_

#include <cstring>

#include "element.h"
#include "schedule.h"

namespace rope::cuda {

// Two neighbouring numbers as one operand of mma: the first in the low half.
template <typename T>
ROPE_DEVICE uint32_t Pair(T low, T high) {
  return static_cast<uint32_t>(low.bits) | static_cast<uint32_t>(high.bits) << 16;
}
template <typename T>
ROPE_DEVICE uint32_t LoadPair(const T* from) {
#ifdef __CUDACC__
  return *reinterpret_cast<const uint32_t*>(from);  // 4-byte aligned: even columns of even rows
#else
  return Pair(from[0], from[1]);
#endif
}
// What rounding to T leaves of a number, itself rounded; nothing of infinities.
template <typename T>
ROPE_DEVICE T RestOf(float x, T rounded) {
  return FromFloat<T>(IsFinite(rounded) ? x - ToFloat(rounded) : 0.0f);
}

// Each warp multiplies 16 rows by mma.m16n8k16: of 16 x 8 results, thread t of a
// warp has rows t / 4 and t / 4 + 8 and columns 2 (t % 4) and the next one.
//
// Numbers that T does not hold are two of T, the rounded one and the rest; the
// product of two rests, smaller than 2^-16 of the whole, is left out.
//
// Shared memory: queries and their rests, a tile of keys or of transposed values,
// the keys' rests or weights. Rows are eight numbers longer than they need, so
// that what a warp loads lies in 32 banks.
template <typename T, int kChannels_>
class TensorProducts {
 public:
  static constexpr int kRows = 64;
  static constexpr int kKeys = 64;
  static constexpr int kThreads = 128;
  static constexpr int kLanes = 4;
  static constexpr int kOwnRows = 2;
  static constexpr int kOwnKeys = kKeys / kLanes;
  static constexpr int kOwnChannels = kChannels_ / kLanes;
  static_assert(kRows * 32 == kThreads * 16 && kChannels_ % 16 == 0);

  ROPE_DEVICE static int RowOf(int thread, int m) {
    return thread / 32 * 16 + thread % 32 / 4 + 8 * m;
  }
  ROPE_DEVICE static int ColumnOf(int thread, int n) { return n / 2 * 8 + thread % 4 * 2 + n % 2; }

  static int64_t SharedFloats(int64_t channels, int64_t v_channels) {
    const Layout layout(static_cast<int>(channels), static_cast<int>(v_channels));
    return layout.end / 2;
  }

  ROPE_DEVICE TensorProducts(float* shared, int64_t channels, int64_t v_channels)
      : layout_(static_cast<int>(channels), static_cast<int>(v_channels)),
        queries_(reinterpret_cast<T*>(shared)),
        query_rests_(queries_ + kRows * layout_.pitch),
        keys_(queries_ + layout_.keys),
        key_rests_(queries_ + layout_.rests),
        weights_(shared + layout_.rests / 2) {}

  // With zeros behind the real ones.
  ROPE_DEVICE int channels() const { return layout_.channels; }
  ROPE_DEVICE int v_channels() const { return layout_.v_channels; }

  ROPE_DEVICE void StoreQuery(int row, int c, float x) {
    Split(x, queries_[row * layout_.pitch + c], query_rests_[row * layout_.pitch + c]);
  }
  ROPE_DEVICE void StoreKey(int column, int c, float x) {
    Split(x, keys_[column * layout_.pitch + c], key_rests_[column * layout_.pitch + c]);
  }
  // A chunk of channels of a key.
  ROPE_DEVICE void StoreKeys(int column, int c, const float* x) {
    alignas(16) T rounded[kChunk];
    alignas(16) T rests[kChunk];
    ROPE_UNROLL
    for (int i = 0; i < kChunk; ++i) Split(x[i], rounded[i], rests[i]);
    CopyChunk<T>(rounded, keys_ + column * layout_.pitch + c);
    CopyChunk<T>(rests, key_rests_ + column * layout_.pitch + c);
  }
  ROPE_DEVICE void StoreValue(int column, int c, T x) { keys_[c * kValuePitch + column] = x; }

  // products = queries · keys; what is `rounded` has no rests.
  template <typename Block, typename States>
  ROPE_DEVICE void Multiply(Block& block, States& states, bool queries_rounded, bool keys_rounded) {
    typename Block::template PerThread<Operands> operands;
    block.Lanes([&](int thread) {
      ROPE_UNROLL
      for (int n = 0; n < kOwnKeys; ++n) {
        states[thread].products[0][n] = states[thread].products[1][n] = 0.0f;
      }
    });
    const auto a = [&](int thread, int i) { return operands[thread].a[i]; };
    const auto a_rest = [&](int thread, int i) { return operands[thread].a_rest[i]; };
    const auto b = [&](int thread, int i) { return operands[thread].b[i]; };
    const auto b_rest = [&](int thread, int i) { return operands[thread].b_rest[i]; };
    for (int k = 0; k < layout_.channels; k += 16) {
      block.Lanes([&](int thread) {
        LoadRows(queries_, thread, k, operands[thread].a);
        LoadRows(query_rests_, thread, k, operands[thread].a_rest);
      });
      ROPE_UNROLL
      for (int n = 0; n < kKeys / 8; ++n) {
        block.Lanes([&](int thread) {
          LoadColumns(keys_, layout_.pitch, thread, n, k, operands[thread].b);
          if (!keys_rounded) {
            LoadColumns(key_rests_, layout_.pitch, thread, n, k, operands[thread].b_rest);
          }
        });
        const auto c = [&](int thread, int i) -> float& {
          return states[thread].products[i / 2][2 * n + i % 2];
        };
        block.template Mma<T>(c, a, b);
        if (!queries_rounded) block.template Mma<T>(c, a_rest, b);
        if (!keys_rounded) block.template Mma<T>(c, a, b_rest);
      }
    }
    block.Barrier();
  }

  // sums = sums * corrections + weights · values. Where values are `odd`, those
  // that are no finite numbers are left out here and added one by one. Weights that
  // may be `rounded` lose their rests.
  template <typename Block, typename States>
  ROPE_DEVICE void Accumulate(Block& block, States& states, int keys, bool odd,
                              bool weights_rounded) {
    typename Block::template PerThread<Operands> operands;
    block.Lanes([&](int thread) {
      auto& state = states[thread];
      ROPE_UNROLL
      for (int n = 0; n < kOwnChannels; ++n) {
        state.sums[0][n] *= state.corrections[0];
        state.sums[1][n] *= state.corrections[1];
      }
    });
    const auto a = [&](int thread, int i) { return operands[thread].a[i]; };
    const auto a_rest = [&](int thread, int i) { return operands[thread].a_rest[i]; };
    const auto b = [&](int thread, int i) { return operands[thread].b[i]; };
    ROPE_UNROLL
    for (int k = 0; k < kKeys; k += 16) {
      // Results of one product are laid out as an operand of the next.
      block.Lanes([&](int thread) {
        ROPE_UNROLL
        for (int i = 0; i < 4; ++i) {
          const float* weights = states[thread].scores[i % 2] + k / 4 + i / 2 * 2;
          const T first = FromFloat<T>(weights[0]);
          const T second = FromFloat<T>(weights[1]);
          operands[thread].a[i] = Pair(first, second);
          operands[thread].a_rest[i] = Pair(RestOf(weights[0], first), RestOf(weights[1], second));
        }
      });
      ROPE_UNROLL
      for (int n = 0; n < kChannels_ / 8; ++n) {
        if (n * 8 >= layout_.v_channels) continue;
        block.Lanes([&](int thread) {
          LoadColumns(keys_, kValuePitch, thread, n, k, operands[thread].b);
          if (odd) {
            operands[thread].b[0] = FinitePart(operands[thread].b[0]);
            operands[thread].b[1] = FinitePart(operands[thread].b[1]);
          }
        });
        const auto c = [&](int thread, int i) -> float& {
          return states[thread].sums[i / 2][2 * n + i % 2];
        };
        block.template Mma<T>(c, a, b);
        if (!weights_rounded) block.template Mma<T>(c, a_rest, b);
      }
    }
    if (odd) AddOdd(block, states, keys);
    block.Barrier();
  }

 private:
  static constexpr int kValuePitch = kKeys + 8;

  // Where things begin, in numbers of T.
  struct Layout {
    int channels, v_channels;  // in whole steps of mma
    int pitch;                 // of query and key rows
    int keys, rests, end;

    ROPE_DEVICE_HOST Layout(int head_size, int v_head_size)
        : channels((head_size + 15) / 16 * 16),
          v_channels((v_head_size + 7) / 8 * 8),
          pitch(channels + 8),
          keys(2 * kRows * pitch),
          rests(keys + (v_channels * kValuePitch > kKeys * pitch ? v_channels * kValuePitch
                                                                 : kKeys * pitch)),
          end(rests + (2 * kRows * (kKeys + 1) > kKeys * pitch ? 2 * kRows * (kKeys + 1)
                                                               : kKeys * pitch)) {}
  };

  struct Operands {
    uint32_t a[4], a_rest[4], b[2], b_rest[2];
  };

  ROPE_DEVICE static void Split(float x, T& rounded, T& rest) {
    rounded = FromFloat<T>(x);
    rest = RestOf(x, rounded);
  }

  // Rows of the warp, channels [k, k + 16).
  ROPE_DEVICE void LoadRows(const T* from, int thread, int k, uint32_t* a) const {
    ROPE_UNROLL
    for (int i = 0; i < 4; ++i) {
      a[i] = LoadPair(from + RowOf(thread, i % 2) * layout_.pitch + k + thread % 4 * 2 + i / 2 * 8);
    }
  }

  // Columns [8 n, 8 n + 8), which stand as rows, numbers [k, k + 16) of each.
  ROPE_DEVICE static void LoadColumns(const T* from, int pitch, int thread, int n, int k,
                                      uint32_t* b) {
    const T* column = from + (n * 8 + thread % 32 / 4) * pitch + k + thread % 4 * 2;
    b[0] = LoadPair(column);
    b[1] = LoadPair(column + 8);
  }

  ROPE_DEVICE static uint32_t FinitePart(uint32_t pair) {
    const T low{static_cast<uint16_t>(pair & 0xffffu)};
    const T high{static_cast<uint16_t>(pair >> 16)};
    return (IsFinite(low) ? pair & 0xffffu : 0u) | (IsFinite(high) ? pair & 0xffff0000u : 0u);
  }

  // Adds values that are no finite numbers to the rows that give them weight.
  template <typename Block, typename States>
  ROPE_DEVICE void AddOdd(Block& block, States& states, int keys) {
    block.ForThreads([&](int thread) {
      ROPE_UNROLL
      for (int n = 0; n < kOwnKeys; ++n) {
        const int column = ColumnOf(thread, n);
        weights_[RowOf(thread, 0) * (kKeys + 1) + column] = states[thread].scores[0][n];
        weights_[RowOf(thread, 1) * (kKeys + 1) + column] = states[thread].scores[1][n];
      }
    });
    block.ForThreads([&](int thread) {
      ROPE_UNROLL
      for (int m = 0; m < kOwnRows; ++m) {
        const float* weights = weights_ + RowOf(thread, m) * (kKeys + 1);
        ROPE_UNROLL
        for (int n = 0; n < kOwnChannels; ++n) {
          const int c = ColumnOf(thread, n);
          for (int j = 0; j < keys && c < layout_.v_channels; ++j) {
            const T value = keys_[c * kValuePitch + j];
            if (weights[j] != 0.0f && !IsFinite(value)) {
              states[thread].sums[m][n] += weights[j] * ToFloat(value);
            }
          }
        }
      }
    });
  }

  const Layout layout_;
  T* const queries_;      // [kRows][pitch]
  T* const query_rests_;  // the same
  T* const keys_;         // [kKeys][pitch], or values [v_channels][kValuePitch]
  T* const key_rests_;    // [kKeys][pitch]
  float* const weights_;  // [kRows][kKeys + 1], where the keys' rests were
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_TENSOR_PRODUCTS_H_
