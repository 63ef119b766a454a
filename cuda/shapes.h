// The shapes that attention kernels are compiled for, chosen so that a block's
// shared memory stays below 99 KB, which every chip from sm_86 on has.
#ifndef ROPE_CUDA_SHAPES_H_
#define ROPE_CUDA_SHAPES_H_

#include <cstdint>

#include "call.h"

namespace rope::cuda {

inline constexpr TileShape kFewRows{16, 64, 128};  // decoding
inline constexpr TileShape kNarrow{64, 64, 64};
inline constexpr TileShape kUsual{64, 64, 128};
inline constexpr TileShape kTensorNarrow{64, 64, 64, true};  // 16-bit types
inline constexpr TileShape kTensorUsual{64, 64, 128, true};
inline constexpr TileShape kWide{32, 32, 256};
inline constexpr TileShape kWidest{16, 16, 768};

// The largest head that the kernels take, of queries or of values.
inline constexpr int64_t kMostChannels = kWidest.channels;

// The shape for so many query rows of a key-value head and channels of a head.
constexpr TileShape ShapeFor(int64_t rows, int64_t channels, bool tensor) {
  if (channels > kWide.channels) return kWidest;
  if (channels > kUsual.channels) return kWide;
  if (rows <= kFewRows.rows) return kFewRows;
  if (channels <= kNarrow.channels) return tensor ? kTensorNarrow : kNarrow;
  return tensor ? kTensorUsual : kUsual;
}

}  // namespace rope::cuda

#endif  // ROPE_CUDA_SHAPES_H_
