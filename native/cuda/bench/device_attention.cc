// RunAttention on tensors that lie on the GPU, in the default stream.
#include "cuda_device.h"

namespace rope {
namespace {

template <typename T>
bool Launch(const AttentionParams& params, const AttentionArgs<T>& args) {
  cuda::CudaDevice<cuda::Element<T>> device(nullptr);
  return cuda::RunOnDevice(params, args, device);
}

}  // namespace

bool RunAttention(const AttentionParams& params, const AttentionArgs<float>& args, Host&) {
  return Launch(params, args);
}
bool RunAttention(const AttentionParams& params, const AttentionArgs<Float16>& args, Host&) {
  return Launch(params, args);
}
bool RunAttention(const AttentionParams& params, const AttentionArgs<BFloat16>& args, Host&) {
  return Launch(params, args);
}

}  // namespace rope
