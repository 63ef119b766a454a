// What the node says: its attributes, and which inputs and outputs it has.
#ifndef ROPE_ATTRIBUTES_H_
#define ROPE_ATTRIBUTES_H_

#include <string>

#include "attention.h"
#include "node_info.h"
#include "ort_api.h"

namespace rope {

// Reads and checks everything that is known when the session is created. Throws
// Failure naming the node for what is wrong, newer than this library or not
// covered by it.
AttentionParams ReadAttributes(const OrtApi& api, const OrtKernelInfo* info,
                               const std::string& node);

// Throws Failure if the node's cache_type is not that of the tensors it was created for, or if its
// inputs and outputs do not go with it.
void CheckCacheType(const NodeInfo& node, const std::string& type);

}  // namespace rope

#endif  // ROPE_ATTRIBUTES_H_
