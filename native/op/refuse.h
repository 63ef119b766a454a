// Errors of a node, each one sentence that names it.
#ifndef ROPE_REFUSE_H_
#define ROPE_REFUSE_H_

#include <string>

#include "ort_api.h"

namespace rope {

inline const std::string& AsText(const std::string& text) { return text; }
inline const char* AsText(const char* text) { return text; }
template <typename Number>
std::string AsText(Number number) {
  return std::to_string(number);
}

// One text of several parts, which are texts or numbers.
template <typename... Parts>
std::string Text(const Parts&... parts) {
  std::string text;
  ((text += AsText(parts)), ...);
  return text;
}

// "<node>: <parts>" for a node as NodeTitle calls it.
template <typename... Parts>
std::string NodeText(const std::string& node, const Parts&... parts) {
  return Text(node, ": ", parts...);
}

// Throws Failure(NodeText(...)).
template <typename... Parts>
[[noreturn]] void RefuseNode(const std::string& node, const Parts&... parts) {
  throw Failure(NodeText(node, parts...));
}

}  // namespace rope

#endif  // ROPE_REFUSE_H_
