// Typed access to a node's attributes, inputs and outputs at session creation.
#ifndef ROPE_NODE_INFO_H_
#define ROPE_NODE_INFO_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ort_api.h"
#include "refuse.h"

namespace rope {

// What error sentences call a node: "<op> node '<name>'", "(unnamed)" if it has no name.
std::string NodeTitle(const OrtApi& api, const OrtKernelInfo* info, const char* op);

// Each Get… returns nothing if the node lacks the attribute and throws Failure
// if the attribute has another type.
class NodeInfo {
 public:
  NodeInfo(const OrtApi& api, const OrtKernelInfo* info, std::string node)
      : api_(api), info_(info), node_(std::move(node)) {}

  // As NodeTitle gave it.
  const std::string& title() const { return node_; }

  std::optional<int64_t> GetInt(const char* name) const;
  std::optional<float> GetFloat(const char* name) const;
  std::optional<std::string> GetString(const char* name) const;
  std::optional<std::vector<int64_t>> GetInts(const char* name) const;
  std::optional<std::vector<float>> GetFloats(const char* name) const;

  bool HasInput(size_t index) const;
  bool HasOutput(size_t index) const;

  // RefuseNode of this node, and the same for a sentence that begins with "attribute <name>".
  template <typename... Parts>
  [[noreturn]] void Refuse(const Parts&... parts) const {
    RefuseNode(node_, parts...);
  }
  template <typename... Parts>
  [[noreturn]] void RefuseAttribute(const char* name, const Parts&... parts) const {
    RefuseNode(node_, "attribute ", name, parts...);
  }

 private:
  std::optional<int64_t> TryInt(const char* name) const;
  std::optional<float> TryFloat(const char* name) const;
  std::optional<std::string> TryString(const char* name) const;
  std::optional<std::vector<int64_t>> TryInts(const char* name) const;
  std::optional<std::vector<float>> TryFloats(const char* name) const;
  void RefuseOtherType(const char* name, const char* wanted) const;
  void RefuseOtherList(const char* name, const char* wanted) const;

  const OrtApi& api_;
  const OrtKernelInfo* info_;
  std::string node_;
};

}  // namespace rope

#endif  // ROPE_NODE_INFO_H_
