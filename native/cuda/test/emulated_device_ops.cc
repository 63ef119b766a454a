// The CPU's ops computed by emulated CUDA kernels that find lengths, masks, positions and document
// ids on the device: the tests of the op inside ONNX Runtime then run on these. What the device
// finds wrong is told at once.
#include "all_ops.h"
#include "device_tensor.h"
#include "emulation.h"
#include "faults.h"
#include "ort_host.h"

namespace rope {
namespace {

class EmulatedDeviceEngine {
 public:
  static constexpr const char* kProvider = nullptr;
  static constexpr Numbers kNumbers = Numbers::kOnDevice;
  static OrtMemType MemoryOf(size_t /*input*/) { return OrtMemTypeDefault; }

  explicit EmulatedDeviceEngine(const OrtApi& api) : api_(api) {
    Check(api, api.CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory_),
          "CreateCpuMemoryInfo");
  }
  ~EmulatedDeviceEngine() { api_.ReleaseMemoryInfo(memory_); }
  EmulatedDeviceEngine(const EmulatedDeviceEngine&) = delete;
  EmulatedDeviceEngine& operator=(const EmulatedDeviceEngine&) = delete;

  template <typename T, typename C>
  std::string Run(OrtKernelContext* context, const AttentionParams& params,
                  const FrequencyRule& rule, bool /*chosen*/,
                  const AttentionArgs<T, C>& args) const {
    OrtHost host(api_, context, memory_);
    cuda::test::EmulatedDevice<cuda::Element<T>> device(host, 0);
    uint8_t faults[cuda::kFaults] = {};
    const cuda::DeviceNumbers numbers{rule, faults};
    if (!cuda::RunOnDevice(params, args, device, &numbers)) return "out of memory";
    for (int i = 0; i < cuda::kFaults; ++i) {
      if (faults[i] != 0) return cuda::TextOf(static_cast<cuda::Fault>(i));
    }
    return "";
  }

 private:
  const OrtApi& api_;
  OrtMemoryInfo* memory_ = nullptr;
};

}  // namespace

std::vector<OrtCustomOp> LibraryOps(bool infer_shapes, Numbers) {
  return MakeAllAttentionOps<EmulatedDeviceEngine>(infer_shapes);
}

const DeviceMemory* FindDeviceMemory(const std::string& name) {
  return name == kCpuMemory.name ? &kCpuMemory : nullptr;
}

}  // namespace rope
