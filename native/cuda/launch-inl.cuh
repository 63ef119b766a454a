// The kernels' entry points; each element type is compiled by itself.
#ifndef ROPE_CUDA_LAUNCH_INL_CUH_
#define ROPE_CUDA_LAUNCH_INL_CUH_

#include <atomic>

#include "block.h"
#include "kernels.h"
#include "launch.h"

namespace rope::cuda {

// Only sm_90a has warpgroups; in code for other chips their kernels are empty, and not launched.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
constexpr bool kHasWarpgroups = true;
#else
constexpr bool kHasWarpgroups = false;
#endif

// One block to a processor is enough: shared memory, which ptxas does not know, often leaves no
// room for more, and it would spill registers to make some.
template <typename K, typename T>
__global__ void __launch_bounds__(K::kThreads, 1) Enter(const __grid_constant__ Call<T> call) {
  if constexpr (kHasWarpgroups || !kNeedsWarpgroups<K>) {
    extern __shared__ __align__(kSquareBytes) float shared[];
    DeviceBlock block(shared);
    K::Run(block, call);
  }
}

// Lets a kernel have all the shared memory that the current device gives a block, once for each
// device. Threads that come here together set the same.
template <typename K, typename T>
cudaError_t AllowShared() {
  static std::atomic<uint64_t> allowed{0};
  int device = 0, most = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
  const uint64_t bit = device < 64 ? uint64_t{1} << device : 0;  // of others nothing is remembered
  if ((allowed.load(std::memory_order_relaxed) & bit) != 0) return cudaSuccess;
  cudaError_t error =
      cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (error == cudaSuccess) {
    error = cudaFuncSetAttribute(Enter<K, T>, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
  }
  if (error == cudaSuccess) allowed.fetch_or(bit, std::memory_order_relaxed);
  return error;
}

template <typename K, typename T>
size_t SharedBytes(const Call<T>& call) {
  return static_cast<size_t>(K::SharedFloats(call)) * sizeof(float);
}

template <typename T>
cudaError_t LaunchKernel(Kernel kernel, int64_t blocks, const Call<T>& call, cudaStream_t stream) {
  static_assert(sizeof(Call<T>) <= 4096, "what a kernel may be given");
  constexpr size_t kWithoutAsking = 48 * 1024;  // bytes of shared memory
  constexpr int64_t kMostBlocks = INT32_MAX;
  if (blocks > kMostBlocks) return cudaErrorInvalidConfiguration;
  cudaError_t error = cudaSuccess;
  WithKernel<T>(kernel, call.schedule.shape, [&](auto k) {
    using K = decltype(k);
    const size_t shared = SharedBytes<K>(call);
    if (shared > kWithoutAsking) error = AllowShared<K, T>();
    if (error != cudaSuccess) return;
    Enter<K, T><<<static_cast<unsigned>(blocks), K::kThreads, shared, stream>>>(call);
    error = cudaGetLastError();
  });
  return error;
}

template <typename T>
cudaError_t AttentionBlocks(const Call<T>& call, int& blocks) {
  cudaError_t error = cudaSuccess;
  WithKernel<T>(Kernel::kAttention, call.schedule.shape, [&](auto k) {
    using K = decltype(k);
    error = AllowShared<K, T>();
    if (error != cudaSuccess) return;
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Enter<K, T>, K::kThreads,
                                                          SharedBytes<K>(call));
  });
  return error;
}

}  // namespace rope::cuda

#endif  // ROPE_CUDA_LAUNCH_INL_CUH_
