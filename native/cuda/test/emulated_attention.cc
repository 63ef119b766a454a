// RunAttention by the emulated kernels, in place of the CPU's: whatever tests
// that one, or is built on it, then tests these.
#include <atomic>

#include "emulation.h"

namespace rope {
namespace {

template <typename T>
bool Emulate(const AttentionParams& params, const AttentionArgs<T>& args, Host& host) {
  static std::atomic<int> runs{0};
  cuda::test::EmulatedDevice<cuda::Element<T>> device(host, runs++ % 3);
  return cuda::RunOnDevice(params, args, device);
}

}  // namespace

bool RunAttention(const AttentionParams& params, const AttentionArgs<float>& args, Host& host) {
  return Emulate(params, args, host);
}
bool RunAttention(const AttentionParams& params, const AttentionArgs<Float16>& args, Host& host) {
  return Emulate(params, args, host);
}
bool RunAttention(const AttentionParams& params, const AttentionArgs<BFloat16>& args, Host& host) {
  return Emulate(params, args, host);
}

}  // namespace rope
