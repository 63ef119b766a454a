// librope_ops holds what the CPU needs alone; librope_ops_cuda has its own list.
#include "device_tensor.h"
#include "rotary_attention.h"

namespace rope {

std::vector<OrtCustomOp> LibraryOps(bool infer_shapes, Numbers) { return CpuOps(infer_shapes); }

const DeviceMemory* FindDeviceMemory(const std::string& name) {
  return name == kCpuMemory.name ? &kCpuMemory : nullptr;
}

}  // namespace rope
