// The shapes that attention kernels are compiled for, chosen so that a block's
// shared memory stays within 99 KB, which every chip from sm_86 on has.
#ifndef ROPE_CUDA_TILE_SHAPES_H_
#define ROPE_CUDA_TILE_SHAPES_H_

#include <cstdint>

#include "call.h"

namespace rope::cuda {

// Four numbers each: rows, keys, channels, threads.
// In float32:
inline constexpr TileShape kFewRows{16, 64, 128, 128};  // decoding
inline constexpr TileShape kNarrow{64, 64, 64, 128};
inline constexpr TileShape kUsual{64, 64, 128, 128};
inline constexpr TileShape kWide{32, 32, 256, 128};
inline constexpr TileShape kWidest{16, 16, 768, 128};  // and in 16 bits

// The same on tensor cores, for 16-bit types: with what 16 bits do not hold, or without.
constexpr TileShape OnTensorCores(TileShape shape) {
  shape.tensor = true;
  return shape;
}
constexpr TileShape WithResiduals(TileShape shape) {
  shape.residuals = true;
  return OnTensorCores(shape);
}

// With two stages of keys: those of the next tile are on their way while a tile is multiplied. A
// block of one warp waits for its copies, and nothing else.
constexpr TileShape CopiedAhead(TileShape shape) {
  shape.ahead = true;
  return shape;
}

inline constexpr TileShape kTensorFewResiduals64 = WithResiduals({16, 64, 64, 32});  // decoding
inline constexpr TileShape kTensorFewResiduals128 = WithResiduals({16, 64, 128, 32});
inline constexpr TileShape kTensorFewResiduals256 = WithResiduals({16, 32, 256, 32});
inline constexpr TileShape kTensorFew64 = CopiedAhead(OnTensorCores({16, 32, 64, 32}));
inline constexpr TileShape kTensorFew128 = CopiedAhead(OnTensorCores({16, 32, 128, 32}));
inline constexpr TileShape kTensorFew256 = CopiedAhead(OnTensorCores({16, 32, 256, 32}));
inline constexpr TileShape kTensorResiduals64 = WithResiduals({64, 64, 64, 128});
inline constexpr TileShape kTensorResiduals128 = WithResiduals({64, 64, 128, 128});
inline constexpr TileShape kTensorResiduals256 = WithResiduals({32, 32, 256, 64});
inline constexpr TileShape kTensor64 = OnTensorCores({128, 128, 64, 128});
inline constexpr TileShape kTensor128 = OnTensorCores({128, 64, 128, 128});
inline constexpr TileShape kTensor256 = OnTensorCores({64, 64, 256, 128});

// The same by warpgroups, whose tiles of keys and values stand there twice: up to 160 KB of
// shared memory, of which an sm_90 has 227.
constexpr TileShape ByWarpgroups(TileShape shape) {
  shape.warpgroups = true;
  return shape;
}
inline constexpr TileShape kWarpgroups64 = ByWarpgroups(OnTensorCores({128, 128, 64, 256}));
inline constexpr TileShape kWarpgroups128 = ByWarpgroups(OnTensorCores({128, 128, 128, 256}));
inline constexpr TileShape kWarpgroupsResiduals64 =
    ByWarpgroups(WithResiduals({128, 128, 64, 256}));
inline constexpr TileShape kWarpgroupsResiduals128 =
    ByWarpgroups(WithResiduals({128, 64, 128, 256}));

// The largest head that the kernels take, of queries or of values.
inline constexpr int64_t kMostChannels = kWidest.channels;

// The shape for so many query rows of a key-value head and channels of a head.
constexpr TileShape ShapeFor(int64_t rows, int64_t channels) {
  if (channels > kWide.channels) return kWidest;
  if (channels > kUsual.channels) return kWide;
  if (rows <= kFewRows.rows) return kFewRows;
  return channels <= kNarrow.channels ? kNarrow : kUsual;
}
constexpr TileShape TensorShapeFor(int64_t rows, int64_t channels, bool residuals) {
  const auto of_width = [&](const TileShape& s64, const TileShape& s128, const TileShape& s256) {
    return channels <= 64 ? s64 : channels <= 128 ? s128 : s256;
  };
  if (channels > kTensor256.channels) return kWidest;
  if (rows <= kTensorFew64.rows) {
    return residuals
               ? of_width(kTensorFewResiduals64, kTensorFewResiduals128, kTensorFewResiduals256)
               : of_width(kTensorFew64, kTensorFew128, kTensorFew256);
  }
  if (residuals) return of_width(kTensorResiduals64, kTensorResiduals128, kTensorResiduals256);
  return of_width(kTensor64, kTensor128, kTensor256);
}

// Whether blocks of warpgroups take it: with fewer rows most of a block would be empty.
constexpr bool FitWarpgroups(int64_t rows, int64_t channels) {
  return channels <= kWarpgroups128.channels && 2 * rows >= kWarpgroups128.rows;
}
constexpr TileShape WarpgroupShapeFor(int64_t channels, bool residuals) {
  if (channels <= 64) return residuals ? kWarpgroupsResiduals64 : kWarpgroups64;
  return residuals ? kWarpgroupsResiduals128 : kWarpgroups128;
}

}  // namespace rope::cuda

#endif  // ROPE_CUDA_TILE_SHAPES_H_
