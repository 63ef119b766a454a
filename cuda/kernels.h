// The kernels by name, for whoever launches them.
#ifndef ROPE_CUDA_KERNELS_H_
#define ROPE_CUDA_KERNELS_H_

#include "attention_kernel.h"
#include "cache_kernel.h"
#include "shapes.h"

namespace rope::cuda {

enum class Kernel { kAngles, kCache, kAttention, kMerge };

constexpr const char* NameOf(Kernel kernel) {
  constexpr const char* names[] = {"angles", "cache", "attention", "merge"};
  return names[static_cast<int>(kernel)];
}

// Calls use(k) with the kernel: one of the attention's for each shape.
template <typename T, typename Use>
void WithKernel(Kernel kernel, const TileShape& shape, const Use& use) {
  if (kernel == Kernel::kAngles) return use(AngleKernel<T>());
  if (kernel == Kernel::kCache) return use(CacheKernel<T>());
  if (kernel == Kernel::kMerge) return use(MergeKernel<T>());
  if (shape == kFewRows)
    return use(AttentionKernel<T, kFewRows.rows, kFewRows.keys, kFewRows.channels>());
  if (shape == kNarrow)
    return use(AttentionKernel<T, kNarrow.rows, kNarrow.keys, kNarrow.channels>());
  if (shape == kUsual) return use(AttentionKernel<T, kUsual.rows, kUsual.keys, kUsual.channels>());
  if (shape == kWide) return use(AttentionKernel<T, kWide.rows, kWide.keys, kWide.channels>());
  use(AttentionKernel<T, kWidest.rows, kWidest.keys, kWidest.channels>());
}

}  // namespace rope::cuda

#endif  // ROPE_CUDA_KERNELS_H_
