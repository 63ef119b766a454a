// A block of threads as the kernels see it: steps that all threads take, each
// followed by a barrier. test/emulation.h has the same on the host.
#ifndef ROPE_CUDA_BLOCK_H_
#define ROPE_CUDA_BLOCK_H_

#include <cstdint>
#include <type_traits>

#include "device.h"
#include "element.h"

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

  ROPE_DEVICE void Barrier() { __syncthreads(); }

  // A step without a barrier: what it writes, other threads do not read.
  template <typename Step>
  ROPE_DEVICE void Lanes(const Step& step) {
    step(static_cast<int>(threadIdx.x));
  }

  // c += a · b in each warp: mma.m16n8k16 on numbers of type T, whose operands
  // c(thread, i), a(thread, i) and b(thread, i) are.
  template <typename T, typename C, typename A, typename B>
  ROPE_DEVICE void Mma(const C& c, const A& a, const B& b) {
    const int t = static_cast<int>(threadIdx.x);
    if constexpr (std::is_same_v<T, Half>) {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
          "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+f"(c(t, 0)), "+f"(c(t, 1)), "+f"(c(t, 2)), "+f"(c(t, 3))
          : "r"(a(t, 0)), "r"(a(t, 1)), "r"(a(t, 2)), "r"(a(t, 3)), "r"(b(t, 0)), "r"(b(t, 1)));
    } else {
      static_assert(std::is_same_v<T, BFloat>);
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
          "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+f"(c(t, 0)), "+f"(c(t, 1)), "+f"(c(t, 2)), "+f"(c(t, 3))
          : "r"(a(t, 0)), "r"(a(t, 1)), "r"(a(t, 2)), "r"(a(t, 3)), "r"(b(t, 0)), "r"(b(t, 1)));
    }
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
