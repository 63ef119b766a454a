// The ops of librope_ops_cuda: those of the CPU, and the same for the CUDA
// execution provider.
#include <algorithm>

#include "cuda_device.h"
#include "rotary_attention_op.h"
#include "shapes.h"

namespace rope {
namespace {

// What the library says about itself to whoever reads its file (customop.FindCUDALibrary).
[[gnu::used]] constexpr char kCudaMark[] = "rope_ops cuda=1";

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

  template <typename T>
  std::string Run(OrtKernelContext* context, const AttentionParams& params,
                  const AttentionArgs<T>& args) const {
    const int64_t channels = std::max(args.head_size, args.v_head_size);
    if (channels > cuda::kMostChannels) {
      return "heads have " + std::to_string(channels) +
             " channels, the CUDA kernels take at most " + std::to_string(cuda::kMostChannels) +
             "; run this model on the CPU";
    }
    void* stream = nullptr;
    Check(api_, api_.KernelContext_GetGPUComputeStream(context, &stream),
          "KernelContext_GetGPUComputeStream");
    try {
      cuda::CudaDevice<cuda::Element<T>> device(static_cast<cudaStream_t>(stream));
      return cuda::RunOnDevice(params, args, device) ? "" : "the GPU is out of memory";
    } catch (const cuda::CudaError& error) {
      return std::string("CUDA: ") + error.what();
    }
  }

 private:
  const OrtApi& api_;
};

}  // namespace

std::vector<OrtCustomOp> LibraryOps(bool infer_shapes) {
  std::vector<OrtCustomOp> ops = CpuOps(infer_shapes);
  ops.push_back(MakeOp<float, CudaEngine>(infer_shapes));
  ops.push_back(MakeOp<Float16, CudaEngine>(infer_shapes));
  ops.push_back(MakeOp<BFloat16, CudaEngine>(infer_shapes));
  return ops;
}

}  // namespace rope
