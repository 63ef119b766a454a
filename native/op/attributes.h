// What the node says: its attributes, name and which inputs and outputs it has.
#ifndef ROPE_ATTRIBUTES_H_
#define ROPE_ATTRIBUTES_H_

#include <string>

#include "attention.h"
#include "ort_api.h"
#include "run_frequencies.h"

namespace rope {

// The node's name, for error sentences; "(unnamed)" if it has none.
std::string NodeName(const OrtApi& api, const OrtKernelInfo* info);

// Reads and checks everything that is known when the session is created. Throws
// Failure naming the node for what is wrong, newer than this library or not
// covered by it.
AttentionParams ReadAttributes(const OrtApi& api, const OrtKernelInfo* info,
                               const std::string& node);

// The same for frequencies that depend on how far a call reaches.
RunFrequencies ReadRunFrequencies(const OrtApi& api, const OrtKernelInfo* info,
                                  const std::string& node, const AttentionParams& params);

}  // namespace rope

#endif  // ROPE_ATTRIBUTES_H_
