// Small copies to the device inside a launch.
#include <cstring>

#include "launch.h"

namespace rope::cuda {
namespace {

struct Bytes {
  uint32_t words[kMostStored / sizeof(uint32_t)];
};

__global__ void Store(uint32_t* to, const __grid_constant__ Bytes bytes, unsigned count) {
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) to[i] = bytes.words[i];
}

}  // namespace

cudaError_t LaunchStore(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  Bytes copy;
  if (bytes > sizeof(copy)) return cudaErrorInvalidValue;
  std::memcpy(copy.words, from, bytes);
  const auto words = static_cast<unsigned>((bytes + sizeof(uint32_t) - 1) / sizeof(uint32_t));
  Store<<<1, 128, 0, stream>>>(static_cast<uint32_t*>(to), copy, words);
  return cudaGetLastError();
}

}  // namespace rope::cuda
