// One call of an op as plain values: what a node says, and the tensors that it is given.
#ifndef ROPE_HOSTILE_CASE_H_
#define ROPE_HOSTILE_CASE_H_

#include <onnxruntime_c_api.h>

#include <cstdint>
#include <string>
#include <vector>

namespace rope::hostile {

// Element types, as ONNX numbers them.
enum Element : int {
  kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
  kInt8 = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,
  kInt32 = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
  kInt64 = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
  kFloat16 = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
  kBFloat16 = ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
};

size_t SizeOf(int element);

// The number at an index of a tensor's memory.
double NumberAt(int element, const uint8_t* memory, size_t index);

struct Attribute {
  enum Kind { kOfInt, kOfFloat, kOfString, kOfInts, kOfFloats };
  std::string name;
  Kind kind = kOfInt;
  int64_t i = 0;
  float f = 0;
  std::string s;
  std::vector<int64_t> ints;
  std::vector<float> floats;
};

struct Tensor {
  int element = kFloat;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
  bool present = false;
  size_t front = 0;  // elements of the buffer in front of the tensor's
};

// The number of elements of a shape; -1 where that is no int64_t.
int64_t CountOf(const std::vector<int64_t>& shape);

struct Output {
  bool wanted = false;
  int same_as = -1;                 // n >= 0: its memory is that of input n, where that fits
  std::vector<int64_t> promised{};  // the shape that the documentation promises
};

struct Case {
  std::string op;
  int element = kFloat;  // T
  int cache = kFloat;    // C
  std::vector<Attribute> attributes;
  std::vector<Tensor> inputs;  // in the op's order
  std::vector<Output> outputs;
  // Whether all numbers are finite and small, so that all results have to be finite.
  bool tame = true;
  int distortions = 0;       // changes that may be refused
  int64_t allocations = -1;  // n >= 0: the host gives memory n times

  const Attribute* Find(const std::string& name) const {
    for (const Attribute& a : attributes) {
      if (a.name == name) return &a;
    }
    return nullptr;
  }
  int64_t Int(const std::string& name, int64_t fallback) const {
    const Attribute* a = Find(name);
    return a == nullptr ? fallback : a->i;
  }
  void Set(const std::string& name, int64_t value) {
    Attribute& a = New(name, Attribute::kOfInt);
    a.i = value;
  }
  void Set(const std::string& name, float value) {
    Attribute& a = New(name, Attribute::kOfFloat);
    a.f = value;
  }
  void Set(const std::string& name, const char* value) {
    Attribute& a = New(name, Attribute::kOfString);
    a.s = value;
  }
  void Set(const std::string& name, std::vector<int64_t> values) {
    Attribute& a = New(name, Attribute::kOfInts);
    a.ints = std::move(values);
  }
  void Set(const std::string& name, std::vector<float> values) {
    Attribute& a = New(name, Attribute::kOfFloats);
    a.floats = std::move(values);
  }

 private:
  // The attribute of a name without a value.
  Attribute& New(const std::string& name, Attribute::Kind kind) {
    for (Attribute& a : attributes) {
      if (a.name == name) return a = Attribute{name, kind, 0, 0, {}, {}, {}};
    }
    attributes.push_back({name, kind, 0, 0, {}, {}, {}});
    return attributes.back();
  }
};

// The case in words, for a report.
std::string Describe(const Case& c);

}  // namespace rope::hostile

#endif  // ROPE_HOSTILE_CASE_H_
