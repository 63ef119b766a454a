// Angles, and the rotation of one channel of a head.
#ifndef ROPE_CUDA_ROTATION_H_
#define ROPE_CUDA_ROTATION_H_

#include <cmath>

#include "call.h"
#include "element.h"

namespace rope::cuda {

// Fills the angle tables, one thread for each channel pair of each row. Cosines
// and sines come from float64.
template <typename T>
struct AngleKernel {
  static constexpr int kThreads = 128;

  static int64_t Blocks(const Call<T>& call) {
    const int64_t keys = call.raw_cache ? call.map_count * call.map_rows : 0;
    const int64_t entries = (call.table_count * call.table_rows + keys) * call.pairs;
    return (entries + kThreads - 1) / kThreads;
  }

  static int64_t SharedFloats(const Call<T>&) { return 0; }

  template <typename Block>
  ROPE_DEVICE static void Run(Block& block, const Call<T>& call) {
    block.ForThreads([&](int thread) {
      const int64_t entry = block.index() * kThreads + thread;
      const int64_t row = entry / call.pairs;
      const int64_t pair = entry % call.pairs;
      const int64_t query_rows = call.table_count * call.table_rows;
      if (row < query_rows) {
        const Band& band = call.table_bands[row / call.table_rows];
        Fill(call, band.QueryAt(call.positions[row % call.table_rows]), pair,
             call.tables + row * 2 * call.pairs);
      } else if (call.raw_cache && row - query_rows < call.map_count * call.map_rows) {
        const int64_t key_row = row - query_rows;
        const Band& band = call.map_bands[key_row / call.map_rows];
        // Rows of one batch row stand together; a single one serves all.
        const int64_t in_map = key_row % call.map_rows;
        const int64_t stride = call.map_batch_stride == 0 ? call.map_rows : call.map_batch_stride;
        const int64_t position = in_map % stride + call.shifts[in_map / stride];
        Fill(call, band.KeyAt(position), pair, call.key_tables + key_row * 2 * call.pairs);
      }
    });
  }

 private:
  ROPE_DEVICE static void Fill(const Call<T>& call, double position, int64_t pair, float* row) {
    const float frequency = call.frequencies[pair];
    // Exporters round the position and the product to float32.
    const double angle = call.exact_angles
                             ? position * static_cast<double>(frequency)
                             : static_cast<double>(static_cast<float>(position) * frequency);
    row[pair] = static_cast<float>(std::cos(angle) * static_cast<double>(call.gain));
    row[call.pairs + pair] = static_cast<float>(std::sin(angle) * static_cast<double>(call.gain));
  }
};

// Channel c of a head turned by a row of a table. `channel(c)` gives the head's
// channels as they are.
template <typename T, typename Channel>
ROPE_DEVICE float Turned(const Call<T>& call, const float* row, int64_t c, const Channel& channel) {
  const int64_t x = c - call.rotary_offset;
  if (x < 0 || x >= 2 * call.pairs) return channel(c);
  const int64_t pair = call.interleaved ? x / 2 : x % call.pairs;
  const bool second = call.interleaved ? x % 2 != 0 : x >= call.pairs;
  const int64_t step = call.interleaved ? 1 : call.pairs;
  const float cosine = row[pair];
  const float sine = row[call.pairs + pair];
  if (second) return channel(c) * cosine + channel(c - step) * sine;
  return channel(c) * cosine - channel(c + step) * sine;
}

// The channels [c, c + kChunk) of a head of call.head_size channels, turned.
template <typename T>
ROPE_DEVICE void TurnedChunk(const Call<T>& call, const float* row, int64_t c, const T* head,
                             float* out) {
  const auto load = [&](int64_t at, float* numbers) {
    alignas(16) T chunk[kChunk];
    LoadChunk<T>(head, at, call.head_size, chunk);
    ROPE_UNROLL
    for (int i = 0; i < kChunk; ++i) numbers[i] = ToFloat(chunk[i]);
  };
  const int64_t x = c - call.rotary_offset;
  const int64_t rotary = 2 * call.pairs;
  if (x + kChunk <= 0 || x >= rotary) return load(c, out);
  if (call.interleaved && x >= 0 && x + kChunk <= rotary && x % 2 == 0) {
    float own[kChunk];
    load(c, own);
    ROPE_UNROLL
    for (int i = 0; i < kChunk; i += 2) {
      const float cosine = row[(x + i) / 2];
      const float sine = row[call.pairs + (x + i) / 2];
      out[i] = own[i] * cosine - own[i + 1] * sine;
      out[i + 1] = own[i + 1] * cosine + own[i] * sine;
    }
    return;
  }
  const bool first = x >= 0 && x + kChunk <= call.pairs;
  const bool second = x >= call.pairs && x + kChunk <= rotary;
  if (!call.interleaved && (first || second)) {
    const float* cosines = row + (first ? x : x - call.pairs);
    alignas(16) float cosine[kChunk], sine[kChunk];
    CopyChunk<float>(cosines, cosine);
    CopyChunk<float>(cosines + call.pairs, sine);
    float own[kChunk], other[kChunk];
    load(c, own);
    load(first ? c + call.pairs : c - call.pairs, other);
    ROPE_UNROLL
    for (int i = 0; i < kChunk; ++i) {
      out[i] = own[i] * cosine[i] + other[i] * (first ? -sine[i] : sine[i]);
    }
    return;
  }
  ROPE_UNROLL
  for (int i = 0; i < kChunk; ++i) {
    out[i] = c + i < call.head_size
                 ? Turned(
                       call, row, c + i, [&](int64_t at) { return ToFloat(head[at]); })
                 : 0.0f;
  }
}

// The row of a table of queries; table 0 also turns the keys of this call.
template <typename T>
ROPE_DEVICE const float* TableRow(const Call<T>& call, int64_t table, int64_t batch,
                                  int64_t place) {
  return call.tables +
         (table * call.table_rows + batch * call.table_batch_stride + place) * 2 * call.pairs;
}

template <typename T>
ROPE_DEVICE const float* KeyTableRow(const Call<T>& call, int64_t map, int64_t batch, int64_t key) {
  return call.key_tables +
         (map * call.map_rows + batch * call.map_batch_stride + key) * 2 * call.pairs;
}

}  // namespace rope::cuda

#endif  // ROPE_CUDA_ROTATION_H_
