// Tensors of a test, which lie on the host, and their copies on the device.
#ifndef ROPE_CUDA_TEST_MIRROR_H_
#define ROPE_CUDA_TEST_MIRROR_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <map>
#include <vector>

#include "cuda_device.h"

namespace rope::cuda::test {

// A stream of the tests' own, as ONNX Runtime has one: what should wait and does not is not hidden
// by the default stream, which waits for all others.
inline cudaStream_t Stream() {
  static const cudaStream_t stream = [] {
    cudaStream_t made = nullptr;
    CheckCuda("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
    return made;
  }();
  return stream;
}

// Whether kernels for warpgroups are launched on a device that has them.
inline bool g_warpgroups = true;

// Host memory and its copy on the device.
class Mirror {
 public:
  ~Mirror() {
    for (auto& [host, piece] : pieces_) cudaFree(piece.device);
  }

  // Tensors that share an address share a copy.
  void Add(const void* host, size_t bytes) {
    if (host != nullptr) pieces_[host].bytes = std::max(pieces_[host].bytes, bytes);
  }
  void CopyThere() {
    for (auto& [host, piece] : pieces_) {
      CheckCuda("cudaMalloc", cudaMalloc(&piece.device, std::max<size_t>(1, piece.bytes)));
      CheckCuda("cudaMemcpy", cudaMemcpy(piece.device, host, piece.bytes, cudaMemcpyHostToDevice));
    }
    CheckCuda("cudaDeviceSynchronize", cudaDeviceSynchronize());
  }
  template <typename T>
  void Swap(T*& pointer) const {
    if (pointer != nullptr) pointer = static_cast<T*>(pieces_.at(pointer).device);
  }
  void CopyBack(void* host) {
    if (host == nullptr) return;
    const Piece& piece = pieces_.at(host);
    CheckCuda("cudaMemcpy", cudaMemcpy(host, piece.device, piece.bytes, cudaMemcpyDeviceToHost));
  }

 private:
  struct Piece {
    void* device = nullptr;
    size_t bytes = 0;
  };
  std::map<const void*, Piece> pieces_;
};

// Copies on the device of numbers that nobody writes.
class DeviceCopies {
 public:
  DeviceCopies() = default;
  ~DeviceCopies() {
    for (void* memory : copies_) cudaFree(memory);
  }
  DeviceCopies(const DeviceCopies&) = delete;
  DeviceCopies& operator=(const DeviceCopies&) = delete;

  // Null stays null.
  template <typename V>
  const V* Take(const V* numbers, size_t count) {
    if (numbers == nullptr) return nullptr;
    void* copy = nullptr;
    CheckCuda("cudaMalloc", cudaMalloc(&copy, std::max<size_t>(1, count * sizeof(V))));
    copies_.push_back(copy);
    CheckCuda("cudaMemcpy", cudaMemcpy(copy, numbers, count * sizeof(V), cudaMemcpyHostToDevice));
    return static_cast<const V*>(copy);
  }

 private:
  std::vector<void*> copies_;
};

}  // namespace rope::cuda::test

#endif  // ROPE_CUDA_TEST_MIRROR_H_
