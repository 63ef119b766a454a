// One run, from what the op was given to the kernels' launches: everything that
// the host works out before. Knows neither CUDA nor ONNX Runtime.
#ifndef ROPE_CUDA_RUN_H_
#define ROPE_CUDA_RUN_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "attention.h"
#include "call.h"
#include "element.h"
#include "kernels.h"
#include "plan_call.h"

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
  virtual void LaunchPlan(int64_t blocks, const PlanCall<T>& plan) = 0;
  // How many blocks of the call's attention kernel run at the same time.
  virtual int64_t BlocksAtOnce(const Call<T>& call) const = 0;
  // Whether it can run kernels for warpgroups (warpgroup_kernel.h).
  virtual bool HasWarpgroups() const = 0;
};

// The caches of a run without their type.
template <typename T, typename C>
Caches CachesOf(const AttentionArgs<T, C>& args) {
  const auto untyped = [](const auto& rows, auto* data) {
    return Rows<std::remove_pointer_t<decltype(data)>>{data, rows.batch_stride, rows.head_stride,
                                                       rows.row_stride};
  };
  const auto past = [&](const Rows<const C>& rows, const Rows<const float>& scales) {
    return CachedTensor{untyped(rows, static_cast<const void*>(rows.data)), scales};
  };
  const auto present = [&](const Rows<C>& rows, const Rows<float>& scales) {
    return PresentTensor{untyped(rows, static_cast<void*>(rows.data)), scales};
  };
  Caches caches;
  if (!std::is_same_v<T, C>) {
    caches.kind = std::is_same_v<C, int8_t>    ? CacheKind::kInt8
                  : std::is_same_v<C, Float16> ? CacheKind::kHalf
                                               : CacheKind::kBFloat;
  }
  caches.past_key = past(args.past_key, args.past_key_scale);
  caches.past_value = past(args.past_value, args.past_value_scale);
  caches.present_key = present(args.present_key, args.present_key_scale);
  caches.present_value = present(args.present_value, args.present_value_scale);
  return caches;
}

// Positions, lengths, masks and document ids that lie on the device, too. The call's max_past is
// then the room for cached tokens, if it has row_past, and nothing else of it follows from them.
// Not for rings, and not for positions that start anew in documents.
struct DeviceNumbers {
  FrequencyRule rule;         // on the host
  uint8_t* faults = nullptr;  // [kFaults] on the device; null: nobody asks
};

template <typename T>
bool RunCall(const AttentionParams& params, const AttentionCall<T>& args, const Caches& caches,
             const DeviceNumbers* numbers, Device<Element<T>>& device);

// Computes one run. Of the arguments, query, key, value, pasts, presents, their scales, output,
// biases and log_sum_exp lie on the device, all others on the host, unless `numbers` are given.
// False: the device gave no memory. Head sizes are at most kMostChannels.
template <typename T, typename C>
bool RunOnDevice(const AttentionParams& params, const AttentionArgs<T, C>& args,
                 Device<Element<T>>& device, const DeviceNumbers* numbers = nullptr) {
  return RunCall<T>(params, args, CachesOf(args), numbers, device);
}

}  // namespace rope::cuda

#endif  // ROPE_CUDA_RUN_H_
