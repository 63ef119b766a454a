// Runs of the op on the device of ONNX Runtime's CUDA execution provider.
#ifndef ROPE_CUDA_CUDA_ENGINE_H_
#define ROPE_CUDA_CUDA_ENGINE_H_

#include <algorithm>
#include <string>

#include "cuda_device.h"
#include "cuda_faults.h"
#include "numbers.h"
#include "ort_api.h"
#include "spec.gen.h"
#include "tile_shapes.h"

namespace rope {

// An engine as rotary_attention_op.h describes them.
class CudaEngine {
 public:
  static constexpr const char* kProvider = "CUDAExecutionProvider";
  static constexpr Numbers kNumbers = Numbers::kOnHost;

  // Integers and sinks are few, and are checked on the host.
  static OrtMemType MemoryOf(size_t input) {
    return IsNumbers(input) || IsRead(input) ? OrtMemTypeCPUInput : OrtMemTypeDefault;
  }

  explicit CudaEngine(const OrtApi& api) : api_(api) {}

  template <typename T, typename C>
  std::string Run(OrtKernelContext* context, const AttentionParams& params,
                  const AttentionArgs<T, C>& args) const {
    return RunAttention(context, params, args, nullptr, kBaked);
  }

  template <typename T>
  std::string Run(OrtKernelContext* context, const RotaryParams& params,
                  const RotaryArgs<T>& args) const {
    return OnStream(context, kBaked, [&](cudaStream_t stream) {
      cuda::CudaRotaryDevice<cuda::Element<T>> device(stream);
      return cuda::RunRotaryOnDevice(params, args, device);
    });
  }

 protected:
  static constexpr const char* kBaked =
      "a CUDA graph would repeat the positions and lengths of the run that it was made of; "
      "register "
      "the library with the session's entry rope.device_inputs, or turn off enable_cuda_graph";

  // Inputs that say which keys are seen.
  static bool IsNumbers(size_t input) {
    return input == spec::kPositionIds || input == spec::kAttentionMask ||
           input == spec::kCacheLength || input == spec::kDocumentIds;
  }
  // Inputs that the host reads in any case.
  static bool IsRead(size_t input) {
    return input == spec::kSinkLogits || input == spec::kTotalLength;
  }

  // Where `refusal` is not null, it says why the run must not go into a CUDA graph.
  template <typename T, typename C>
  std::string RunAttention(OrtKernelContext* context, const AttentionParams& params,
                           const AttentionArgs<T, C>& args, const cuda::DeviceNumbers* numbers,
                           const char* refusal) const {
    const int64_t channels = std::max(args.head_size, args.v_head_size);
    if (channels > cuda::kMostChannels) {
      return "heads have " + std::to_string(channels) +
             " channels, the CUDA kernels take at most " + std::to_string(cuda::kMostChannels) +
             "; run this model on the CPU";
    }
    if (args.length >= cuda::kMostRows / params.group()) {
      return "a text has " + std::to_string(args.length) +
             " new tokens, of which the CUDA kernels take " + "fewer than " +
             std::to_string(cuda::kMostRows / params.group()) +
             " in one call; give them in several";
    }
    return OnStream(context, refusal, [&](cudaStream_t stream) {
      cuda::CudaDevice<cuda::Element<T>> device(stream);
      return cuda::RunOnDevice(params, args, device, numbers);
    });
  }

 private:
  // Runs body(stream), which is false where the device gave no memory.
  template <typename Body>
  std::string OnStream(OrtKernelContext* context, const char* refusal, const Body& body) const {
    void* stream = nullptr;
    Check(api_, api_.KernelContext_GetGPUComputeStream(context, &stream),
          "KernelContext_GetGPUComputeStream");
    const auto cuda_stream = static_cast<cudaStream_t>(stream);
    try {
      const bool captured = cuda::IsCaptured(cuda_stream);
      if (captured && refusal != nullptr) return refusal;
      const cuda::OnDevice current(cuda::DeviceOf(cuda_stream, captured));
      return body(cuda_stream) ? "" : "the GPU is out of memory";
    } catch (const cuda::CudaError& error) {
      return std::string("CUDA: ") + error.what();
    }
  }

  const OrtApi& api_;
};

// The same with lengths, masks, positions and document ids on the device: no launch follows from
// them, so that a step can be captured into a CUDA graph.
class CudaDeviceEngine : public CudaEngine {
 public:
  static constexpr Numbers kNumbers = Numbers::kOnDevice;
  static OrtMemType MemoryOf(size_t input) {
    return IsRead(input) ? OrtMemTypeCPUInput : OrtMemTypeDefault;
  }

  using CudaEngine::CudaEngine;
  using CudaEngine::Run;

  template <typename T, typename C>
  std::string Run(OrtKernelContext* context, const AttentionParams& params,
                  const FrequencyRule& rule, bool chosen, const AttentionArgs<T, C>& args) const {
    if (const std::string fault = faults_.Take(); !fault.empty()) return fault;
    const cuda::DeviceNumbers numbers{rule, faults_.device()};
    return RunAttention(context, params, args, &numbers,
                        chosen ? "a CUDA graph would repeat the frequencies that total_length asks "
                                 "for; leave total_length out, or turn off enable_cuda_graph"
                               : nullptr);
  }

 private:
  cuda::Faults faults_;
};

}  // namespace rope

#endif  // ROPE_CUDA_CUDA_ENGINE_H_
