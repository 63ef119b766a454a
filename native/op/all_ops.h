// Every op for every pair of types that an engine computes.
#ifndef ROPE_ALL_OPS_H_
#define ROPE_ALL_OPS_H_

#include <vector>

#include "rotary_attention_op.h"
#include "rotary_op.h"

namespace rope {

// A runtime that leaves the type of caches open takes the first that fits: that of the other
// tensors.
template <typename Engine>
std::vector<OrtCustomOp> MakeAllAttentionOps(bool infer_shapes) {
  return Joined({MakeAttentionOps<float, float, Engine>(infer_shapes),
                 MakeAttentionOps<Float16, Float16, Engine>(infer_shapes),
                 MakeAttentionOps<BFloat16, BFloat16, Engine>(infer_shapes),
                 MakeAttentionOps<float, Float16, Engine>(infer_shapes),
                 MakeAttentionOps<float, BFloat16, Engine>(infer_shapes),
                 MakeAttentionOps<float, int8_t, Engine>(infer_shapes),
                 MakeAttentionOps<Float16, int8_t, Engine>(infer_shapes),
                 MakeAttentionOps<BFloat16, int8_t, Engine>(infer_shapes)});
}

template <typename Engine>
std::vector<OrtCustomOp> MakeAllOps(bool infer_shapes) {
  return Joined({MakeAllAttentionOps<Engine>(infer_shapes),
                 MakeRotaryOps<float, Engine>(infer_shapes),
                 MakeRotaryOps<Float16, Engine>(infer_shapes),
                 MakeRotaryOps<BFloat16, Engine>(infer_shapes)});
}

}  // namespace rope

#endif  // ROPE_ALL_OPS_H_
