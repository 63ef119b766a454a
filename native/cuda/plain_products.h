// The products of a tile in float32, for every type and head size.
#ifndef ROPE_CUDA_PLAIN_PRODUCTS_H_
#define ROPE_CUDA_PLAIN_PRODUCTS_H_

#include "element.h"
#include "schedule.h"

namespace rope::cuda {

// Eight threads share a query row: thread t has the rows of group t / 8 and of
// those the keys and channels with the remainder t % 8.
//
// Shared memory: queries, then a tile of keys or of values, then weights, all as
// float32. Rows are one number longer than they need, so that neighbouring rows
// lie in other banks.
template <typename T, int kRows_, int kKeys_, int kChannels_, int kThreads_>
class PlainProducts {
 public:
  static constexpr int kRows = kRows_;
  static constexpr int kKeys = kKeys_;
  static constexpr int kThreads = kThreads_;
  static constexpr int kLanes = 8;
  static constexpr int kOwnRows = kRows * kLanes / kThreads;
  static constexpr int kOwnKeys = kKeys / kLanes;
  static constexpr int kOwnChannels = kChannels_ / kLanes;
  static_assert(kOwnRows * kThreads == kRows * kLanes && kOwnKeys * kLanes == kKeys &&
                kOwnChannels * kLanes == kChannels_);

  ROPE_DEVICE static int RowOf(int thread, int m) { return thread / kLanes * kOwnRows + m; }
  ROPE_DEVICE static int ColumnOf(int thread, int n) { return thread % kLanes + n * kLanes; }

  static int64_t SharedFloats(int64_t channels, int64_t v_channels) {
    return kRows * (channels + 1) + kKeys * (Longer(channels, v_channels) + 1) +
           kRows * (kKeys + 1);
  }

  ROPE_DEVICE PlainProducts(float* shared, int64_t channels, int64_t v_channels)
      : channels_(static_cast<int>(channels)),
        v_channels_(static_cast<int>(v_channels)),
        queries_(shared),
        keys_(queries_ + kRows * (channels_ + 1)),
        weights_(keys_ + kKeys * (Longer(channels_, v_channels_) + 1)) {}

  ROPE_DEVICE int channels() const { return channels_; }
  ROPE_DEVICE int v_channels() const { return v_channels_; }

  // Chunks of channels of a query, a key, a value.
  ROPE_DEVICE void StoreQueries(int row, int c, const float* x) {
    ROPE_UNROLL
    for (int i = 0; i < kChunk; ++i) {
      if (c + i < channels_) queries_[row * (channels_ + 1) + c + i] = x[i];
    }
  }
  ROPE_DEVICE void StoreKeys(int column, int c, const float* x) {
    ROPE_UNROLL
    for (int i = 0; i < kChunk; ++i) {
      if (c + i < channels_) keys_[column * (channels_ + 1) + c + i] = x[i];
    }
  }
  ROPE_DEVICE void StoreValues(int column, int c, const float* x) {
    ROPE_UNROLL
    for (int i = 0; i < kChunk; ++i) {
      if (c + i < v_channels_) keys_[column * (v_channels_ + 1) + c + i] = x[i];
    }
  }

  // scores = queries · keys.
  template <typename Block, typename States>
  ROPE_DEVICE void Multiply(Block& block, States& states) {
    block.ForThreads([&](int thread) {
      float products[kOwnRows][kOwnKeys] = {};
      const int stride = channels_ + 1;
      const float* queries = queries_ + RowOf(thread, 0) * stride;
      const float* keys = keys_ + ColumnOf(thread, 0) * stride;
      for (int c = 0; c < channels_; ++c) {
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
      ROPE_UNROLL
      for (int m = 0; m < kOwnRows; ++m) {
        ROPE_UNROLL
        for (int n = 0; n < kOwnKeys; ++n) states[thread].scores[m][n] = products[m][n];
      }
    });
  }

  // sums = sums * corrections + weights · values. Where some value is `non_finite`, keys
  // without weight are passed over: 0 times infinity is NaN.
  template <typename Block, typename States>
  ROPE_DEVICE void Accumulate(Block& block, States& states, int keys, bool non_finite) {
    block.ForThreads([&](int thread) {
      ROPE_UNROLL
      for (int m = 0; m < kOwnRows; ++m) {
        ROPE_UNROLL
        for (int n = 0; n < kOwnKeys; ++n) {
          weights_[RowOf(thread, m) * (kKeys + 1) + ColumnOf(thread, n)] =
              states[thread].scores[m][n];
        }
      }
    });
    block.ForThreads([&](int thread) {
      auto& state = states[thread];
      // A tile is added up by itself: sums of many keys lose less of what each adds.
      float sums[kOwnRows][kOwnChannels] = {};
      const int stride = v_channels_ + 1;
      const float* weights = weights_ + RowOf(thread, 0) * (kKeys + 1);
      for (int j = 0; j < keys; ++j) {
        float v[kOwnChannels];
        ROPE_UNROLL
        for (int n = 0; n < kOwnChannels; ++n) {
          const int c = ColumnOf(thread, n);
          v[n] = c < v_channels_ ? keys_[j * stride + c] : 0.0f;
        }
        ROPE_UNROLL
        for (int m = 0; m < kOwnRows; ++m) {
          const float weight = weights[m * (kKeys + 1) + j];
          if (non_finite && weight == 0.0f) continue;
          ROPE_UNROLL
          for (int n = 0; n < kOwnChannels; ++n) sums[m][n] += weight * v[n];
        }
      }
      ROPE_UNROLL
      for (int m = 0; m < kOwnRows; ++m) {
        ROPE_UNROLL
        for (int n = 0; n < kOwnChannels; ++n) {
          state.sums[m][n] = state.sums[m][n] * state.corrections[m] + sums[m][n];
        }
      }
    });
  }

 private:
  template <typename N>
  static constexpr N Longer(N a, N b) {
    return a > b ? a : b;
  }

  const int channels_;
  const int v_channels_;
  float* const queries_;  // [kRows][channels + 1]
  float* const keys_;     // [kKeys][channels + 1], or values
  float* const weights_;  // [kRows][kKeys + 1]
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_PLAIN_PRODUCTS_H_
