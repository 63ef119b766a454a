// Output shapes from input shapes. The runtime ignores errors here and calls
// this for every element type of the op, so nothing is checked: what cannot be
// told stays symbolic, and the kernel checks the real shapes.
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "rotary_attention.h"
#include "spec.gen.h"

namespace rope {
namespace {

// A dimension: a number, a name, or neither.
struct Dim {
  int64_t number = -1;
  std::string name;
};

// A name that no other dimension has: equal names would claim equal lengths.
Dim Unknown() {
  static std::atomic<uint64_t> next{0};
  return {-1, "rope_dim_" + std::to_string(next++)};
}

struct InputShape {
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::vector<Dim> dims;
};

// What an op's shape function may ask and say. It says only the shape of the output that every
// node has: the runtime does not say how many outputs a node has, and writing a shape beyond the
// last one corrupts memory (seen on 1.24.4). Other outputs stay with the graph's own declarations.
class ShapeInference {
 public:
  ShapeInference(const OrtApi& api, OrtShapeInferContext* context) : api_(api), context_(context) {
    Check(api, api.ShapeInferContext_GetInputCount(context, &input_count_), "GetInputCount");
  }

  InputShape Read(size_t i) const {
    InputShape shape;
    OrtTensorTypeAndShapeInfo* info = nullptr;  // stays the context's
    if (i >= input_count_ ||
        !Worked(api_, api_.ShapeInferContext_GetInputTypeShape(context_, i, &info)) ||
        info == nullptr) {
      return shape;
    }
    size_t rank = 0;
    if (Worked(api_, api_.GetTensorElementType(info, &shape.type)) &&
        Worked(api_, api_.GetDimensionsCount(info, &rank)) && rank > 0) {
      std::vector<int64_t> numbers(rank, -1);
      std::vector<const char*> names(rank, nullptr);
      const bool read = Worked(api_, api_.GetDimensions(info, numbers.data(), rank)) &&
                        Worked(api_, api_.GetSymbolicDimensions(info, names.data(), rank));
      for (size_t d = 0; read && d < rank; ++d) {
        shape.dims.push_back({numbers[d], names[d] == nullptr ? "" : names[d]});
      }
    }
    return shape;
  }

  int64_t Attribute(const char* name) const {
    const OrtOpAttr* attribute = nullptr;
    int64_t value = -1;
    size_t size = 0;
    if (!Worked(api_, api_.ShapeInferContext_GetAttribute(context_, name, &attribute)) ||
        attribute == nullptr ||
        !Worked(api_, api_.ReadOpAttr(attribute, ORT_OP_ATTR_INT, &value, sizeof(value), &size))) {
      return -1;
    }
    return value;
  }

  void WriteOutput(ONNXTensorElementDataType type, std::vector<Dim> dims) const {
    OrtTensorTypeAndShapeInfo* info = nullptr;
    if (!Worked(api_, api_.CreateTensorTypeAndShapeInfo(&info))) return;
    std::vector<int64_t> numbers;
    std::vector<const char*> names;
    for (Dim& dim : dims) {
      if (dim.number < 0 && dim.name.empty()) dim = Unknown();
      numbers.push_back(dim.number);
      names.push_back(dim.name.c_str());
    }
    if (Worked(api_, api_.SetTensorElementType(info, type)) &&
        Worked(api_, api_.SetDimensions(info, numbers.data(), numbers.size())) &&
        Worked(api_, api_.SetSymbolicDimensions(info, names.data(), names.size()))) {
      Worked(api_, api_.ShapeInferContext_SetOutputTypeShape(context_, kFirst, info));
    }
    api_.ReleaseTensorTypeAndShapeInfo(info);
  }

 private:
  static constexpr size_t kFirst = 0;  // the output that every node has

  const OrtApi& api_;
  OrtShapeInferContext* context_;
  size_t input_count_ = 0;
};

Dim Channels(const InputShape& shape, int64_t heads) {
  if (shape.dims.size() == 4) return shape.dims[3];
  if (shape.dims.size() == 3 && shape.dims[2].number > 0 && heads > 0) {
    return {shape.dims[2].number / heads, ""};
  }
  return Unknown();
}

void InferAttention(const ShapeInference& node) {
  const InputShape query = node.Read(spec::kQuery);
  const InputShape value = node.Read(spec::kValue);
  const size_t rank = query.dims.size();
  if (rank != 3 && rank != 4) return;
  const int64_t heads = node.Attribute(spec::kAttrNumHeads);
  const Dim channels = Channels(value, node.Attribute(spec::kAttrKvNumHeads));
  if (rank == 4) {
    node.WriteOutput(query.type, {query.dims[0], query.dims[1], query.dims[2], channels});
  } else {
    constexpr int64_t kMost = INT32_MAX;  // of each, so that the product fits
    const bool known =
        channels.number > 0 && channels.number <= kMost && heads > 0 && heads <= kMost;
    node.WriteOutput(query.type, {query.dims[0], query.dims[1],
                                  known ? Dim{heads * channels.number, ""} : Unknown()});
  }
}

}  // namespace

OrtStatusPtr ORT_API_CALL InferRotaryAttentionShapes(const OrtCustomOp*,
                                                     OrtShapeInferContext* context) {
  return Guarded(Api(), [&] { InferAttention(ShapeInference(Api(), context)); });
}

// With the input's shape the output may have the input's buffer.
OrtStatusPtr ORT_API_CALL InferRotaryShapes(const OrtCustomOp*, OrtShapeInferContext* context) {
  return Guarded(Api(), [&] {
    const ShapeInference node(Api(), context);
    const InputShape query = node.Read(spec::rotary::kQuery);
    if (!query.dims.empty()) node.WriteOutput(query.type, query.dims);
  });
}

}  // namespace rope
