#include "attribute_values.h"

#include <cmath>

#include "spec.gen.h"

namespace rope {

void CheckSpecVersion(const NodeInfo& node) {
  const auto version = node.GetInt(spec::kAttrSpecVersion);
  if (!version) node.RefuseAttribute(spec::kAttrSpecVersion, " is missing");
  if (*version > spec::kSpecVersion) {
    throw Failure(Text(node.title(), " was written for spec version ", *version,
                       "; this library knows ", spec::kSpecVersion, ": update librope_ops"));
  }
  if (*version < 1) node.Refuse("spec version ", *version, " does not exist; the first is 1");
}

int64_t RequiredHeads(const NodeInfo& node, const char* name) {
  const auto value = node.GetInt(name);
  if (!value) node.RefuseAttribute(name, " is missing");
  if (*value < 1) {
    node.RefuseAttribute(name, " is ", *value, "; it must be at least 1");
  }
  return *value;
}

float FiniteFloat(const NodeInfo& node, const char* name, float fallback) {
  const float value = node.GetFloat(name).value_or(fallback);
  if (!std::isfinite(value)) {
    node.RefuseAttribute(name, " is ", value, "; it must be a finite number");
  }
  return value;
}

std::vector<float> FiniteFloats(const NodeInfo& node, const char* name) {
  auto values = node.GetFloats(name).value_or(std::vector<float>{});
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      node.RefuseAttribute(name, " has ", values[i], " at place ", i,
                           "; every value must be a finite number");
    }
  }
  return values;
}

bool Flag(const NodeInfo& node, const char* name, int64_t fallback) {
  const int64_t value = node.GetInt(name).value_or(fallback);
  if (value != 0 && value != 1) {
    node.RefuseAttribute(name, " is ", value, "; it must be 0 or 1");
  }
  return value == 1;
}

int64_t NonNegative(const NodeInfo& node, const char* name, int64_t fallback) {
  const int64_t value = node.GetInt(name).value_or(fallback);
  if (value < 0) {
    node.RefuseAttribute(name, " is ", value, "; it must not be negative");
  }
  return value;
}

void CheckAxes(const NodeInfo& node, const std::vector<int64_t>& axes) {
  for (const int64_t axis : axes) {
    if (axis >= 0 && axis < INT32_MAX) continue;
    node.RefuseAttribute(spec::kAttrPositionAxes, " holds ", axis,
                         axis < 0 ? "; it must not be negative"
                                  : "; it must be the number of an axis of position_ids");
  }
}

}  // namespace rope
