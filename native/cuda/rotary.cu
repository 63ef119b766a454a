// The kernels of the rotation alone, on every element type.
#include "block.h"
#include "launch.h"
#include "rotary_kernel.h"

namespace rope::cuda {
namespace {

template <typename K, typename T>
__global__ void __launch_bounds__(K::kThreads)
    EnterRotary(const __grid_constant__ RotaryCall<T> call) {
  DeviceBlock block(nullptr);
  K::Run(block, call);
}

}  // namespace

template <typename T>
cudaError_t LaunchRotary(RotaryStep step, int64_t blocks, const RotaryCall<T>& call,
                         cudaStream_t stream) {
  constexpr int64_t kMostBlocks = INT32_MAX;
  if (blocks > kMostBlocks) return cudaErrorInvalidConfiguration;
  WithKernel<T>(step, [&](auto k) {
    using K = decltype(k);
    EnterRotary<K, T><<<static_cast<unsigned>(blocks), K::kThreads, 0, stream>>>(call);
  });
  return cudaGetLastError();
}

template cudaError_t LaunchRotary(RotaryStep, int64_t, const RotaryCall<float>&, cudaStream_t);
template cudaError_t LaunchRotary(RotaryStep, int64_t, const RotaryCall<Half>&, cudaStream_t);
template cudaError_t LaunchRotary(RotaryStep, int64_t, const RotaryCall<BFloat>&, cudaStream_t);

}  // namespace rope::cuda
