// The device that ONNX Runtime's stream belongs to, through the CUDA runtime.
#ifndef ROPE_CUDA_CUDA_DEVICE_H_
#define ROPE_CUDA_CUDA_DEVICE_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

#include "launch.h"
#include "rotary_run.h"
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

// Makes a device current for its lifetime.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    CheckCuda("cudaGetDevice", cudaGetDevice(&before_));
    if (device != before_) CheckCuda("cudaSetDevice", cudaSetDevice(device));
    changed_ = device != before_;
  }
  ~OnDevice() {
    if (changed_) cudaSetDevice(before_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

// Of the current device.
inline int AttributeOf(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  CheckCuda("cudaGetDevice", cudaGetDevice(&device));
  CheckCuda("cudaDeviceGetAttribute", cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

// Whether launches go into a CUDA graph instead of running.
inline bool IsCaptured(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CheckCuda("cudaStreamIsCapturing", cudaStreamIsCapturing(stream, &status));
  return status != cudaStreamCaptureStatusNone;
}

// The device of a stream, which need not be the thread's current one. CUDA does not tell it of a
// stream that is captured; that is captured by the thread which made its device current.
inline int DeviceOf(cudaStream_t stream, bool captured) {
  int device = 0;
  if (captured) {
    CheckCuda("cudaGetDevice", cudaGetDevice(&device));
  } else {
    CheckCuda("cudaStreamGetDevice", cudaStreamGetDevice(stream, &device));
  }
  return device;
}

// Memory that runs give back, ready for the next one in any stream; of the current device. ONNX
// Runtime's gpu_mem_limit does not count it, so that little stays: a decoding step needs a few KB,
// and what a long prompt took goes back to the device.
inline constexpr uint64_t kMostKept = 32 << 20;

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
  uint64_t keep = kMostKept;
  CheckCuda("cudaMemPoolSetAttribute",
            cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  return pools[device] = pool;
}

// Memory of one run in a stream. Errors are thrown as CudaError.
class RunMemory {
 public:
  explicit RunMemory(cudaStream_t stream) : stream_(stream) {}
  ~RunMemory() {
    if (memory_ != nullptr) cudaFreeAsync(memory_, stream_);
  }
  RunMemory(const RunMemory&) = delete;
  RunMemory& operator=(const RunMemory&) = delete;

  void* Allocate(size_t bytes) {
    const cudaError_t error = cudaMallocFromPoolAsync(&memory_, bytes, MemoryPool(), stream_);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // or the next launch would report it
      return memory_ = nullptr;
    }
    CheckCuda("cudaMallocFromPoolAsync", error);
    return memory_;
  }

  void Upload(void* to, const void* from, size_t bytes) {
    if (bytes <= kMostStoredInAll) {
      for (size_t at = 0; at < bytes; at += kMostStored) {
        CheckCuda("upload",
                  LaunchStore(static_cast<char*>(to) + at, static_cast<const char*>(from) + at,
                              std::min(kMostStored, bytes - at), stream_));
      }
      return;
    }
    CheckCuda("upload", cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_));
    CheckCuda("upload", cudaStreamSynchronize(stream_));
  }

  void Copy(void* to, const void* from, size_t bytes) {
    CheckCuda("copy", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_));
  }

  cudaStream_t stream() const { return stream_; }

 private:
  cudaStream_t stream_;
  void* memory_ = nullptr;
};

[[noreturn]] inline void RefuseLaunch(const char* kernel, int64_t blocks, cudaError_t error) {
  throw CudaError("the kernel '" + std::string(kernel) + "' of " + std::to_string(blocks) +
                      " blocks could not be launched",
                  error);
}

// Errors are thrown as CudaError.
template <typename T>
class CudaDevice : public Device<T> {
 public:
  explicit CudaDevice(cudaStream_t stream) : memory_(stream) {}

  void* Allocate(size_t bytes) override { return memory_.Allocate(bytes); }
  void Upload(void* to, const void* from, size_t bytes) override {
    memory_.Upload(to, from, bytes);
  }
  void Copy(void* to, const void* from, size_t bytes) override { memory_.Copy(to, from, bytes); }

  bool HasWarpgroups() const override {
    return AttributeOf(cudaDevAttrComputeCapabilityMajor) == 9 &&
           AttributeOf(cudaDevAttrComputeCapabilityMinor) == 0;
  }

  int64_t BlocksAtOnce(const Call<T>& call) const override {
    int blocks = 0;  // of a processor
    CheckCuda("cudaOccupancyMaxActiveBlocksPerMultiprocessor", AttentionBlocks(call, blocks));
    return int64_t{AttributeOf(cudaDevAttrMultiProcessorCount)} * blocks;
  }

  void Launch(Kernel kernel, int64_t blocks, const Call<T>& call) override {
    const cudaError_t error = LaunchKernel(kernel, blocks, call, memory_.stream());
    if (error != cudaSuccess) RefuseLaunch(NameOf(kernel), blocks, error);
  }
  void LaunchPlan(int64_t blocks, const PlanCall<T>& plan) override {
    const cudaError_t error = cuda::LaunchPlan(blocks, plan, memory_.stream());
    if (error != cudaSuccess) RefuseLaunch("plan", blocks, error);
  }

 private:
  RunMemory memory_;
};

// The same for the rotation alone.
template <typename T>
class CudaRotaryDevice : public RotaryDevice<T> {
 public:
  explicit CudaRotaryDevice(cudaStream_t stream) : memory_(stream) {}

  void* Allocate(size_t bytes) override { return memory_.Allocate(bytes); }
  void Upload(void* to, const void* from, size_t bytes) override {
    memory_.Upload(to, from, bytes);
  }
  void Launch(RotaryStep step, int64_t blocks, const RotaryCall<T>& call) override {
    const cudaError_t error = LaunchRotary(step, blocks, call, memory_.stream());
    if (error != cudaSuccess) RefuseLaunch(NameOf(step), blocks, error);
  }

 private:
  RunMemory memory_;
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_CUDA_DEVICE_H_
