// A block of threads as the kernels see it: steps that all threads take, each
// followed by a barrier. emulation/block.h is the same on the host.
#ifndef ROPE_CUDA_BLOCK_H_
#define ROPE_CUDA_BLOCK_H_

#include <cstdint>

#include "device.h"

namespace rope::cuda {

class DeviceBlock {
 public:
  ROPE_DEVICE explicit DeviceBlock(float* shared) : shared_(shared) {}

  // What each thread keeps from step to step: registers.
  template <typename State>
  class PerThread {
   public:
    ROPE_DEVICE State& operator[](int /*thread*/) { return state_; }

   private:
    State state_;
  };

  ROPE_DEVICE int64_t index() const { return static_cast<int64_t>(blockIdx.x); }
  ROPE_DEVICE float* shared() const { return shared_; }

  // step(thread) in every thread; what they wrote is then seen by all.
  template <typename Step>
  ROPE_DEVICE void ForThreads(const Step& step) {
    step(static_cast<int>(threadIdx.x));
    __syncthreads();
  }

  // The same; whether step(thread) was true in some thread.
  template <typename Step>
  ROPE_DEVICE bool AnyThread(const Step& step) {
    return __syncthreads_or(step(static_cast<int>(threadIdx.x)) ? 1 : 0) != 0;
  }

  // Makes value(thread) of each kLanes neighbouring threads what combine makes of all of them.
  template <int kLanes, typename Value, typename Combine>
  ROPE_DEVICE void Reduce(const Value& value, const Combine& combine) {
    float& v = value(static_cast<int>(threadIdx.x));
#pragma unroll
    for (int lane = 1; lane < kLanes; lane *= 2) {
      v = combine(v, __shfl_xor_sync(0xffffffffu, v, lane));
    }
  }

 private:
  float* shared_;
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_BLOCK_H_
