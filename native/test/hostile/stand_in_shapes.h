// The part of the stand-in of ONNX Runtime that knows shapes.
#ifndef ROPE_HOSTILE_STAND_IN_SHAPES_H_
#define ROPE_HOSTILE_STAND_IN_SHAPES_H_

#include <onnxruntime_c_api.h>

#include <string>
#include <vector>

#include "case.h"

namespace rope::hostile {

struct Shape {
  int element = 0;
  std::vector<int64_t> dims;
  std::vector<std::string> names;  // one for each dimension, where any has one
};

constexpr size_t kPastKeyInput = 3;

// The element type of an output.
int OutputElement(const Case& c, size_t i);

void AddShapeFunctions(OrtApi& api);

// What the op's shape function says of the first output of a case, of whose dimensions some are
// not told; -1 for what is not known.
std::vector<int64_t> InferShape(const OrtCustomOp& op, const Case& c, std::string& mistake);

// Whether a shape is what was inferred.
bool Agree(const std::vector<int64_t>& inferred, const std::vector<int64_t>& shape);

}  // namespace rope::hostile

// What the API hides from the library is here what the test needs.
struct OrtStatus {
  OrtErrorCode code;
  std::string text;
};
struct OrtTensorTypeAndShapeInfo {
  rope::hostile::Shape shape;
};

#endif  // ROPE_HOSTILE_STAND_IN_SHAPES_H_
