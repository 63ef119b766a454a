// The kernels by name, for whoever launches them.
#ifndef ROPE_CUDA_KERNELS_H_
#define ROPE_CUDA_KERNELS_H_

#include "attention_kernel.h"
#include "cache_kernel.h"
#include "plain_products.h"
#include "raw_keys_kernel.h"
#include "tensor_kernel.h"
#include "tile_shapes.h"
#include "warpgroup_kernel.h"

namespace rope::cuda {

enum class Kernel { kAngles, kCache, kRawKeys, kAttention, kMerge };

constexpr const char* NameOf(Kernel kernel) {
  constexpr const char* names[] = {"angles", "cache", "raw keys", "attention", "merge"};
  return names[static_cast<int>(kernel)];
}

template <typename T, const TileShape& kShape>
using Plain =
    AttentionKernel<T, PlainProducts<T, kShape.rows, kShape.keys, kShape.channels, kShape.threads>>;

// Calls use(k) with the kernel: one of the attention's for each shape.
template <typename T, typename Use>
void WithKernel(Kernel kernel, const TileShape& shape, const Use& use) {
  if (kernel == Kernel::kAngles) return use(AngleKernel<T>());
  if (kernel == Kernel::kCache) return use(CacheKernel<T>());
  if (kernel == Kernel::kRawKeys) return use(RawKeysKernel<T>());
  if (kernel == Kernel::kMerge) return use(MergeKernel<T>());
  if (shape == kWidest) return use(Plain<T, kWidest>());
  if constexpr (sizeof(T) == 2) {
    if (shape == kWarpgroups64) return use(WarpgroupKernel<T, kWarpgroups64>());
    if (shape == kWarpgroups128) return use(WarpgroupKernel<T, kWarpgroups128>());
    if (shape == kWarpgroupsResiduals64) return use(WarpgroupKernel<T, kWarpgroupsResiduals64>());
    if (shape == kWarpgroupsResiduals128) return use(WarpgroupKernel<T, kWarpgroupsResiduals128>());
    if (shape == kTensorFewResiduals64) return use(TensorKernel<T, kTensorFewResiduals64>());
    if (shape == kTensorFewResiduals128) return use(TensorKernel<T, kTensorFewResiduals128>());
    if (shape == kTensorFewResiduals256) return use(TensorKernel<T, kTensorFewResiduals256>());
    if (shape == kTensorFew64) return use(TensorKernel<T, kTensorFew64>());
    if (shape == kTensorFew128) return use(TensorKernel<T, kTensorFew128>());
    if (shape == kTensorFew256) return use(TensorKernel<T, kTensorFew256>());
    if (shape == kTensorResiduals64) return use(TensorKernel<T, kTensorResiduals64>());
    if (shape == kTensorResiduals128) return use(TensorKernel<T, kTensorResiduals128>());
    if (shape == kTensorResiduals256) return use(TensorKernel<T, kTensorResiduals256>());
    if (shape == kTensor64) return use(TensorKernel<T, kTensor64>());
    if (shape == kTensor128) return use(TensorKernel<T, kTensor128>());
    use(TensorKernel<T, kTensor256>());
  } else {
    if (shape == kFewRows) return use(Plain<T, kFewRows>());
    if (shape == kWide) return use(Plain<T, kWide>());
    if (shape == kNarrow) return use(Plain<T, kNarrow>());
    use(Plain<T, kUsual>());
  }
}

}  // namespace rope::cuda

#endif  // ROPE_CUDA_KERNELS_H_
