// The device that ONNX Runtime's stream belongs to, through the CUDA runtime.
#ifndef ROPE_CUDA_CUDA_DEVICE_H_
#define ROPE_CUDA_CUDA_DEVICE_H_

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

#include "launch.h"
#include "run.h"

namespace rope::cuda {

// What the CUDA runtime says is wrong.
class CudaError : public std::runtime_error {
 public:
  CudaError(const std::string& what, cudaError_t error)
      : std::runtime_error(what + ": " + cudaGetErrorString(error)) {}
};

inline void CheckCuda(const std::string& what, cudaError_t error) {
  if (error != cudaSuccess) throw CudaError(what, error);
}

// Memory that runs give back, ready for the next one in any stream; of the
// current device. It stays until the process ends.
inline cudaMemPool_t MemoryPool() {
  static std::mutex mutex;
  static std::map<int, cudaMemPool_t> pools;
  int device = 0;
  CheckCuda("cudaGetDevice", cudaGetDevice(&device));
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = pools.find(device);
  if (found != pools.end()) return found->second;
  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;
  props.location = {cudaMemLocationTypeDevice, device};
  cudaMemPool_t pool = nullptr;
  CheckCuda("cudaMemPoolCreate", cudaMemPoolCreate(&pool, &props));
  uint64_t keep = UINT64_MAX;
  CheckCuda("cudaMemPoolSetAttribute",
            cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  return pools[device] = pool;
}

// Errors are thrown as CudaError.
template <typename T>
class CudaDevice : public Device<T> {
 public:
  explicit CudaDevice(cudaStream_t stream) : stream_(stream) {}
  ~CudaDevice() override {
    if (memory_ != nullptr) cudaFreeAsync(memory_, stream_);
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  void* Allocate(size_t bytes) override {
    const cudaError_t error = cudaMallocFromPoolAsync(&memory_, bytes, MemoryPool(), stream_);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // or the next launch would report it
      return memory_ = nullptr;
    }
    CheckCuda("cudaMallocFromPoolAsync", error);
    return memory_;
  }

  void Upload(void* to, const void* from, size_t bytes) override {
    if (bytes <= kMostStored) {
      return CheckCuda("upload", LaunchStore(to, from, bytes, stream_));
    }
    CheckCuda("upload", cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_));
    CheckCuda("upload", cudaStreamSynchronize(stream_));
  }

  void Copy(void* to, const void* from, size_t bytes) override {
    CheckCuda("copy", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_));
  }

  bool HasWarpgroups() const override {
    int device = 0, major = 0, minor = 0;
    CheckCuda("cudaGetDevice", cudaGetDevice(&device));
    CheckCuda("cudaDeviceGetAttribute",
              cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    CheckCuda("cudaDeviceGetAttribute",
              cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
    return major == 9 && minor == 0;
  }

  void Launch(Kernel kernel, int64_t blocks, const Call<T>& call) override {
    const cudaError_t error = LaunchKernel(kernel, blocks, call, stream_);
    if (error == cudaSuccess) return;
    throw CudaError("the kernel '" + std::string(NameOf(kernel)) + "' of " +
                        std::to_string(blocks) + " blocks could not be launched",
                    error);
  }

 private:
  cudaStream_t stream_;
  void* memory_ = nullptr;
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_CUDA_DEVICE_H_
