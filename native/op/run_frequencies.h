// Frequencies that depend on how far a call reaches.
#ifndef ROPE_RUN_FREQUENCIES_H_
#define ROPE_RUN_FREQUENCIES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "attention.h"
#include "frequency_rule.h"
#include "node_info.h"
#include "positions.h"

namespace rope {

// With L = how far a call reaches, and beyond the trained length: other
// frequencies, or these raised to a larger base, or divided.
struct RunFrequencies {
  int64_t trained = 0;                  // 0: frequencies are always the same
  std::vector<float> long_frequencies;  // beyond the trained length; empty: none
  double ntk = 0;                       // factor of dynamic NTK scaling; 0: none
  bool linear = false;                  // dynamic linear scaling

  bool any() const { return trained > 0; }

  // The same without memory of its own.
  FrequencyRule Rule(size_t pairs) const {
    return {trained, long_frequencies.empty() ? nullptr : long_frequencies.data(), ntk, linear,
            static_cast<int64_t>(pairs)};
  }

  // The frequencies of a call that reaches L positions.
  std::vector<float> At(const std::vector<float>& frequencies, int64_t length) const {
    const FrequencyRule rule = Rule(frequencies.size());
    std::vector<float> out;
    for (size_t i = 0; i < frequencies.size(); ++i) {
      out.push_back(rule.At(frequencies.data(), i, length));
    }
    return out;
  }
};

// Reads the attributes, which have the same names at every op.
RunFrequencies ReadRunFrequencies(const NodeInfo& node, const std::vector<float>& frequencies);

// How many positions a call reaches: what its caller says, else the largest of a
// real token on any axis + 1, 0 without any.
template <typename T>
int64_t ReachOf(const AttentionParams& params, const AttentionCall<T>& args) {
  if (args.total_length > 0) return args.total_length;
  const Positions<T> positions(params, args);
  int64_t reach = 0;
  for (int64_t b = 0; b < args.batch; ++b) {
    const int64_t past = args.past(b);
    for (int64_t place = 0; place < args.length; ++place) {
      if (!args.Shows(b, past + place)) continue;
      if (args.position_axes == 1) reach = std::max(reach, positions.At(b, place) + 1);
      for (int64_t axis = 0; axis < args.position_axes && args.position_axes > 1; ++axis) {
        reach = std::max(reach, positions.AtAxis(b, place, axis) + 1);
      }
    }
  }
  return reach;
}

}  // namespace rope

#endif  // ROPE_RUN_FREQUENCIES_H_
