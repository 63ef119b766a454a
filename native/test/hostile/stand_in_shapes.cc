#include "stand_in_shapes.h"

#include <algorithm>
#include <cstring>

#include "spec.gen.h"

struct OrtOpAttr {
  rope::hostile::Attribute of;
};
struct OrtShapeInferContext {
  const rope::hostile::Case& of;
  std::vector<OrtTensorTypeAndShapeInfo> inputs;
  std::vector<OrtOpAttr> attributes;
  std::vector<int64_t> output;
  std::string mistake;
};

namespace rope::hostile {
namespace {

OrtStatusPtr Failed(const char* text) { return new OrtStatus{ORT_FAIL, text}; }

OrtStatusPtr ORT_API_CALL ElementOf(const OrtTensorTypeAndShapeInfo* info,
                                    ONNXTensorElementDataType* out) noexcept {
  *out = static_cast<ONNXTensorElementDataType>(info->shape.element);
  return nullptr;
}
OrtStatusPtr ORT_API_CALL RankOf(const OrtTensorTypeAndShapeInfo* info, size_t* out) noexcept {
  *out = info->shape.dims.size();
  return nullptr;
}
OrtStatusPtr ORT_API_CALL DimsOf(const OrtTensorTypeAndShapeInfo* info, int64_t* out,
                                 size_t count) noexcept {
  std::copy_n(info->shape.dims.begin(), std::min(count, info->shape.dims.size()), out);
  return nullptr;
}
OrtStatusPtr ORT_API_CALL NamesOf(const OrtTensorTypeAndShapeInfo* info, const char** out,
                                  size_t count) noexcept {
  for (size_t d = 0; d < count; ++d) {
    out[d] = d < info->shape.names.size() ? info->shape.names[d].c_str() : "";
  }
  return nullptr;
}
OrtStatusPtr ORT_API_CALL NewInfo(OrtTensorTypeAndShapeInfo** out) noexcept {
  *out = new OrtTensorTypeAndShapeInfo{};
  return nullptr;
}
void ORT_API_CALL ReleaseInfo(OrtTensorTypeAndShapeInfo* info) noexcept { delete info; }
OrtStatusPtr ORT_API_CALL SetElement(OrtTensorTypeAndShapeInfo* info,
                                     ONNXTensorElementDataType element) noexcept {
  info->shape.element = element;
  return nullptr;
}
OrtStatusPtr ORT_API_CALL SetDims(OrtTensorTypeAndShapeInfo* info, const int64_t* dims,
                                  size_t count) noexcept {
  info->shape.dims.assign(dims, dims + count);
  return nullptr;
}
OrtStatusPtr ORT_API_CALL SetNames(OrtTensorTypeAndShapeInfo* info, const char** names,
                                   size_t count) noexcept {
  info->shape.names.assign(names, names + count);
  return nullptr;
}

OrtStatusPtr ORT_API_CALL CountInputs(const OrtShapeInferContext* context, size_t* out) noexcept {
  *out = context->inputs.size();
  return nullptr;
}
OrtStatusPtr ORT_API_CALL InputShape(const OrtShapeInferContext* context, size_t i,
                                     OrtTensorTypeAndShapeInfo** out) noexcept {
  if (!context->of.inputs[i].present) return Failed("no such input");
  *out = const_cast<OrtTensorTypeAndShapeInfo*>(&context->inputs[i]);
  return nullptr;
}
OrtStatusPtr ORT_API_CALL FindAttribute(const OrtShapeInferContext* context, const char* name,
                                        const OrtOpAttr** out) noexcept {
  for (const OrtOpAttr& a : context->attributes) {
    if (a.of.name != name) continue;
    *out = &a;
    return nullptr;
  }
  return Failed("no such attribute");
}
OrtStatusPtr ORT_API_CALL ReadInt(const OrtOpAttr* attribute, OrtOpAttrType type, void* data,
                                  size_t room, size_t* size) noexcept {
  if (type != ORT_OP_ATTR_INT || attribute->of.kind != Attribute::kOfInt) return Failed("no int");
  *size = sizeof(int64_t);
  if (room < *size) return Failed("too little room");
  std::memcpy(data, &attribute->of.i, *size);
  return nullptr;
}
OrtStatusPtr ORT_API_CALL TakeOutput(const OrtShapeInferContext* context, size_t i,
                                     const OrtTensorTypeAndShapeInfo* info) noexcept {
  auto* own = const_cast<OrtShapeInferContext*>(context);
  if (i != 0 || info->shape.element != OutputElement(context->of, 0)) {
    own->mistake = "a shape of another output or type is inferred";
  }
  own->output = info->shape.dims;
  return nullptr;
}

}  // namespace

int OutputElement(const Case& c, size_t i) {
  const std::string type = c.op == "Rotary" ? spec::rotary::kOutputTypes[i] : spec::kOutputTypes[i];
  return type == "float" ? kFloat : type == "C" ? c.cache : c.element;
}

void AddShapeFunctions(OrtApi& api) {
  api.GetTensorElementType = ElementOf;
  api.GetDimensionsCount = RankOf;
  api.GetDimensions = DimsOf;
  api.GetSymbolicDimensions = NamesOf;
  api.CreateTensorTypeAndShapeInfo = NewInfo;
  api.ReleaseTensorTypeAndShapeInfo = ReleaseInfo;
  api.SetTensorElementType = SetElement;
  api.SetDimensions = SetDims;
  api.SetSymbolicDimensions = SetNames;
  api.ShapeInferContext_GetInputCount = CountInputs;
  api.ShapeInferContext_GetInputTypeShape = InputShape;
  api.ShapeInferContext_GetAttribute = FindAttribute;
  api.ReadOpAttr = ReadInt;
  api.ShapeInferContext_SetOutputTypeShape = TakeOutput;
}

std::vector<int64_t> InferShape(const OrtCustomOp& op, const Case& c, std::string& mistake) {
  OrtShapeInferContext context{c, {}, {}, {}, {}};
  for (const Tensor& t : c.inputs) {
    Shape shape{t.element, t.shape, {}};
    for (size_t d = 0; d < shape.dims.size(); ++d) {
      // Every third dimension has a name instead of a number.
      const bool named = (shape.dims[d] % 3 + static_cast<int64_t>(d)) % 3 == 0;
      shape.names.push_back(named ? "n" + std::to_string(shape.dims[d]) : "");
      if (named) shape.dims[d] = -1;
    }
    context.inputs.push_back({std::move(shape)});
  }
  for (const Attribute& a : c.attributes) context.attributes.push_back({a});
  delete op.InferOutputShapeFn(&op, &context);  // an error says that nothing is known
  mistake = context.mistake;
  return context.output;
}

bool Agree(const std::vector<int64_t>& inferred, const std::vector<int64_t>& shape) {
  if (inferred.empty()) return true;
  return std::equal(inferred.begin(), inferred.end(), shape.begin(), shape.end(),
                    [](int64_t a, int64_t b) { return a < 0 || a == b; });
}

}  // namespace rope::hostile
