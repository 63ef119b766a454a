// The kernels' entry points; each element type is compiled by itself.
#ifndef ROPE_CUDA_LAUNCH_INL_CUH_
#define ROPE_CUDA_LAUNCH_INL_CUH_

#include <atomic>

#include "block.h"
#include "kernels.h"
#include "launch.h"
#include "plan_kernel.h"

namespace rope::cuda {

// Only sm_90a has warpgroups; in code for other chips their kernels are empty, and not launched.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
constexpr bool kHasWarpgroups = true;
#else
constexpr bool kHasWarpgroups = false;
#endif

// One block to a processor is enough: shared memory, which ptxas does not know, often leaves no
// room for more, and it would spill registers to make some.
template <typename K, typename Given>
__global__ void __launch_bounds__(K::kThreads, 1) Enter(const __grid_constant__ Given given) {
  if constexpr (kHasWarpgroups || !kNeedsWarpgroups<K>) {
    extern __shared__ __align__(kSquareBytes) float shared[];
    DeviceBlock block(shared);
    K::Run(block, given);
  }
}

// Lets a kernel have all the shared memory that the current device gives a block, once for each
// device. Threads that come here together set the same.
template <typename K, typename Given>
cudaError_t AllowShared() {
  static std::atomic<uint64_t> allowed{0};
  int device = 0, most = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
  const uint64_t bit = device < 64 ? uint64_t{1} << device : 0;  // of others nothing is remembered
  if ((allowed.load(std::memory_order_relaxed) & bit) != 0) return cudaSuccess;
  cudaError_t error =
      cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (error == cudaSuccess) {
    error =
        cudaFuncSetAttribute(Enter<K, Given>, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
  }
  if (error == cudaSuccess) allowed.fetch_or(bit, std::memory_order_relaxed);
  return error;
}

template <typename K, typename Given>
size_t SharedBytes(const Given& given) {
  return static_cast<size_t>(K::SharedFloats(given)) * sizeof(float);
}

template <typename K, typename Given>
cudaError_t LaunchOf(int64_t blocks, const Given& given, cudaStream_t stream) {
  static_assert(sizeof(Given) <= 4096, "what a kernel may be given");
  constexpr size_t kWithoutAsking = 48 * 1024;  // bytes of shared memory
  constexpr int64_t kMostBlocks = INT32_MAX;
  if (blocks > kMostBlocks) return cudaErrorInvalidConfiguration;
  const size_t shared = SharedBytes<K>(given);
  if (shared > kWithoutAsking) {
    if (const cudaError_t error = AllowShared<K, Given>(); error != cudaSuccess) return error;
  }
  Enter<K, Given><<<static_cast<unsigned>(blocks), K::kThreads, shared, stream>>>(given);
  return cudaGetLastError();
}

template <typename T>
cudaError_t LaunchKernel(Kernel kernel, int64_t blocks, const Call<T>& call, cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  WithKernel<T>(kernel, call.schedule.shape,
                [&](auto k) { error = LaunchOf<decltype(k)>(blocks, call, stream); });
  return error;
}

template <typename T>
cudaError_t LaunchPlan(int64_t blocks, const PlanCall<T>& plan, cudaStream_t stream) {
  return LaunchOf<PlanKernel<T>>(blocks, plan, stream);
}

template <typename T>
cudaError_t AttentionBlocks(const Call<T>& call, int& blocks) {
  cudaError_t error = cudaSuccess;
  WithKernel<T>(Kernel::kAttention, call.schedule.shape, [&](auto k) {
    using K = decltype(k);
    error = AllowShared<K, Call<T>>();
    if (error != cudaSuccess) return;
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Enter<K, Call<T>>, K::kThreads,
                                                          SharedBytes<K>(call));
  });
  return error;
}

}  // namespace rope::cuda

#endif  // ROPE_CUDA_LAUNCH_INL_CUH_
