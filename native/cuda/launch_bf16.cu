// The kernels on bfloat16.
#include "launch-inl.cuh"

namespace rope::cuda {

template cudaError_t LaunchKernel(Kernel, int64_t, const Call<BFloat>&, cudaStream_t);
template cudaError_t LaunchPlan(int64_t, const PlanCall<BFloat>&, cudaStream_t);
template cudaError_t AttentionBlocks(const Call<BFloat>&, int&);

}  // namespace rope::cuda
