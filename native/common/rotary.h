// The interface of the rotation alone, as attention.h is that of attention: plain values in, plain
// values out.
#ifndef ROPE_ROTARY_H_
#define ROPE_ROTARY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention.h"
#include "rows.h"

namespace rope {

// The order of a tensor's dimensions; b batch, s place, h head, d channel, t token.
enum class TensorFormat { kBshd, kSbhd, kBhsd, kThd };

// What the node's attributes say; the same for every run.
struct RotaryParams {
  TensorFormat format = TensorFormat::kBshd;
  std::vector<float> frequencies;  // radians per position, one per channel pair
  float gain = 1;                  // on the rotated channels
  bool interleaved = false;        // pairs (2x, 2x + 1) instead of (x, x + rotary_dim / 2)
  int64_t rotary_offset = 0;       // first rotated channel of a head
  bool inverse = false;            // turns the other way
  bool exact_angles = false;       // false rounds the angle to float32, as exporters do
  // The axis of each channel pair, where a token has several positions; empty: it has one.
  std::vector<int64_t> position_axes;

  int64_t rotary_dim() const { return 2 * static_cast<int64_t>(frequencies.size()); }
};

// The heads of every token, before the rotation and behind it. Both may be one buffer.
template <typename T>
struct RotaryTensor {
  int64_t heads = 0;
  Rows<const T> from;
  Rows<T> to;
};

// Where tokens stand. Nothing is copied: the tensors of the run are read when a token is met.
struct RotaryPositions {
  const int64_t* given = nullptr;    // [axes, batch or 1, length]; null: a token has its place
  int64_t given_batch_stride = 0;    // 0 when all rows share one
  int64_t given_axis_stride = 0;     // beside the first axis
  int64_t axes = 1;                  // of given
  const int32_t* bounds = nullptr;   // cu_seqlens [sequences + 1] of packed tokens, or null
  int64_t sequences = 0;             // of bounds
  const int32_t* offsets = nullptr;  // of each row or sequence, or null
  int64_t offset_stride = 0;         // 0 when all share one

  // Whether all rows of the batch have the same positions.
  bool shared() const { return given != nullptr ? given_batch_stride == 0 : offset_stride == 0; }

  int64_t AtAxis(int64_t batch, int64_t place, int64_t axis) const {
    return given[axis * given_axis_stride + batch * given_batch_stride + place];
  }

  int64_t At(int64_t batch, int64_t place) const {
    if (given != nullptr) return AtAxis(batch, place, 0);
    if (bounds != nullptr) {
      batch = std::upper_bound(bounds, bounds + sequences + 1, place) - bounds - 1;
      place -= bounds[batch];
    }
    return place + (offsets == nullptr ? 0 : offsets[batch * offset_stride]);
  }
};

// The tensors of one run. Every shape has been checked.
template <typename T>
struct RotaryArgs {
  int64_t batch = 0;   // 1 for packed tokens
  int64_t length = 0;  // tokens of a row
  int64_t head_size = 0;
  RotaryTensor<T> query, key;  // a key that is absent has no heads
  RotaryPositions positions;
};

// Computes one run. False means that the host gave no memory; the outputs are
// then undefined. The result does not depend on the host's number of threads.
bool RunRotary(const RotaryParams& params, const RotaryArgs<float>& args, Host& host);
bool RunRotary(const RotaryParams& params, const RotaryArgs<Float16>& args, Host& host);
bool RunRotary(const RotaryParams& params, const RotaryArgs<BFloat16>& args, Host& host);

}  // namespace rope

#endif  // ROPE_ROTARY_H_
