// What a Rotary node says, and the tensors of one of its runs checked against each other.
#ifndef ROPE_ROTARY_INPUTS_H_
#define ROPE_ROTARY_INPUTS_H_

#include <array>
#include <cstdint>
#include <string>

#include "node_info.h"
#include "ort_api.h"
#include "rotary.h"
#include "spec.gen.h"

namespace rope {

// Reads and checks everything that is known when the session is created. Throws Failure naming
// the node for what is wrong or newer than this library.
RotaryParams ReadRotaryAttributes(const NodeInfo& node);

struct RotaryInputs {
  std::array<Tensor, spec::rotary::kInputCount> tensors;
  int64_t reach = 0;  // how many positions the run reaches

  const Tensor& operator[](spec::rotary::RotaryInput i) const { return tensors[i]; }
};

// Fills everything but the outputs, and inputs.reach. Throws Failure naming the node, the input
// and the shapes that do not fit.
template <typename T>
RotaryArgs<T> CheckRotaryInputs(const RotaryParams& params, RotaryInputs& inputs,
                                const std::string& node);

// Heads [.., heads, .., channels] in a format.
template <typename T>
Rows<T> RowsOf(TensorFormat format, T* data, const std::vector<int64_t>& shape) {
  const int64_t channels = shape.back();
  switch (format) {
    case TensorFormat::kBshd:
      return {data, shape[1] * shape[2] * channels, channels, shape[2] * channels};
    case TensorFormat::kSbhd:
      return {data, shape[2] * channels, channels, shape[1] * shape[2] * channels};
    case TensorFormat::kBhsd:
      return {data, shape[1] * shape[2] * channels, shape[2] * channels, channels};
    default:
      return {data, 0, channels, shape[1] * channels};
  }
}

}  // namespace rope

#endif  // ROPE_ROTARY_INPUTS_H_
