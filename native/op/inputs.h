// Checks the tensors of one run against each other.
#ifndef ROPE_INPUTS_H_
#define ROPE_INPUTS_H_

#include <string>
#include <vector>

#include "attention.h"
#include "ort_api.h"
#include "spec.gen.h"

namespace rope {

struct Inputs {
  Tensor tensors[spec::kInputCount];

  const Tensor& operator[](spec::RotaryAttentionInput i) const { return tensors[i]; }
};

Inputs ReadInputs(const OrtApi& api, OrtKernelContext* context);

// Fills everything but the outputs. Throws Failure naming the node, the input
// and the shapes that do not fit.
template <typename T, typename C>
AttentionArgs<T, C> CheckInputs(const AttentionParams& params, const Inputs& inputs,
                                const std::string& node);

}  // namespace rope

#endif  // ROPE_INPUTS_H_
