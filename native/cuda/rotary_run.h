// One run of the rotation alone, as run.h is one of attention.
#ifndef ROPE_CUDA_ROTARY_RUN_H_
#define ROPE_CUDA_ROTARY_RUN_H_

#include <cstddef>
#include <cstdint>

#include "rotary.h"
#include "rotary_kernel.h"
#include "run.h"

namespace rope::cuda {

// What a run needs of its device. Everything happens in the order of the calls.
template <typename T>
class RotaryDevice {
 public:
  virtual ~RotaryDevice() = default;
  // Memory for this run, or null.
  virtual void* Allocate(size_t bytes) = 0;
  // Copies from the host, whose memory may change afterwards.
  virtual void Upload(void* to, const void* from, size_t bytes) = 0;
  virtual void Launch(RotaryStep step, int64_t blocks, const RotaryCall<T>& call) = 0;
};

// Computes one run. Query, key and their outputs lie on the device, all others on the host.
// False: the device gave no memory.
template <typename T>
bool RunRotaryOnDevice(const RotaryParams& params, const RotaryArgs<T>& args,
                       RotaryDevice<Element<T>>& device);

}  // namespace rope::cuda

#endif  // ROPE_CUDA_ROTARY_RUN_H_
