#include "beside_runtime.h"

#include <unistd.h>

#include <algorithm>
#include <memory>

#include "model_bytes.h"
#include "runtime.h"
#include "stand_in_shapes.h"

namespace rope::hostile {
namespace {

using test::Ort;

struct Release {
  void operator()(OrtValue* value) const { Ort().ReleaseValue(value); }
  void operator()(OrtSession* session) const { Ort().ReleaseSession(session); }
  void operator()(OrtTensorTypeAndShapeInfo* info) const {
    Ort().ReleaseTensorTypeAndShapeInfo(info);
  }
};
using ValuePointer = std::unique_ptr<OrtValue, Release>;

test::Message Written(const Attribute& a) {
  switch (a.kind) {
    case Attribute::kOfInt:
      return test::IntAttribute(a.name, a.i);
    case Attribute::kOfFloat:
      return test::FloatAttribute(a.name, a.f);
    case Attribute::kOfString:
      return test::StringAttribute(a.name, a.s);
    case Attribute::kOfInts:
      return test::IntsAttribute(a.name, a.ints);
    default:
      return test::FloatsAttribute(a.name, a.floats);
  }
}

std::string InputName(size_t i) { return "input" + std::to_string(i); }
std::string OutputName(size_t i) { return "output" + std::to_string(i); }

test::NodeModel ModelOf(const Case& c) {
  test::NodeModel model;
  model.node_name = "hostile";
  model.op = c.op;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const Tensor& t = c.inputs[i];
    model.inputs.push_back(
        {t.present ? InputName(i) : "", t.element, static_cast<int>(t.shape.size())});
  }
  const auto rank = [&](size_t i) {
    const bool as_query = i == 0 || c.op == "Rotary";
    return static_cast<int>(as_query ? c.inputs[0].shape.size() : i == 3 ? 3 : 4);
  };
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    model.outputs.push_back(
        {c.outputs[i].wanted ? OutputName(i) : "", OutputElement(c, i), rank(i)});
  }
  for (const Attribute& a : c.attributes) model.attributes.push_back(Written(a));
  return model;
}

// Whether an output is what the stand-in has of it.
std::string CompareOutput(OrtValue* value, const Tensor& wanted) {
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  std::string error = test::Text(Ort().GetTensorTypeAndShape(value, &raw));
  const std::unique_ptr<OrtTensorTypeAndShapeInfo, Release> info(raw);
  size_t rank = 0;
  if (error.empty()) error = test::Text(Ort().GetDimensionsCount(raw, &rank));
  std::vector<int64_t> shape(rank);
  if (error.empty()) error = test::Text(Ort().GetDimensions(raw, shape.data(), rank));
  void* data = nullptr;
  if (error.empty()) error = test::Text(Ort().GetTensorMutableData(value, &data));
  if (!error.empty()) return error;
  if (shape != wanted.shape) return "another shape";
  const auto* bytes = static_cast<const uint8_t*>(data);
  return std::equal(wanted.bytes.begin(), wanted.bytes.end(), bytes) ? "" : "other bytes";
}

std::string RunIn(OrtSession* session, const Case& c, const Outcome& stand_in, std::string& error) {
  std::vector<ValuePointer> inputs, outputs;
  std::vector<std::vector<uint8_t>> memory;
  std::vector<std::string> input_names, output_names;
  std::vector<size_t> of;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const Tensor& t = c.inputs[i];
    if (!t.present) continue;
    memory.push_back(t.bytes);
    memory.back().resize(std::max<size_t>(8, t.bytes.size()));
    OrtValue* value = nullptr;
    error = test::Text(Ort().CreateTensorWithDataAsOrtValue(
        test::CpuMemory(), memory.back().data(), t.bytes.size(), t.shape.data(), t.shape.size(),
        static_cast<ONNXTensorElementDataType>(t.element), &value));
    if (!error.empty()) return {};
    inputs.emplace_back(value);
    input_names.push_back(InputName(i));
  }
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    if (c.outputs[i].wanted) output_names.push_back(OutputName(i)), of.push_back(i);
  }
  std::vector<const char*> names, wanted;
  std::vector<const OrtValue*> given;
  for (const auto& name : input_names) names.push_back(name.c_str());
  for (const auto& name : output_names) wanted.push_back(name.c_str());
  for (const auto& value : inputs) given.push_back(value.get());
  std::vector<OrtValue*> made(wanted.size(), nullptr);
  error = test::Text(Ort().Run(session, nullptr, names.data(), given.data(), given.size(),
                               wanted.data(), wanted.size(), made.data()));
  for (OrtValue* value : made) outputs.emplace_back(value);
  for (size_t i = 0; i < of.size() && error.empty() && stand_in.error.empty(); ++i) {
    const std::string wrong = CompareOutput(made[i], stand_in.outputs[of[i]]);
    if (!wrong.empty()) return "ONNX Runtime's output " + std::to_string(of[i]) + " has " + wrong;
  }
  return {};
}

}  // namespace

LibraryCopy::LibraryCopy(const std::string& library)
    : path_(std::filesystem::temp_directory_path() /
            ("hostile_test_" + std::to_string(getpid()) + ".so")) {
  std::filesystem::copy_file(library, path_, std::filesystem::copy_options::overwrite_existing);
}

LibraryCopy::~LibraryCopy() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

std::string BesideRuntime(const Case& c, const Outcome& stand_in, const std::string& library,
                          bool& alone) {
  OrtSession* made = nullptr;
  std::string error = test::CreateSession(ModelOf(c).Encode(), library, 2, &made);
  const std::unique_ptr<OrtSession, Release> session(made);
  std::string wrong;
  if (error.empty()) wrong = RunIn(made, c, stand_in, error);
  if (!wrong.empty()) return wrong;
  alone = !error.empty() && stand_in.error.empty();
  if (error.empty() && !stand_in.error.empty()) {
    return "ONNX Runtime runs what the stand-in does not: " + stand_in.error;
  }
  if (alone && c.distortions == 0) return "ONNX Runtime does not run a valid case: " + error;
  return {};
}

}  // namespace rope::hostile
