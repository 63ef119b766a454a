// The kernels on float32.
#include "launch-inl.cuh"

namespace rope::cuda {

template cudaError_t LaunchKernel(Kernel, int64_t, const Call<float>&, cudaStream_t);

}  // namespace rope::cuda
