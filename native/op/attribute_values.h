// Values of a node's attributes, each refused by a sentence where it is out of range.
#ifndef ROPE_ATTRIBUTE_VALUES_H_
#define ROPE_ATTRIBUTE_VALUES_H_

#include <cstdint>
#include <vector>

#include "node_info.h"

namespace rope {

// The version of the specification, which must be one that this library knows.
void CheckSpecVersion(const NodeInfo& node);

// A number of heads, which must be given and at least 1.
int64_t RequiredHeads(const NodeInfo& node, const char* name);

float FiniteFloat(const NodeInfo& node, const char* name, float fallback);
std::vector<float> FiniteFloats(const NodeInfo& node, const char* name);  // none where absent

bool Flag(const NodeInfo& node, const char* name, int64_t fallback);  // 0 or 1
int64_t NonNegative(const NodeInfo& node, const char* name, int64_t fallback);

// Values of position_axes, which has the same name at every op.
void CheckAxes(const NodeInfo& node, const std::vector<int64_t>& axes);

}  // namespace rope

#endif  // ROPE_ATTRIBUTE_VALUES_H_
