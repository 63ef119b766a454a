// One run, from what the op was given to the kernels' launches: everything that
// the host works out before. Knows neither CUDA nor ONNX Runtime.
#ifndef ROPE_CUDA_RUN_H_
#define ROPE_CUDA_RUN_H_

#include <cstddef>
#include <cstdint>

#include "attention.h"
#include "call.h"
#include "element.h"
#include "kernels.h"

namespace rope::cuda {

// The element type under the name that kernels have for it.
template <typename T>
struct ElementFor {
  using Type = float;
};
template <>
struct ElementFor<Float16> {
  using Type = Half;
};
template <>
struct ElementFor<BFloat16> {
  using Type = BFloat;
};
template <typename T>
using Element = typename ElementFor<T>::Type;

// What a run needs of its device. Everything happens in the order of the calls.
template <typename T>
class Device {
 public:
  virtual ~Device() = default;
  // Memory for this run, or null.
  virtual void* Allocate(size_t bytes) = 0;
  // Copies from the host, whose memory may change afterwards, and within the device.
  virtual void Upload(void* to, const void* from, size_t bytes) = 0;
  virtual void Copy(void* to, const void* from, size_t bytes) = 0;
  virtual void Launch(Kernel kernel, int64_t blocks, const Call<T>& call) = 0;
  // Whether it can run kernels for warpgroups (warpgroup_kernel.h).
  virtual bool HasWarpgroups() const = 0;
};

// Computes one run. Of the arguments, query, key, value, pasts, presents, output,
// biases and log_sum_exp lie on the device, all others on the host. False: the
// device gave no memory. Head sizes are at most kMostChannels.
template <typename T>
bool RunOnDevice(const AttentionParams& params, const AttentionArgs<T>& args,
                 Device<Element<T>>& device);

}  // namespace rope::cuda

#endif  // ROPE_CUDA_RUN_H_
