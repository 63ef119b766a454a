#include "inputs.h"

namespace rope {

Inputs ReadInputs(const OrtApi& api, OrtKernelContext* context) {
  size_t count = 0;
  Check(api, api.KernelContext_GetInputCount(context, &count), "KernelContext_GetInputCount");
  Inputs inputs;
  for (size_t i = 0; i < spec::kInputCount; ++i) {
    inputs.tensors[i] = InputOf(api, context, i, count);
  }
  return inputs;
}

}  // namespace rope
