#include "rotary_attention.h"

#include "ort_host.h"
#include "rotary_attention_op.h"

namespace rope {
namespace {

const OrtApi* g_api = nullptr;

// Runs on the CPU, in ONNX Runtime's threads and memory.
class CpuEngine {
 public:
  static constexpr const char* kProvider = nullptr;
  static OrtMemType MemoryOf(size_t /*input*/) { return OrtMemTypeDefault; }

  explicit CpuEngine(const OrtApi& api) : api_(api) {
    Check(api, api.CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory_),
          "CreateCpuMemoryInfo");
  }
  ~CpuEngine() { api_.ReleaseMemoryInfo(memory_); }
  CpuEngine(const CpuEngine&) = delete;
  CpuEngine& operator=(const CpuEngine&) = delete;

  template <typename T>
  std::string Run(OrtKernelContext* context, const AttentionParams& params,
                  const AttentionArgs<T>& args) const {
    OrtHost host(api_, context, memory_);
    return RunAttention(params, args, host) ? "" : "out of memory";
  }

 private:
  const OrtApi& api_;
  OrtMemoryInfo* memory_ = nullptr;
};

}  // namespace

void SetApi(const OrtApi* api) { g_api = api; }
const OrtApi& Api() { return *g_api; }
bool HasApi() { return g_api != nullptr; }

std::vector<OrtCustomOp> CpuOps(bool infer_shapes) {
  return {MakeOp<float, CpuEngine>(infer_shapes), MakeOp<Float16, CpuEngine>(infer_shapes),
          MakeOp<BFloat16, CpuEngine>(infer_shapes)};
}

}  // namespace rope
