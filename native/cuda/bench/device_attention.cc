// RunAttention on tensors that lie on the GPU, in the default stream.
#include "cuda_device.h"
#include "device_numbers.h"

namespace rope {
namespace {

template <typename T, typename C>
bool Launch(const AttentionParams& params, const AttentionArgs<T, C>& args) {
  cuda::CudaDevice<cuda::Element<T>> device(nullptr);
  const cuda::DeviceNumbers numbers;
  return cuda::RunOnDevice(params, args, device, cuda::test::g_device_numbers ? &numbers : nullptr);
}

}  // namespace

#define ROPE_RUN_ATTENTION(T, C)                                                             \
  bool RunAttention(const AttentionParams& params, const AttentionArgs<T, C>& args, Host&) { \
    return Launch(params, args);                                                             \
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
