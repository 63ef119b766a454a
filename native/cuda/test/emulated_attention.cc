// RunAttention by the emulated kernels, in place of the CPU's: whatever tests
// that one, or is built on it, then tests these.
#include <atomic>

#include "emulation.h"

namespace rope {
namespace {

template <typename T, typename C>
bool Emulate(const AttentionParams& params, const AttentionArgs<T, C>& args, Host& host) {
  static std::atomic<int> runs{0};
  cuda::test::EmulatedDevice<cuda::Element<T>> device(host, runs++ % 3);
  return cuda::RunOnDevice(params, args, device);
}

}  // namespace

#define ROPE_RUN_ATTENTION(T, C)                                                                  \
  bool RunAttention(const AttentionParams& params, const AttentionArgs<T, C>& args, Host& host) { \
    return Emulate(params, args, host);                                                           \
  }
ROPE_RUN_ATTENTION(float, float)
ROPE_RUN_ATTENTION(float, Float16)
ROPE_RUN_ATTENTION(float, BFloat16)
ROPE_RUN_ATTENTION(float, int8_t)
ROPE_RUN_ATTENTION(Float16, Float16)
ROPE_RUN_ATTENTION(Float16, int8_t)
ROPE_RUN_ATTENTION(BFloat16, BFloat16)
ROPE_RUN_ATTENTION(BFloat16, int8_t)
#undef ROPE_RUN_ATTENTION

}  // namespace rope
