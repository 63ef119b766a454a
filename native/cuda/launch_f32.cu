// The kernels on float32.
#include "launch-inl.cuh"

namespace rope::cuda {

template cudaError_t LaunchKernel(Kernel, int64_t, const Call<float>&, cudaStream_t);
template cudaError_t LaunchPlan(int64_t, const PlanCall<float>&, cudaStream_t);
template cudaError_t AttentionBlocks(const Call<float>&, int&);

}  // namespace rope::cuda
