#include "device_tensor.h"

#include <cstdio>
#include <cstdlib>
#include <new>

#include "export.h"
#include "ort_api.h"
#include "rotary_attention.h"

namespace rope {
namespace {

// A tensor and the memory below it.
struct DeviceTensor {
  const DeviceMemory& memory;
  int device;
  void* data = nullptr;
  OrtValue* value = nullptr;

  DeviceTensor(const DeviceMemory& kind, int id) : memory(kind), device(id) {}
  ~DeviceTensor() {
    if (value != nullptr) Api().ReleaseValue(value);
    if (data != nullptr) memory.free(device, data);
  }
  DeviceTensor(const DeviceTensor&) = delete;
  DeviceTensor& operator=(const DeviceTensor&) = delete;
};

size_t SizeOf(int element) {
  switch (element) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
      return sizeof(float);
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16:
      return 2;
    default:
      throw Failure("a device tensor has elements of float32, float16 or bfloat16, not of type " +
                    std::to_string(element));
  }
}

size_t BytesOf(int element, const int64_t* shape, size_t rank) {
  size_t bytes = SizeOf(element);
  for (size_t d = 0; d < rank; ++d) {
    if (shape[d] < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(shape[d]), &bytes)) {
      throw Failure("a device tensor cannot have shape " +
                    ShapeText(std::vector<int64_t>(shape, shape + rank)));
    }
  }
  return bytes;
}

DeviceTensor* NewTensor(const char* name, int device, int element, const int64_t* shape,
                        size_t rank) {
  if (!HasApi()) {
    throw Failure("register the op library with a session's options before making tensors");
  }
  const DeviceMemory* memory = FindDeviceMemory(name);
  if (memory == nullptr) {
    throw Failure(std::string("this op library has no memory called '") + name +
                  "'; librope_ops_cuda has Cpu and Cuda, librope_ops has Cpu");
  }
  const size_t bytes = BytesOf(element, shape, rank);
  auto* tensor = new DeviceTensor(*memory, device);
  try {
    tensor->data = memory->allocate(device, bytes == 0 ? 1 : bytes);
    OrtMemoryInfo* info = nullptr;
    Check(
        Api(),
        Api().CreateMemoryInfo(memory->name, OrtDeviceAllocator, device, OrtMemTypeDefault, &info),
        "CreateMemoryInfo");
    OrtStatusPtr status = Api().CreateTensorWithDataAsOrtValue(
        info, tensor->data, bytes, shape, rank, static_cast<ONNXTensorElementDataType>(element),
        &tensor->value);
    Api().ReleaseMemoryInfo(info);
    Check(Api(), status, "CreateTensorWithDataAsOrtValue");
  } catch (...) {
    delete tensor;
    throw;
  }
  return tensor;
}

}  // namespace

const DeviceMemory kCpuMemory = {"Cpu",
                                 [](int, size_t bytes) {
                                   void* memory = std::calloc(1, bytes);
                                   if (memory == nullptr) throw std::bad_alloc();
                                   return memory;
                                 },
                                 [](int, void* memory) { std::free(memory); }};

}  // namespace rope

// A tensor of zeros in the named memory, or null and a sentence.
ROPE_EXPORT void* RopeNewTensor(const char* memory, int device, int element, const int64_t* shape,
                                size_t rank, char* error, size_t error_size) {
  try {
    return rope::NewTensor(memory, device, element, shape, rank);
  } catch (const std::bad_alloc&) {
    std::snprintf(error, error_size, "out of memory");
  } catch (const std::exception& failure) {
    std::snprintf(error, error_size, "%s", failure.what());
  }
  return nullptr;
}

// The tensor as ONNX Runtime's OrtValue, which stays the tensor's.
ROPE_EXPORT void* RopeTensorValue(void* tensor) {
  return static_cast<rope::DeviceTensor*>(tensor)->value;
}

ROPE_EXPORT void RopeFreeTensor(void* tensor) { delete static_cast<rope::DeviceTensor*>(tensor); }
