// Tensors that stay on a device, for hosts whose binding of ONNX Runtime can only
// make tensors in the CPU's memory.
#ifndef ROPE_DEVICE_TENSOR_H_
#define ROPE_DEVICE_TENSOR_H_

#include <cstddef>
#include <string>

namespace rope {

// How memory of one kind is had.
struct DeviceMemory {
  const char* name;  // as ONNX Runtime calls it: Cpu, Cuda
  // Zeroed memory; throws std::exception with a sentence.
  void* (*allocate)(int device, size_t bytes);
  void (*free)(int device, void* memory);
};

// The kinds that the library which this is linked into knows; null for others.
const DeviceMemory* FindDeviceMemory(const std::string& name);

extern const DeviceMemory kCpuMemory;

}  // namespace rope

#endif  // ROPE_DEVICE_TENSOR_H_
