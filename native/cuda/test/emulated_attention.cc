// RunAttention by the emulated kernels, in place of the CPU's: whatever tests
// that one, or is built on it, then tests these.
#include <atomic>

#include "device_numbers.h"
#include "emulation.h"
#include "hidden_memory.h"

namespace rope {
namespace {

// A call whose numbers kernels alone can read.
template <typename T, typename C>
bool EmulateNumbers(const AttentionParams& params, const AttentionArgs<T, C>& args,
                    cuda::test::EmulatedDevice<cuda::Element<T>>& device) {
  cuda::test::HiddenMemory memory;
  const auto there = cuda::test::WithDeviceNumbers(
      params, args, [&](const auto* numbers, size_t count) { return memory.Take(numbers, count); });
  device.Hide(memory);
  const cuda::DeviceNumbers numbers;
  return cuda::RunOnDevice(params, there, device, &numbers);
}

template <typename T, typename C>
bool Emulate(const AttentionParams& params, const AttentionArgs<T, C>& args, Host& host) {
  static std::atomic<int> runs{0};
  cuda::test::EmulatedDevice<cuda::Element<T>> device(host, runs++ % 3);
  if (cuda::test::g_device_numbers && cuda::test::TakesDeviceNumbers(params, args)) {
    return EmulateNumbers(params, args, device);
  }
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
