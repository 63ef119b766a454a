// Small copies to the device inside a launch.
#include <cstring>

#include "launch.h"

namespace rope::cuda {
namespace {

template <size_t kBytes>
struct Bytes {
  uint32_t words[kBytes / sizeof(uint32_t)];
};

template <size_t kBytes>
__global__ void Store(uint32_t* to, const __grid_constant__ Bytes<kBytes> bytes, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = bytes.words[i];
}

template <size_t kBytes>
cudaError_t LaunchBytes(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  Bytes<kBytes> copy;
  std::memcpy(copy.words, from, bytes);
  const auto words = static_cast<unsigned>((bytes + sizeof(uint32_t) - 1) / sizeof(uint32_t));
  constexpr unsigned kThreads = 256;
  Store<<<(words + kThreads - 1) / kThreads, kThreads, 0, stream>>>(static_cast<uint32_t*>(to),
                                                                    copy, words);
  return cudaGetLastError();
}

}  // namespace

// A launch copies all of its arguments, used or not: most runs need little.
cudaError_t LaunchStore(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  constexpr size_t kFew = 1024, kSome = 4064;
  if (bytes <= kFew) return LaunchBytes<kFew>(to, from, bytes, stream);
  if (bytes <= kSome) return LaunchBytes<kSome>(to, from, bytes, stream);
  if (bytes <= kMostStored) return LaunchBytes<kMostStored>(to, from, bytes, stream);
  return cudaErrorInvalidValue;
}

}  // namespace rope::cuda
