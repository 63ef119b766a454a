// The kernels on float16.
#include "launch-inl.cuh"

namespace rope::cuda {

template cudaError_t LaunchKernel(Kernel, int64_t, const Call<Half>&, cudaStream_t);
template cudaError_t LaunchPlan(int64_t, const PlanCall<Half>&, cudaStream_t);
template cudaError_t AttentionBlocks(const Call<Half>&, int&);

}  // namespace rope::cuda
