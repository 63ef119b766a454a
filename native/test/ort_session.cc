#include "ort_session.h"

#include <algorithm>
#include <cstring>

#include "attention.h"

namespace rope::test {
namespace {

template <typename T, typename From>
void Encode(const std::vector<From>& from, std::vector<char>& bytes) {
  bytes.resize(std::max<size_t>(1, from.size() * sizeof(T)));
  for (size_t i = 0; i < from.size(); ++i) {
    const T x = hwy::ConvertScalarTo<T>(from[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &x, sizeof(T));
  }
}

template <typename T>
void Decode(const void* data, size_t count, std::vector<float>& to) {
  const T* from = static_cast<const T*>(data);
  to.clear();
  for (size_t i = 0; i < count; ++i) to.push_back(hwy::ConvertScalarTo<float>(from[i]));
}

OrtValue* MakeTensor(Value& value, std::string& error) {
  const bool ints = value.floats.empty() && !value.ints.empty();
  auto type = static_cast<ONNXTensorElementDataType>(value.type);
  if (value.type == 0) {
    type = ints ? ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 : ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  }
  size_t size = 2;
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64) {
    Encode<int64_t>(value.ints, value.bytes), size = 8;
  } else if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32) {
    Encode<int32_t>(value.ints, value.bytes), size = 4;
  } else if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) {
    Encode<float>(value.floats, value.bytes), size = 4;
  } else if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16) {
    Encode<Float16>(value.floats, value.bytes);
  } else {
    Encode<BFloat16>(value.floats, value.bytes);
  }
  OrtValue* tensor = nullptr;
  error = Text(Ort().CreateTensorWithDataAsOrtValue(
      CpuMemory(), value.bytes.data(), (ints ? value.ints.size() : value.floats.size()) * size,
      value.shape.data(), value.shape.size(), type, &tensor));
  return tensor;
}

// Copies what the runtime made.
std::string ReadTensor(OrtValue* tensor, Value& value) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  std::string error = Text(Ort().GetTensorTypeAndShape(tensor, &info));
  if (!error.empty()) return error;
  size_t rank = 0;
  size_t count = 0;
  error = Text(Ort().GetDimensionsCount(info, &rank));
  value.shape.resize(rank);
  if (error.empty()) error = Text(Ort().GetDimensions(info, value.shape.data(), rank));
  if (error.empty()) error = Text(Ort().GetTensorShapeElementCount(info, &count));
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  if (error.empty()) error = Text(Ort().GetTensorElementType(info, &type));
  Ort().ReleaseTensorTypeAndShapeInfo(info);
  void* data = nullptr;
  if (error.empty()) error = Text(Ort().GetTensorMutableData(tensor, &data));
  if (!error.empty()) return error;
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16) {
    Decode<Float16>(data, count, value.floats);
  } else if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16) {
    Decode<BFloat16>(data, count, value.floats);
  } else {
    Decode<float>(data, count, value.floats);
  }
  return error;
}

}  // namespace

Session::Session(const std::string& model, const std::string& library, int threads)
    : error_(CreateSession(model, library, threads, &session_)) {}

Session::~Session() { Ort().ReleaseSession(session_); }

std::string Session::Run(std::vector<Value>& inputs, std::vector<Value>& outputs) const {
  std::vector<const char*> input_names, output_names;
  std::vector<OrtValue*> input_values, output_values;
  std::string error;
  for (Value& v : inputs) {
    if (error.empty()) input_values.push_back(MakeTensor(v, error));
    input_names.push_back(v.name.c_str());
  }
  std::vector<bool> ready;
  for (Value& v : outputs) {
    output_names.push_back(v.name.c_str());
    ready.push_back(!v.shape.empty());
    output_values.push_back(ready.back() && error.empty() ? MakeTensor(v, error) : nullptr);
    for (size_t i = 0; i < input_values.size() && !v.buffer_of.empty(); ++i) {
      if (v.buffer_of == input_names[i]) output_values.back() = input_values[i];
    }
  }
  if (error.empty()) {
    error = Text(Ort().Run(session_, nullptr, input_names.data(), input_values.data(),
                           input_values.size(), output_names.data(), output_names.size(),
                           output_values.data()));
  }
  for (size_t i = 0; i < outputs.size() && error.empty(); ++i) {
    if (!ready[i]) error = ReadTensor(output_values[i], outputs[i]);
  }
  for (OrtValue* v : input_values) Ort().ReleaseValue(v);
  for (size_t i = 0; i < outputs.size() && i < output_values.size(); ++i) {
    if (outputs[i].buffer_of.empty()) Ort().ReleaseValue(output_values[i]);
  }
  return error;
}

}  // namespace rope::test
