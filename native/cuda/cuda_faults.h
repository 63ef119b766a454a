// What a run found wrong with numbers that lie on the device, told when the next one begins.
#ifndef ROPE_CUDA_CUDA_FAULTS_H_
#define ROPE_CUDA_CUDA_FAULTS_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "faults.h"

namespace rope::cuda {

// Memory that the device writes and the host reads without waiting for it. Where there is none,
// nothing is told.
class Faults {
 public:
  Faults() {
    void* memory = nullptr;
    if (cudaHostAlloc(&memory, kFaults, cudaHostAllocPortable | cudaHostAllocMapped) !=
        cudaSuccess) {
      cudaGetLastError();  // or the next launch would report it
      return;
    }
    std::memset(memory, 0, kFaults);
    host_ = static_cast<volatile uint8_t*>(memory);
    void* device = nullptr;
    if (cudaHostGetDevicePointer(&device, memory, 0) == cudaSuccess) {
      device_ = static_cast<uint8_t*>(device);
    }
  }
  ~Faults() {
    if (host_ != nullptr) cudaFreeHost(const_cast<uint8_t*>(host_));
  }
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  uint8_t* device() const { return device_; }

  // A sentence about what runs have found since the last call; empty if that is nothing.
  std::string Take() const {
    for (int i = 0; host_ != nullptr && i < kFaults; ++i) {
      if (host_[i] == 0) continue;
      host_[i] = 0;
      return TextOf(static_cast<Fault>(i));
    }
    return "";
  }

 private:
  volatile uint8_t* host_ = nullptr;
  uint8_t* device_ = nullptr;
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_CUDA_FAULTS_H_
