#include "case.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace rope::hostile {
namespace {

template <typename N>
N Read(const uint8_t* memory, size_t index) {
  N n;
  std::memcpy(&n, memory + index * sizeof(N), sizeof(N));
  return n;
}

double OfFloat16(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double size =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) size = fraction == 0 ? INFINITY : NAN;
  return bits >> 15 != 0 ? -size : size;
}

double OfBFloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float f;
  std::memcpy(&f, &wide, sizeof(f));
  return static_cast<double>(f);
}

template <typename N>
std::string Listed(const std::vector<N>& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size() && i < 12; ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(values[i]);
  }
  return text + (values.size() > 12 ? ", …]" : "]");
}

std::string ValueText(const Attribute& a) {
  switch (a.kind) {
    case Attribute::kOfInt:
      return std::to_string(a.i);
    case Attribute::kOfFloat:
      return std::to_string(a.f);
    case Attribute::kOfString:
      return "'" + a.s + "'";
    case Attribute::kOfInts:
      return Listed(a.ints);
    default:
      return Listed(a.floats);
  }
}

}  // namespace

size_t SizeOf(int element) {
  switch (element) {
    case kInt64:
      return 8;
    case kInt8:
      return 1;
    case kFloat16:
    case kBFloat16:
      return 2;
    default:
      return 4;
  }
}

double NumberAt(int element, const uint8_t* memory, size_t index) {
  switch (element) {
    case kFloat:
      return static_cast<double>(Read<float>(memory, index));
    case kFloat16:
      return OfFloat16(Read<uint16_t>(memory, index));
    case kBFloat16:
      return OfBFloat16(Read<uint16_t>(memory, index));
    case kInt8:
      return static_cast<double>(Read<int8_t>(memory, index));
    case kInt32:
      return static_cast<double>(Read<int32_t>(memory, index));
    default:
      return static_cast<double>(Read<int64_t>(memory, index));
  }
}

int64_t CountOf(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t dim : shape) {
    if (dim == 0) return 0;
  }
  for (const int64_t dim : shape) {
    if (count > std::numeric_limits<int64_t>::max() / dim) return -1;
    count *= dim;
  }
  return count;
}

std::string Describe(const Case& c) {
  std::string text = c.op + ", elements " + std::to_string(c.element) + ", caches " +
                     std::to_string(c.cache) + (c.tame ? ", tame" : "") + "\n";
  for (const Attribute& a : c.attributes) text += "  " + a.name + " = " + ValueText(a) + "\n";
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const Tensor& t = c.inputs[i];
    if (!t.present) continue;
    text += "  input " + std::to_string(i) + " " + Listed(t.shape);
    if (t.element == kInt64 || t.element == kInt32) {
      std::vector<int64_t> values;
      for (size_t j = 0; j < t.bytes.size() / SizeOf(t.element) && j < 13; ++j) {
        values.push_back(t.element == kInt64 ? Read<int64_t>(t.bytes.data(), j)
                                             : Read<int32_t>(t.bytes.data(), j));
      }
      text += " = " + Listed(values);
    }
    text += "\n";
  }
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    if (!c.outputs[i].wanted) continue;
    text += "  output " + std::to_string(i);
    if (c.outputs[i].same_as >= 0) text += " as input " + std::to_string(c.outputs[i].same_as);
    text += "\n";
  }
  return text;
}

}  // namespace rope::hostile
