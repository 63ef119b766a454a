// A library whose CUDA ops ONNX Runtime takes for the CPU's: on a machine without
// a GPU every run of theirs fails, and how is what status_test looks at.
#include "cuda_engine.h"
#include "device_tensor.h"
#include "rotary_attention_op.h"

namespace rope {
namespace {

class MisplacedEngine : public CudaEngine {
 public:
  static constexpr const char* kProvider = nullptr;
  using CudaEngine::CudaEngine;
};

}  // namespace

std::vector<OrtCustomOp> LibraryOps(bool infer_shapes, Numbers) {
  return MakeAttentionOps<float, float, MisplacedEngine>(infer_shapes);
}

const DeviceMemory* FindDeviceMemory(const std::string&) { return nullptr; }

}  // namespace rope
