#include "rotary_attention.h"

#include "all_ops.h"
#include "ort_host.h"

namespace rope {
namespace {

const OrtApi* g_api = nullptr;

// Runs on the CPU, in ONNX Runtime's threads and memory.
class CpuEngine {
 public:
  static constexpr const char* kProvider = nullptr;
  static constexpr Numbers kNumbers = Numbers::kOnHost;
  static OrtMemType MemoryOf(size_t /*input*/) { return OrtMemTypeDefault; }

  explicit CpuEngine(const OrtApi& api) : api_(api) {
    Check(api, api.CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory_),
          "CreateCpuMemoryInfo");
  }
  ~CpuEngine() { api_.ReleaseMemoryInfo(memory_); }
  CpuEngine(const CpuEngine&) = delete;
  CpuEngine& operator=(const CpuEngine&) = delete;

  template <typename T, typename C>
  std::string Run(OrtKernelContext* context, const AttentionParams& params,
                  const AttentionArgs<T, C>& args) const {
    OrtHost host(api_, context, memory_);
    return RunAttention(params, args, host) ? "" : "out of memory";
  }
  template <typename T>
  std::string Run(OrtKernelContext* context, const RotaryParams& params,
                  const RotaryArgs<T>& args) const {
    OrtHost host(api_, context, memory_);
    return RunRotary(params, args, host) ? "" : "out of memory";
  }

 private:
  const OrtApi& api_;
  OrtMemoryInfo* memory_ = nullptr;
};

}  // namespace

void SetApi(const OrtApi* api) { g_api = api; }
const OrtApi& Api() { return *g_api; }
bool HasApi() { return g_api != nullptr; }

std::vector<OrtCustomOp> CpuOps(bool infer_shapes) { return MakeAllOps<CpuEngine>(infer_shapes); }

}  // namespace rope
