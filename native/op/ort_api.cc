#include "ort_api.h"

#include <algorithm>

namespace rope {

std::string TextOf(const OrtApi& api, OrtStatusPtr status) {
  if (status == nullptr) return {};
  std::string text = api.GetErrorMessage(status);
  api.ReleaseStatus(status);
  if (text.empty()) text = "unknown error";
  return text;
}

void Check(const OrtApi& api, OrtStatusPtr status, const char* what) {
  const std::string text = TextOf(api, status);
  if (!text.empty()) throw Failure(std::string(what) + ": " + text, ORT_FAIL);
}

bool Worked(const OrtApi& api, OrtStatusPtr status) {
  if (status == nullptr) return true;
  api.ReleaseStatus(status);
  return false;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

bool IsCountable(const std::vector<int64_t>& shape) {
  if (std::find(shape.begin(), shape.end(), 0) == shape.end()) return true;
  int64_t product = 1;
  for (const int64_t dim : shape) {
    if (dim == 0) continue;
    if (dim > INT32_MAX / product) return false;
    product *= dim;
  }
  return true;
}

Tensor InputOf(const OrtApi& api, OrtKernelContext* context, size_t index, size_t input_count) {
  Tensor tensor;
  if (index >= input_count) return tensor;
  const OrtValue* value = nullptr;
  Check(api, api.KernelContext_GetInput(context, index, &value), "KernelContext_GetInput");
  if (value == nullptr) return tensor;
  tensor.present = true;

  OrtTensorTypeAndShapeInfo* info = nullptr;
  Check(api, api.GetTensorTypeAndShape(value, &info), "GetTensorTypeAndShape");
  size_t rank = 0;
  OrtStatusPtr status = api.GetDimensionsCount(info, &rank);
  if (status == nullptr) {
    tensor.shape.resize(rank);
    status = api.GetDimensions(info, tensor.shape.data(), rank);
  }
  api.ReleaseTensorTypeAndShapeInfo(info);
  Check(api, status, "GetDimensions");

  void* data = nullptr;
  // The API has no read-only form; the data is not written.
  Check(api, api.GetTensorMutableData(const_cast<OrtValue*>(value), &data), "GetTensorMutableData");
  tensor.data = data;
  return tensor;
}

void* OutputOf(const OrtApi& api, OrtKernelContext* context, size_t index, size_t output_count,
               const std::vector<int64_t>& shape, const std::function<std::string()>& describe) {
  if (index >= output_count) return nullptr;
  OrtValue* value = nullptr;
  const std::string text =
      TextOf(api, api.KernelContext_GetOutput(context, index, shape.data(), shape.size(), &value));
  if (!text.empty()) {
    throw Failure(describe() + " of shape " + ShapeText(shape) + " cannot be made: " + text);
  }
  if (value == nullptr) return nullptr;
  void* data = nullptr;
  Check(api, api.GetTensorMutableData(value, &data), "GetTensorMutableData");
  return data;
}

}  // namespace rope
