#include "ort_session.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "attention.h"

namespace rope::test {
namespace {

const OrtApi* g_ort = nullptr;
const char* g_version = "";
OrtEnv* g_env = nullptr;
OrtMemoryInfo* g_memory = nullptr;

std::string Text(OrtStatusPtr status) {
  if (status == nullptr) return {};
  std::string text = Ort().GetErrorMessage(status);
  Ort().ReleaseStatus(status);
  return text.empty() ? "?" : text;
}

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
      g_memory, value.bytes.data(), (ints ? value.ints.size() : value.floats.size()) * size,
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

bool OpenRuntime(const char* path) {
  void* library = dlopen(path, RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "cannot open ONNX Runtime: %s\n", dlerror());
    return false;
  }
  using GetBase = const OrtApiBase* (*)();
  const auto get_base = reinterpret_cast<GetBase>(dlsym(library, "OrtGetApiBase"));
  if (get_base == nullptr) return false;
  g_version = get_base()->GetVersionString();
  g_ort = get_base()->GetApi(18);
  if (g_ort == nullptr) {
    std::fprintf(stderr, "ONNX Runtime %s is older than 1.18\n", g_version);
    return false;
  }
  const std::string error =
      Text(g_ort->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "rope", &g_env)) +
      Text(g_ort->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &g_memory));
  if (!error.empty()) std::fprintf(stderr, "%s\n", error.c_str());
  return error.empty();
}

const OrtApi& Ort() { return *g_ort; }
const char* RuntimeVersion() { return g_version; }

Session::Session(const std::string& model, const std::string& library, int threads) {
  OrtSessionOptions* options = nullptr;
  error_ = Text(Ort().CreateSessionOptions(&options));
  if (!error_.empty()) return;
  error_ = Text(Ort().SetIntraOpNumThreads(options, threads));
  if (error_.empty()) error_ = Text(Ort().RegisterCustomOpsLibrary_V2(options, library.c_str()));
  if (error_.empty()) {
    error_ =
        Text(Ort().CreateSessionFromArray(g_env, model.data(), model.size(), options, &session_));
  }
  Ort().ReleaseSessionOptions(options);
}

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
