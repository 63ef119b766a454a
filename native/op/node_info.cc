#include "node_info.h"

namespace rope {

std::string NodeTitle(const OrtApi& api, const OrtKernelInfo* info, const char* op) {
  size_t size = 0;
  std::string name;
  if (Worked(api, api.KernelInfo_GetNodeName(info, nullptr, &size))) {
    name.resize(size);
    if (!Worked(api, api.KernelInfo_GetNodeName(info, name.data(), &size))) name.clear();
  }
  while (!name.empty() && name.back() == '\0') name.pop_back();
  return Text(op, " node '", name.empty() ? "(unnamed)" : name, "'");
}

// A missing attribute and one of another type give the same error code and a
// text that differs between versions, so the other types are tried.
void NodeInfo::RefuseOtherType(const char* name, const char* wanted) const {
  if (TryInt(name) || TryFloat(name) || TryString(name) || TryInts(name) || TryFloats(name)) {
    RefuseAttribute(name, " must be of type ", wanted);
  }
}

// The runtime gives an attribute of any type as an empty list.
void NodeInfo::RefuseOtherList(const char* name, const char* wanted) const {
  const auto filled = [](const auto& list) { return list && !list->empty(); };
  if (TryInt(name) || TryFloat(name) || TryString(name) || filled(TryInts(name)) ||
      filled(TryFloats(name))) {
    RefuseAttribute(name, " must be of type ", wanted);
  }
}

std::optional<int64_t> NodeInfo::TryInt(const char* name) const {
  int64_t value = 0;
  if (!Worked(api_, api_.KernelInfoGetAttribute_int64(info_, name, &value))) return std::nullopt;
  return value;
}

std::optional<float> NodeInfo::TryFloat(const char* name) const {
  float value = 0;
  if (!Worked(api_, api_.KernelInfoGetAttribute_float(info_, name, &value))) return std::nullopt;
  return value;
}

std::optional<std::string> NodeInfo::TryString(const char* name) const {
  size_t size = 0;
  if (!Worked(api_, api_.KernelInfoGetAttribute_string(info_, name, nullptr, &size))) {
    return std::nullopt;
  }
  std::string value(size, '\0');
  if (!Worked(api_, api_.KernelInfoGetAttribute_string(info_, name, value.data(), &size))) {
    return std::nullopt;
  }
  while (!value.empty() && value.back() == '\0') value.pop_back();
  return value;
}

std::optional<std::vector<int64_t>> NodeInfo::TryInts(const char* name) const {
  size_t size = 0;
  if (!Worked(api_, api_.KernelInfoGetAttributeArray_int64(info_, name, nullptr, &size))) {
    return std::nullopt;
  }
  std::vector<int64_t> values(size);
  if (size > 0 &&
      !Worked(api_, api_.KernelInfoGetAttributeArray_int64(info_, name, values.data(), &size))) {
    return std::nullopt;
  }
  return values;
}

std::optional<std::vector<float>> NodeInfo::TryFloats(const char* name) const {
  size_t size = 0;
  if (!Worked(api_, api_.KernelInfoGetAttributeArray_float(info_, name, nullptr, &size))) {
    return std::nullopt;
  }
  std::vector<float> values(size);
  if (size > 0 &&
      !Worked(api_, api_.KernelInfoGetAttributeArray_float(info_, name, values.data(), &size))) {
    return std::nullopt;
  }
  return values;
}

std::optional<int64_t> NodeInfo::GetInt(const char* name) const {
  auto value = TryInt(name);
  if (!value) RefuseOtherType(name, "int");
  return value;
}

std::optional<float> NodeInfo::GetFloat(const char* name) const {
  auto value = TryFloat(name);
  if (!value) RefuseOtherType(name, "float");
  return value;
}

std::optional<std::string> NodeInfo::GetString(const char* name) const {
  auto value = TryString(name);
  if (!value) RefuseOtherType(name, "string");
  return value;
}

std::optional<std::vector<int64_t>> NodeInfo::GetInts(const char* name) const {
  auto value = TryInts(name);
  if (!value || value->empty()) RefuseOtherList(name, "ints");
  return value;
}

std::optional<std::vector<float>> NodeInfo::GetFloats(const char* name) const {
  auto value = TryFloats(name);
  if (!value || value->empty()) RefuseOtherList(name, "floats");
  return value;
}

// An input or output that a node leaves out has an empty name.
bool NodeInfo::HasInput(size_t index) const {
  size_t count = 0;
  size_t size = 0;
  if (!Worked(api_, api_.KernelInfo_GetInputCount(info_, &count)) || index >= count) return false;
  return Worked(api_, api_.KernelInfo_GetInputName(info_, index, nullptr, &size)) && size > 1;
}

bool NodeInfo::HasOutput(size_t index) const {
  size_t count = 0;
  size_t size = 0;
  if (!Worked(api_, api_.KernelInfo_GetOutputCount(info_, &count)) || index >= count) return false;
  return Worked(api_, api_.KernelInfo_GetOutputName(info_, index, nullptr, &size)) && size > 1;
}

}  // namespace rope
