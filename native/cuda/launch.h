// Launches of the kernels on a stream, compiled by nvcc.
#ifndef ROPE_CUDA_LAUNCH_H_
#define ROPE_CUDA_LAUNCH_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "call.h"
#include "element.h"
#include "plan_call.h"
#include "stored.h"

namespace rope::cuda {

enum class Kernel;

template <typename T>
cudaError_t LaunchKernel(Kernel kernel, int64_t blocks, const Call<T>& call, cudaStream_t stream);

// That of the kernel which plans a run (plan_kernel.h).
template <typename T>
cudaError_t LaunchPlan(int64_t blocks, const PlanCall<T>& plan, cudaStream_t stream);

// How many blocks of the call's attention kernel a processor of the current device runs at the same
// time.
template <typename T>
cudaError_t AttentionBlocks(const Call<T>& call, int& blocks);

enum class RotaryStep;
template <typename T>
struct RotaryCall;

// The same for the kernels of the rotation alone.
template <typename T>
cudaError_t LaunchRotary(RotaryStep step, int64_t blocks, const RotaryCall<T>& call,
                         cudaStream_t stream);

// Copies up to kMostStored bytes to the device as part of a launch, so that the
// host's memory may change at once.
cudaError_t LaunchStore(void* to, const void* from, size_t bytes, cudaStream_t stream);

}  // namespace rope::cuda

#endif  // ROPE_CUDA_LAUNCH_H_
