// The rotation alone: angles, then all heads of query and key.
#ifndef ROPE_CUDA_ROTARY_KERNEL_H_
#define ROPE_CUDA_ROTARY_KERNEL_H_

#include <cstdint>

#include "call.h"
#include "element.h"
#include "rotation.h"
#include "rows.h"

namespace rope::cuda {

// What the kernels of one run are given.
template <typename T>
struct RotaryCall {
  Rotation rotation;
  bool inverse = false;
  const int64_t* positions = nullptr;  // [axes, rows]
  float* angles = nullptr;             // [rows, 2 * pairs]
  int64_t rows = 0;                    // of angles
  int64_t row_batch_stride = 0;        // from one row of the batch to the next; 0: they share rows
  int64_t batch = 0, length = 0, head_size = 0;
  // Query and key; from and to may be one buffer.
  int64_t heads[2] = {};
  Rows<const T> from[2];
  Rows<T> to[2];

  ROPE_DEVICE_HOST int64_t all_heads() const { return heads[0] + heads[1]; }
};

// One thread for each pair of each row.
template <typename T>
struct RotaryAngleKernel {
  static constexpr int kThreads = 128;

  static int64_t Blocks(const RotaryCall<T>& call) {
    return (call.rows * call.rotation.pairs + kThreads - 1) / kThreads;
  }

  template <typename Block>
  ROPE_DEVICE static void Run(Block& block, const RotaryCall<T>& call) {
    const int64_t pairs = call.rotation.pairs;
    block.ForThreads([&](int thread) {
      const int64_t entry = block.index() * kThreads + thread;
      const int64_t row = entry / pairs;
      const int64_t pair = entry % pairs;
      if (row >= call.rows) return;
      const int64_t axis = call.rotation.axes == nullptr ? 0 : call.rotation.axes[pair];
      float* angles = call.angles + row * 2 * pairs;
      FillAngle(call.rotation, static_cast<double>(call.positions[axis * call.rows + row]), pair,
                angles);
      if (call.inverse) angles[pairs + pair] = -angles[pairs + pair];
    });
  }
};

// One thread for some pairs of a head, or for as many channels that are not rotated: it reads all
// that it writes before it writes, and nothing that others write.
template <typename T>
struct RotaryKernel {
  static constexpr int kThreads = 128;
  static constexpr int kPerThread = 4;  // pieces of work, kThreads apart

  static int64_t Blocks(const RotaryCall<T>& call) {
    const int64_t pieces = call.batch * call.length * call.all_heads() * PiecesOfHead(call);
    return (pieces + kThreads * kPerThread - 1) / (kThreads * kPerThread);
  }

  template <typename Block>
  ROPE_DEVICE static void Run(Block& block, const RotaryCall<T>& call) {
    const int64_t of_head = PiecesOfHead(call);
    const int64_t of_token = of_head * call.all_heads();
    const int64_t pieces = call.batch * call.length * of_token;
    block.ForThreads([&](int thread) {
      for (int i = 0; i < kPerThread; ++i) {
        const int64_t piece = (block.index() * kPerThread + i) * kThreads + thread;
        if (piece >= pieces) return;
        const int64_t token = piece / of_token;
        Turn(call, token / call.length, token % call.length, piece % of_token / of_head,
             piece % of_head);
      }
    });
  }

 private:
  // Pairs of neighbours stand in one chunk, pairs of halves in two.
  ROPE_DEVICE_HOST static int64_t PairsOfPiece(const RotaryCall<T>& call) {
    return call.rotation.interleaved ? kChunk / 2 : kChunk;
  }
  ROPE_DEVICE_HOST static int64_t PiecesOfPairs(const RotaryCall<T>& call) {
    const int64_t pairs = PairsOfPiece(call);
    return (call.rotation.pairs + pairs - 1) / pairs;
  }
  ROPE_DEVICE_HOST static int64_t PiecesOfHead(const RotaryCall<T>& call) {
    return PiecesOfPairs(call) + ChunksOf(call.rotation.offset) +
           ChunksOf(call.head_size - call.rotation.offset - 2 * call.rotation.pairs);
  }

  ROPE_DEVICE static void Turn(const RotaryCall<T>& call, int64_t batch, int64_t place,
                               int64_t head, int64_t piece) {
    const int which = head < call.heads[0] ? 0 : 1;
    if (which == 1) head -= call.heads[0];
    const T* from = call.from[which].At(batch, head, place);
    T* to = call.to[which].At(batch, head, place);
    const Rotation& rotation = call.rotation;
    const int64_t rotated = PiecesOfPairs(call);
    if (piece >= rotated) {
      const int64_t front = ChunksOf(rotation.offset);
      const int64_t end = rotation.offset + 2 * rotation.pairs;
      piece -= rotated;
      if (from == to) return;
      return piece < front ? Copy(from, to, piece * kChunk, rotation.offset)
                           : Copy(from, to, end + (piece - front) * kChunk, call.head_size);
    }
    const int64_t first = piece * PairsOfPiece(call);
    const float* angles =
        call.angles + (batch * call.row_batch_stride + place) * 2 * rotation.pairs + first;
    const int64_t left = rotation.pairs - first;
    from += rotation.offset;
    to += rotation.offset;
    if (rotation.interleaved) {
      Neighbours(from + 2 * first, angles, rotation.pairs, Smaller(left, kChunk / 2),
                 to + 2 * first);
    } else {
      Halves(from + first, angles, rotation.pairs, Smaller(left, kChunk), to + first);
    }
  }

  ROPE_DEVICE static int Smaller(int64_t left, int most) {
    return left < most ? static_cast<int>(left) : most;
  }

  // So many numbers of a chunk; the others are zeros.
  ROPE_DEVICE static void Load(const T* from, int count, float* numbers) {
    alignas(16) T chunk[kChunk];
    LoadChunk<T>(from, 0, count, chunk);
    ROPE_UNROLL
    for (int i = 0; i < kChunk; ++i) numbers[i] = ToFloat(chunk[i]);
  }
  ROPE_DEVICE static void Store(const float* numbers, int count, T* to) {
    alignas(16) T chunk[kChunk];
    ROPE_UNROLL
    for (int i = 0; i < kChunk; ++i) chunk[i] = FromFloat<T>(numbers[i]);
    StoreChunk<T>(chunk, to, 0, count);
  }

  ROPE_DEVICE static void Copy(const T* from, T* to, int64_t c, int64_t end) {
    alignas(16) T chunk[kChunk];
    LoadChunk<T>(from, c, end, chunk);
    StoreChunk<T>(chunk, to, c, end);
  }

  // Channels [0, count) and those `pairs` further on.
  ROPE_DEVICE static void Halves(const T* from, const float* angles, int64_t pairs, int count,
                                 T* to) {
    float a[kChunk], b[kChunk], first[kChunk], second[kChunk];
    Load(from, count, a);
    Load(from + pairs, count, b);
    ROPE_UNROLL
    for (int i = 0; i < kChunk; ++i) {
      const float cosine = i < count ? angles[i] : 0.0f;
      const float sine = i < count ? angles[pairs + i] : 0.0f;
      first[i] = a[i] * cosine - b[i] * sine;
      second[i] = b[i] * cosine + a[i] * sine;
    }
    Store(first, count, to);
    Store(second, count, to + pairs);
  }

  // Channels [0, 2 * count).
  ROPE_DEVICE static void Neighbours(const T* from, const float* angles, int64_t pairs, int count,
                                     T* to) {
    float own[kChunk], turned[kChunk];
    Load(from, 2 * count, own);
    ROPE_UNROLL
    for (int i = 0; i < kChunk / 2; ++i) {
      const float cosine = i < count ? angles[i] : 0.0f;
      const float sine = i < count ? angles[pairs + i] : 0.0f;
      turned[2 * i] = own[2 * i] * cosine - own[2 * i + 1] * sine;
      turned[2 * i + 1] = own[2 * i + 1] * cosine + own[2 * i] * sine;
    }
    Store(turned, 2 * count, to);
  }
};

enum class RotaryStep { kAngles, kTurn };

constexpr const char* NameOf(RotaryStep step) {
  return step == RotaryStep::kAngles ? "rotary angles" : "rotary";
}

// Calls use(k) with the step's kernel.
template <typename T, typename Use>
void WithKernel(RotaryStep step, const Use& use) {
  step == RotaryStep::kAngles ? use(RotaryAngleKernel<T>()) : use(RotaryKernel<T>());
}

}  // namespace rope::cuda

#endif  // ROPE_CUDA_ROTARY_KERNEL_H_
