// RunRotary on a GPU, as device_attention.cc does it.
#include <cstdio>
#include <cstdlib>

#include "cuda_device.h"
#include "mirror.h"

namespace rope {
namespace {

template <typename T>
bool RunThere(const RotaryParams& params, RotaryArgs<T> args) {
  cuda::test::Mirror mirror;
  RotaryTensor<T>* tensors[] = {&args.query, &args.key};
  const RotaryArgs<T> here = args;
  for (const RotaryTensor<T>* tensor : tensors) {
    const auto count = args.batch * args.length * tensor->heads * args.head_size;
    mirror.Add(tensor->from.data, static_cast<size_t>(count) * sizeof(T));
    mirror.Add(tensor->to.data, static_cast<size_t>(count) * sizeof(T));
  }
  mirror.CopyThere();
  for (RotaryTensor<T>* tensor : tensors) mirror.Swap(tensor->from.data);
  for (RotaryTensor<T>* tensor : tensors) mirror.Swap(tensor->to.data);
  {
    cuda::CudaRotaryDevice<cuda::Element<T>> device(cuda::test::Stream());
    if (!cuda::RunRotaryOnDevice(params, args, device)) return false;
    cuda::CheckCuda("cudaDeviceSynchronize", cudaDeviceSynchronize());
  }
  mirror.CopyBack(here.query.to.data);
  mirror.CopyBack(here.key.to.data);
  return true;
}

// A test that meets a broken device has nothing left to do.
template <typename T>
bool RunOrExit(const RotaryParams& params, const RotaryArgs<T>& args) {
  try {
    return RunThere(params, args);
  } catch (const cuda::CudaError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::exit(1);
  }
}

}  // namespace

bool RunRotary(const RotaryParams& params, const RotaryArgs<float>& args, Host&) {
  return RunOrExit(params, args);
}
bool RunRotary(const RotaryParams& params, const RotaryArgs<Float16>& args, Host&) {
  return RunOrExit(params, args);
}
bool RunRotary(const RotaryParams& params, const RotaryArgs<BFloat16>& args, Host&) {
  return RunOrExit(params, args);
}

}  // namespace rope
