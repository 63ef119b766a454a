// The ops as ONNX Runtime sees them.
#ifndef ROPE_ROTARY_ATTENTION_H_
#define ROPE_ROTARY_ATTENTION_H_

#include <initializer_list>
#include <vector>

#include "numbers.h"
#include "ort_api.h"

namespace rope {

// The ops under all their names, once for each element type, computed on the CPU. Without
// `infer_shapes` the runtime gets no shape functions.
std::vector<OrtCustomOp> CpuOps(bool infer_shapes);

// All ops of the library that this is linked into. Where numbers are matters to those of a device
// alone.
std::vector<OrtCustomOp> LibraryOps(bool infer_shapes, Numbers numbers);

// One list of several.
inline std::vector<OrtCustomOp> Joined(std::initializer_list<std::vector<OrtCustomOp>> lists) {
  std::vector<OrtCustomOp> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// The API that every callback uses; set once before the op is registered.
void SetApi(const OrtApi* api);
const OrtApi& Api();
bool HasApi();

// Output shapes from input shapes, for ONNX Runtime 1.24 and newer.
OrtStatusPtr ORT_API_CALL InferRotaryAttentionShapes(const OrtCustomOp* op,
                                                     OrtShapeInferContext* context);
OrtStatusPtr ORT_API_CALL InferRotaryShapes(const OrtCustomOp* op, OrtShapeInferContext* context);

}  // namespace rope

#endif  // ROPE_ROTARY_ATTENTION_H_
