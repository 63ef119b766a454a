// The ops of librope_ops_cuda: those of the CPU, and the same for the CUDA
// execution provider.
#include "all_ops.h"
#include "cuda_engine.h"
#include "device_tensor.h"

namespace rope {
namespace {

// What the library says about itself to whoever reads its file (customop.FindCUDALibrary).
[[gnu::used]] constexpr char kCudaMark[] = "rope_ops cuda=1";

constexpr DeviceMemory kCudaMemory = {"Cuda",
                                      [](int device, size_t bytes) {
                                        void* memory = nullptr;
                                        const cuda::OnDevice current(device);
                                        cuda::CheckCuda("cudaMalloc", cudaMalloc(&memory, bytes));
                                        cuda::CheckCuda("cudaMemset", cudaMemset(memory, 0, bytes));
                                        return memory;
                                      },
                                      [](int /*device*/, void* memory) { cudaFree(memory); }};

}  // namespace

std::vector<OrtCustomOp> LibraryOps(bool infer_shapes, Numbers numbers) {
  return Joined({CpuOps(infer_shapes), numbers == Numbers::kOnDevice
                                           ? MakeAllOps<CudaDeviceEngine>(infer_shapes)
                                           : MakeAllOps<CudaEngine>(infer_shapes)});
}

const DeviceMemory* FindDeviceMemory(const std::string& name) {
  if (name == kCudaMemory.name) return &kCudaMemory;
  return name == kCpuMemory.name ? &kCpuMemory : nullptr;
}

}  // namespace rope
