// A block of threads as the kernels see it: steps that all threads take, each
// followed by a barrier. test/emulation.h has the same on the host.
#ifndef ROPE_CUDA_BLOCK_H_
#define ROPE_CUDA_BLOCK_H_

#include <cstdint>
#include <type_traits>

#include "device.h"
#include "element.h"
#include "wgmma.h"

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

  // step(thread) in every thread; what they wrote is then visible to all.
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

  // Starts to copy 16 bytes to a place in shared memory, or puts zeros there. Both
  // addresses are multiples of 16.
  ROPE_DEVICE void CopyAsync(int /*thread*/, int place, const void* from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(Address(place)), "l"(from),
                 "r"(there ? 16 : 0)
                 : "memory");
  }
  // What a thread started since the last call is one group; waits until at most
  // kLeft of its groups are on their way. A barrier then shows them to the others.
  ROPE_DEVICE void EndCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
  template <int kLeft>
  ROPE_DEVICE void AwaitCopies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
  }
  // Puts 16 bytes to a place in shared memory.
  ROPE_DEVICE void Store(int /*thread*/, int place, const uint32_t* words) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(Address(place)), "r"(words[0]),
                 "r"(words[1]), "r"(words[2]), "r"(words[3])
                 : "memory");
  }

  // Loads four 8 x 8 matrices of 16-bit numbers in each warp (ldmatrix): lane t says
  // where row t % 8 of matrix t / 8 is, and is given two neighbours of row t / 4 of
  // each, from column 2 (t % 4) on; of kTransposed ones those of column t / 4.
  template <bool kTransposed, typename Place, typename Out>
  ROPE_DEVICE void LoadMatrices(const Place& place, const Out& out) {
    const int t = static_cast<int>(threadIdx.x);
    uint32_t* r = out(t);
    if constexpr (kTransposed) {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                   : "r"(Address(place(t)))
                   : "memory");
    } else {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                   : "r"(Address(place(t)))
                   : "memory");
    }
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

  // Products of warpgroups. Each warpgroup multiplies in the order of its calls. A product reads
  // shared memory as others wrote it, and called ShowToProducts, before a barrier; registers
  // as they are at the call of BeginProducts. Until AwaitProducts says that it has ended, neither
  // may be written.
  ROPE_DEVICE void ShowToProducts() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
  ROPE_DEVICE void BeginProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

  // step(warpgroup) in every warpgroup.
  template <typename Step>
  ROPE_DEVICE void ForWarpgroups(const Step& step) {
    // The same in all threads of a warp, which the compiler does not see otherwise.
    step(__shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / kWarpgroupThreads, 0));
  }
  // d(thread) = a · b, or that added to d, in a warpgroup's threads.
  template <typename T, int kColumns, typename D>
  ROPE_DEVICE void MultiplyShared(int /*warpgroup*/, const D& d, uint64_t a, uint64_t b,
                                  bool adds) {
    WgmmaShared<T, kColumns>(d(static_cast<int>(threadIdx.x)), a, b, adds ? 1 : 0);
  }
  // d(thread) += a(thread) · b, with four pairs of a in registers.
  template <typename T, int kColumns, typename D, typename A>
  ROPE_DEVICE void MultiplyRegisters(int /*warpgroup*/, const D& d, const A& a, uint64_t b) {
    const int thread = static_cast<int>(threadIdx.x);
    WgmmaRegisters<T, kColumns>(d(thread), a(thread), b);
  }

  // What a warpgroup multiplied since the last call is one group; waits until at most kLeft of
  // its groups are under way.
  ROPE_DEVICE void EndProducts() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
  template <int kLeft>
  ROPE_DEVICE void AwaitProducts() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
  }

  // Keeps the compiler from moving the making and the use of registers over this line: it does
  // not know that products go on.
  template <int kCount, typename Number>
  ROPE_DEVICE static void Hold(Number* registers) {
    ROPE_UNROLL
    for (int i = 0; i < kCount; ++i) {
      if constexpr (std::is_same_v<Number, float>) {
        asm volatile("" : "+f"(registers[i])::"memory");
      } else {
        asm volatile("" : "+r"(registers[i])::"memory");
      }
    }
  }

  // Makes a number, which is not below zero, before what follows.
  ROPE_DEVICE static void Settle(float number) {
    if (number < 0.0f) __nanosleep(0);
  }

  // What is the same in all threads, said so that ptxas sees it: products in a branch that some
  // threads might not take would wait for one another.
  ROPE_DEVICE static bool Uniform(bool same) { return __any_sync(0xffffffffu, same) != 0; }

  // The address that a place in shared memory has in descriptors.
  ROPE_DEVICE uint32_t Address(int place) const {
    return static_cast<uint32_t>(__cvta_generic_to_shared(shared_)) + static_cast<uint32_t>(place);
  }

  // Makes each of the kCount values(thread) of kLanes neighbouring threads what combine
  // makes of all of them.
  template <int kLanes, int kCount, typename Values, typename Combine>
  ROPE_DEVICE void Reduce(const Values& values, const Combine& combine) {
    float* own = values(static_cast<int>(threadIdx.x));
    ROPE_UNROLL
    for (int lane = 1; lane < kLanes; lane *= 2) {
      float others[kCount];
      ROPE_UNROLL
      for (int i = 0; i < kCount; ++i) others[i] = __shfl_xor_sync(0xffffffffu, own[i], lane);
      ROPE_UNROLL
      for (int i = 0; i < kCount; ++i) own[i] = combine(own[i], others[i]);
    }
  }

 private:
  float* shared_;
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_BLOCK_H_
