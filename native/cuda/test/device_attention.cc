// RunAttention on a GPU: the tensors of the kernel tests, which lie on the host,
// are copied there and back.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

#include "cuda_device.h"
#include "device_numbers.h"
#include "mirror.h"

namespace rope {
namespace {

using cuda::CheckCuda;
using cuda::test::Mirror;

// As the device is, or as one without warpgroups.
template <typename T>
class TestDevice : public cuda::CudaDevice<T> {
 public:
  using cuda::CudaDevice<T>::CudaDevice;
  bool HasWarpgroups() const override {
    return cuda::test::g_warpgroups && cuda::CudaDevice<T>::HasWarpgroups();
  }
};

template <typename T, typename C>
bool RunThere(const AttentionParams& params, AttentionArgs<T, C> args) {
  Mirror mirror;
  const auto add_rows = [&](const auto& rows) {
    mirror.Add(rows.data, static_cast<size_t>(args.batch * rows.batch_stride) * sizeof(*rows.data));
  };
  const auto add_bias = [&](const Bias<T>& bias) {
    const int64_t last =
        (args.batch - 1) * bias.batch_stride + (params.num_heads - 1) * bias.head_stride +
        (args.length - 1) * bias.query_stride + (args.max_total() - 1) * bias.key_stride;
    mirror.Add(bias.data, static_cast<size_t>(last + 1) * sizeof(T));
  };
  const AttentionArgs<T, C> here = args;
  add_rows(args.query), add_rows(args.key), add_rows(args.value), add_rows(args.output);
  add_rows(args.past_key), add_rows(args.past_value);
  add_rows(args.present_key), add_rows(args.present_value);
  add_rows(args.past_key_scale), add_rows(args.past_value_scale);
  add_rows(args.present_key_scale), add_rows(args.present_value_scale);
  add_bias(args.bias), add_bias(args.bias_before_softcap);
  mirror.Add(args.log_sum_exp,
             static_cast<size_t>(args.batch * params.num_heads * args.length) * sizeof(float));
  mirror.CopyThere();
  mirror.Swap(args.query.data), mirror.Swap(args.key.data), mirror.Swap(args.value.data);
  mirror.Swap(args.past_key.data), mirror.Swap(args.past_value.data);
  mirror.Swap(args.present_key.data), mirror.Swap(args.present_value.data);
  mirror.Swap(args.past_key_scale.data), mirror.Swap(args.past_value_scale.data);
  mirror.Swap(args.present_key_scale.data), mirror.Swap(args.present_value_scale.data);
  mirror.Swap(args.output.data), mirror.Swap(args.log_sum_exp);
  mirror.Swap(args.bias.data), mirror.Swap(args.bias_before_softcap.data);
  cuda::test::DeviceCopies copies;
  const cuda::DeviceNumbers numbers;
  const bool there = cuda::test::g_device_numbers && cuda::test::TakesDeviceNumbers(params, args);
  if (there) {
    args = cuda::test::WithDeviceNumbers(
        params, args, [&](const auto* from, size_t count) { return copies.Take(from, count); });
  }
  {
    TestDevice<cuda::Element<T>> device(cuda::test::Stream());
    if (!cuda::RunOnDevice(params, args, device, there ? &numbers : nullptr)) return false;
    CheckCuda("cudaDeviceSynchronize", cudaDeviceSynchronize());
  }
  mirror.CopyBack(here.output.data);
  mirror.CopyBack(here.present_key.data);
  mirror.CopyBack(here.present_value.data);
  mirror.CopyBack(here.present_key_scale.data);
  mirror.CopyBack(here.present_value_scale.data);
  mirror.CopyBack(here.log_sum_exp);
  return true;
}

// A test that meets a broken device has nothing left to do.
template <typename T, typename C>
bool RunOrExit(const AttentionParams& params, const AttentionArgs<T, C>& args) {
  try {
    return RunThere(params, args);
  } catch (const cuda::CudaError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::exit(1);
  }
}

}  // namespace

#define ROPE_RUN_ATTENTION(T, C)                                                             \
  bool RunAttention(const AttentionParams& params, const AttentionArgs<T, C>& args, Host&) { \
    return RunOrExit(params, args);                                                          \
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
