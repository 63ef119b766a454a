// Runs of the op on the device of ONNX Runtime's CUDA execution provider.
#ifndef ROPE_CUDA_CUDA_ENGINE_H_
#define ROPE_CUDA_CUDA_ENGINE_H_

#include <algorithm>
#include <string>

#include "cuda_device.h"
#include "ort_api.h"
#include "spec.gen.h"
#include "tile_shapes.h"

namespace rope {

// An engine as rotary_attention_op.h describes them.
class CudaEngine {
 public:
  static constexpr const char* kProvider = "CUDAExecutionProvider";

  // Integers and sinks are few, and are checked on the host.
  static OrtMemType MemoryOf(size_t input) {
    switch (input) {
      case spec::kPositionIds:
      case spec::kAttentionMask:
      case spec::kCacheLength:
      case spec::kDocumentIds:
      case spec::kSinkLogits:
      case spec::kTotalLength:
        return OrtMemTypeCPUInput;
      default:
        return OrtMemTypeDefault;
    }
  }

  explicit CudaEngine(const OrtApi& api) : api_(api) {}

  template <typename T, typename C>
  std::string Run(OrtKernelContext* context, const AttentionParams& params,
                  const AttentionArgs<T, C>& args) const {
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
    return OnStream(context, [&](cudaStream_t stream) {
      cuda::CudaDevice<cuda::Element<T>> device(stream);
      return cuda::RunOnDevice(params, args, device);
    });
  }

  template <typename T>
  std::string Run(OrtKernelContext* context, const RotaryParams& params,
                  const RotaryArgs<T>& args) const {
    return OnStream(context, [&](cudaStream_t stream) {
      cuda::CudaRotaryDevice<cuda::Element<T>> device(stream);
      return cuda::RunRotaryOnDevice(params, args, device);
    });
  }

 private:
  // Runs body(stream), which is false where the device gave no memory.
  template <typename Body>
  std::string OnStream(OrtKernelContext* context, const Body& body) const {
    void* stream = nullptr;
    Check(api_, api_.KernelContext_GetGPUComputeStream(context, &stream),
          "KernelContext_GetGPUComputeStream");
    const auto cuda_stream = static_cast<cudaStream_t>(stream);
    try {
      if (cuda::IsCaptured(cuda_stream)) {
        return "a CUDA graph would repeat the positions and lengths of the run that it was made "
               "of; "
               "turn off enable_cuda_graph";
      }
      const cuda::OnDevice current(cuda::DeviceOf(cuda_stream));
      return body(cuda_stream) ? "" : "the GPU is out of memory";
    } catch (const cuda::CudaError& error) {
      return std::string("CUDA: ") + error.what();
    }
  }

  const OrtApi& api_;
};

}  // namespace rope

#endif  // ROPE_CUDA_CUDA_ENGINE_H_
