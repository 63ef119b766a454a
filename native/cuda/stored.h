// How much a launch may carry to the device.
#ifndef ROPE_CUDA_STORED_H_
#define ROPE_CUDA_STORED_H_

#include <cstddef>

namespace rope::cuda {

// Bytes that the host may copy to the device as a launch's arguments, so that its memory may change
// at once. From CUDA 12.1 on a kernel takes 32,764 bytes of them (CUDA C++ Programming Guide,
// "__global__ Function Parameters").
inline constexpr size_t kMostStored = 32'736;
// The same as arguments of several launches, for which nobody waits either: the spans of a prompt
// of some 40,000 tokens.
inline constexpr size_t kMostStoredInAll = 16 * kMostStored;

}  // namespace rope::cuda

#endif  // ROPE_CUDA_STORED_H_
