// Angles, and the rotation of one channel of a head.
#ifndef ROPE_CUDA_ROTATION_H_
#define ROPE_CUDA_ROTATION_H_

#include <cmath>

#include "cached.h"
#include "call.h"
#include "element.h"
#include "key_angles.h"

namespace rope::cuda {

// Makes one pair's cosine and sine, from float64, in a row of a table.
ROPE_DEVICE void FillAngle(const Rotation& rotation, double position, int64_t pair, float* row) {
  const float frequency = rotation.frequencies[pair];
  const double gain = static_cast<double>(rotation.gain);
  // Exporters round the position and the product to float32.
  const double angle = rotation.exact_angles
                           ? position * static_cast<double>(frequency)
                           : static_cast<double>(static_cast<float>(position) * frequency);
  row[pair] = static_cast<float>(std::cos(angle) * gain);
  row[rotation.pairs + pair] = static_cast<float>(std::sin(angle) * gain);
}

// The same of a row of the tables of queries; position(axis, row) is that of a row of the first
// one.
template <typename Position>
ROPE_DEVICE void FillQueryAngle(const Rotation& rotation, const AngleTables& tables,
                                const Position& position, int64_t row, int64_t pair) {
  const Band& band = tables.bands[row / tables.rows];
  const int64_t axis = rotation.axes == nullptr ? 0 : rotation.axes[pair];
  FillAngle(rotation, band.QueryAt(position(axis, row % tables.rows)), pair,
            tables.values + row * 2 * rotation.pairs);
}

// Fills the angle tables, one thread for each channel pair of each row.
template <typename T>
struct AngleKernel {
  static constexpr int kThreads = 128;

  static int64_t Blocks(const Call<T>& call) {
    const int64_t entries =
        (call.query_angles.all_rows() + call.key_angles.all_rows()) * call.rotation.pairs;
    return (entries + kThreads - 1) / kThreads;
  }

  static int64_t SharedFloats(const Call<T>&) { return 0; }

  template <typename Block>
  ROPE_DEVICE static void Run(Block& block, const Call<T>& call) {
    const AngleTables& queries = call.query_angles;
    const KeyTables& keys = call.key_angles;
    const int64_t pairs = call.rotation.pairs;
    block.ForThreads([&](int thread) {
      const int64_t entry = block.index() * kThreads + thread;
      const int64_t row = entry / pairs;
      const int64_t pair = entry % pairs;
      const int64_t key_row = row - queries.all_rows();
      if (key_row < 0) {
        const auto position = [&](int64_t axis, int64_t own) {
          return call.positions[axis * queries.rows + own];
        };
        FillQueryAngle(call.rotation, queries, position, row, pair);
      } else if (key_row < keys.all_rows()) {
        const auto shift = [&](int64_t b) { return call.shifts[b]; };
        FillKeyAngle(call.rotation, keys, shift, key_row, pair);
      }
    });
  }
};

// The angles of a row of a table.
struct TableAngles {
  const float* row = nullptr;
  int64_t pairs = 0;

  ROPE_DEVICE void At(int64_t pair, float& cosine, float& sine) const {
    cosine = row[pair];
    sine = row[pairs + pair];
  }
  // Those of kChunk pairs.
  ROPE_DEVICE void Load(int64_t pair, float* cosine, float* sine) const {
    CopyChunk<float>(row + pair, cosine);
    CopyChunk<float>(row + pairs + pair, sine);
  }
};

// The same of any angles.
template <typename Angles>
ROPE_DEVICE void LoadAngles(const Angles& angles, int64_t pair, float* cosine, float* sine) {
  ROPE_UNROLL
  for (int i = 0; i < kChunk; ++i) angles.At(pair + i, cosine[i], sine[i]);
}
ROPE_DEVICE void LoadAngles(const TableAngles& angles, int64_t pair, float* cosine, float* sine) {
  angles.Load(pair, cosine, sine);
}

// Channel c of a head, rotated. `channel(c)` gives the head's channels as they are.
template <typename Angles, typename Channel>
ROPE_DEVICE float Rotated(const Rotation& rotation, const Angles& angles, int64_t c,
                          const Channel& channel) {
  const int64_t x = c - rotation.offset;
  if (x < 0 || x >= 2 * rotation.pairs) return channel(c);
  const int64_t pair = rotation.interleaved ? x / 2 : x % rotation.pairs;
  const bool second = rotation.interleaved ? x % 2 != 0 : x >= rotation.pairs;
  const int64_t step = rotation.interleaved ? 1 : rotation.pairs;
  float cosine, sine;
  angles.At(pair, cosine, sine);
  if (second) return channel(c) * cosine + channel(c - step) * sine;
  return channel(c) * cosine - channel(c + step) * sine;
}

// The channels [c, c + kChunk) of a head, rotated.
template <typename T, typename Angles>
ROPE_DEVICE void RotatedChunk(const Call<T>& call, const Angles& angles, int64_t c,
                              const StoredRow<T>& head, float* out) {
  const Rotation& rotation = call.rotation;
  const int64_t x = c - rotation.offset;
  const int64_t rotary = 2 * rotation.pairs;
  if (x + kChunk <= 0 || x >= rotary) return head.Load(c, out);
  if (rotation.interleaved && x >= 0 && x + kChunk <= rotary && x % 2 == 0) {
    float own[kChunk];
    head.Load(c, own);
    ROPE_UNROLL
    for (int i = 0; i < kChunk; i += 2) {
      float cosine, sine;
      angles.At((x + i) / 2, cosine, sine);
      out[i] = own[i] * cosine - own[i + 1] * sine;
      out[i + 1] = own[i + 1] * cosine + own[i] * sine;
    }
    return;
  }
  const bool first = x >= 0 && x + kChunk <= rotation.pairs;
  const bool second = x >= rotation.pairs && x + kChunk <= rotary;
  if (!rotation.interleaved && (first || second)) {
    alignas(16) float cosine[kChunk], sine[kChunk];
    LoadAngles(angles, first ? x : x - rotation.pairs, cosine, sine);
    float own[kChunk], other[kChunk];
    head.Load(c, own);
    head.Load(first ? c + rotation.pairs : c - rotation.pairs, other);
    ROPE_UNROLL
    for (int i = 0; i < kChunk; ++i) {
      out[i] = own[i] * cosine[i] + other[i] * (first ? -sine[i] : sine[i]);
    }
    return;
  }
  ROPE_UNROLL
  for (int i = 0; i < kChunk; ++i) {
    out[i] = c + i < head.size
                 ? Rotated(
                       rotation, angles, c + i, [&](int64_t at) { return head.At(at); })
                 : 0.0f;
  }
}

// Whether channel c of a head is rotated with channel c + head_size / 2, whole chunks of them.
template <typename T>
ROPE_DEVICE bool RotatesHalves(const Call<T>& call) {
  const Rotation& rotation = call.rotation;
  return !rotation.interleaved && rotation.offset == 0 && rotation.pairs % kChunk == 0 &&
         2 * rotation.pairs == call.head_size;
}

// The channels [c, c + kChunk) of such a head's first half, and those of its second one, from a row
// that is aligned to chunks.
template <typename T>
ROPE_DEVICE void RotatedHalves(const Call<T>& call, const float* row, int64_t c, const T* head,
                               float* first, float* second) {
  const int64_t pairs = call.rotation.pairs;
  alignas(16) float cosine[kChunk], sine[kChunk];
  CopyAligned<float>(row + c, cosine);
  CopyAligned<float>(row + pairs + c, sine);
  alignas(16) T own[kChunk], other[kChunk];
  CopyAligned<T>(head + c, own);
  CopyAligned<T>(head + pairs + c, other);
  ROPE_UNROLL
  for (int i = 0; i < kChunk; ++i) {
    const float a = ToFloat(own[i]);
    const float b = ToFloat(other[i]);
    first[i] = a * cosine[i] + b * -sine[i];
    second[i] = b * cosine[i] + a * sine[i];
  }
}

// Multiplies the channels [c, c + kChunk) of a head by their factors, if there are any.
ROPE_DEVICE void MultiplyChunk(const float* factors, int64_t c, float* numbers) {
  if (factors == nullptr) return;
  alignas(16) float own[kChunk];
  CopyChunk<float>(factors + c, own);
  ROPE_UNROLL
  for (int i = 0; i < kChunk; ++i) numbers[i] *= own[i];
}

// Those of a query's place in the call.
template <typename T>
ROPE_DEVICE TableAngles QueryAngles(const Call<T>& call, int64_t table, int64_t batch,
                                    int64_t place) {
  const AngleTables& tables = call.query_angles;
  const int64_t row = table * tables.rows + batch * tables.batch_stride + place;
  return {tables.values + row * 2 * call.rotation.pairs, call.rotation.pairs};
}

}  // namespace rope::cuda

#endif  // ROPE_CUDA_ROTATION_H_
