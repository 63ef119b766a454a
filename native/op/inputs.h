// Checks the tensors of one run against each other.
#ifndef ROPE_INPUTS_H_
#define ROPE_INPUTS_H_

#include <string>
#include <vector>

#include "attention.h"
#include "numbers.h"
#include "ort_api.h"
#include "spec.gen.h"

namespace rope {

struct Inputs {
  Tensor tensors[spec::kInputCount];

  const Tensor& operator[](spec::RotaryAttentionInput i) const { return tensors[i]; }
};

Inputs ReadInputs(const OrtApi& api, OrtKernelContext* context);

// Fills everything but the outputs. Throws Failure naming the node, the input
// and the shapes that do not fit. With numbers on the device it reads none of them: max_past is
// then the room for cached tokens where they have lengths.
template <typename T, typename C>
AttentionArgs<T, C> CheckInputs(const AttentionParams& params, const Inputs& inputs,
                                const std::string& node, Numbers numbers);

}  // namespace rope

#endif  // ROPE_INPUTS_H_
