// What ONNX Runtime asks of an op, answered from its specification.
#ifndef ROPE_MAKE_OP_H_
#define ROPE_MAKE_OP_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "attention.h"
#include "ort_api.h"
#include "rotary_attention.h"

namespace rope {

// An op for one element type and device is a class:
//
//   class Op {
//    public:
//     using Slots = …;                          // of its namespace in spec.gen.h
//     using Element = …;                        // T of its specification
//     using CacheElement = …;                   // C of its specification
//     static constexpr const char* kProvider;   // execution provider; null is the CPU's
//     static OrtMemType MemoryOf(size_t input); // where an input has to lie
//     Op(const OrtApi& api, const OrtKernelInfo* info);   // a node; throws Failure
//     void Compute(OrtKernelContext* context) const;      // a run; throws Failure
//   };
template <typename Op>
OrtStatusPtr ORT_API_CALL CreateKernel(const OrtCustomOp*, const OrtApi*, const OrtKernelInfo* info,
                                       void** kernel) {
  return Guarded(Api(), [&] { *kernel = new Op(Api(), info); });
}

template <typename Op>
OrtStatusPtr ORT_API_CALL Compute(void* kernel, OrtKernelContext* context) {
  return Guarded(Api(), [&] { static_cast<const Op*>(kernel)->Compute(context); });
}

template <typename Op>
void ORT_API_CALL Destroy(void* kernel) {
  delete static_cast<Op*>(kernel);
}

template <typename Op, size_t i>
const char* ORT_API_CALL NameOf(const OrtCustomOp*) {
  return Op::Slots::kNames[i];
}
template <typename Op>
const char* ORT_API_CALL Provider(const OrtCustomOp*) {
  return Op::kProvider;
}
template <typename Op>
size_t ORT_API_CALL InputCount(const OrtCustomOp*) {
  return Op::Slots::kInputs;
}
template <typename Op>
size_t ORT_API_CALL OutputCount(const OrtCustomOp*) {
  return Op::Slots::kOutputs;
}
template <typename Op>
OrtMemType ORT_API_CALL MemoryType(const OrtCustomOp*, size_t i) {
  return Op::MemoryOf(i);
}
inline int ORT_API_CALL One(const OrtCustomOp*) { return 1; }

template <typename T>
inline constexpr ONNXTensorElementDataType kElementType = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
template <>
inline constexpr ONNXTensorElementDataType kElementType<float> =
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
template <>
inline constexpr ONNXTensorElementDataType kElementType<Float16> =
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16;
template <>
inline constexpr ONNXTensorElementDataType kElementType<BFloat16> =
    ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16;

template <>
inline constexpr ONNXTensorElementDataType kElementType<int8_t> =
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8;

// T and C are the types of the specification of those names.
template <typename T, typename C>
ONNXTensorElementDataType ElementType(const std::string& type) {
  if (type == "int64") return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
  if (type == "int32") return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32;
  if (type == "float") return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  return type == "C" ? kElementType<C> : kElementType<T>;
}

template <typename Op>
ONNXTensorElementDataType ORT_API_CALL InputType(const OrtCustomOp*, size_t i) {
  return ElementType<typename Op::Element, typename Op::CacheElement>(Op::Slots::InputType(i));
}
template <typename Op>
ONNXTensorElementDataType ORT_API_CALL OutputType(const OrtCustomOp*, size_t i) {
  return ElementType<typename Op::Element, typename Op::CacheElement>(Op::Slots::OutputType(i));
}
template <typename Op>
OrtCustomOpInputOutputCharacteristic ORT_API_CALL InputKind(const OrtCustomOp*, size_t i) {
  return Op::Slots::InputOptional(i) ? INPUT_OUTPUT_OPTIONAL : INPUT_OUTPUT_REQUIRED;
}
template <typename Op>
OrtCustomOpInputOutputCharacteristic ORT_API_CALL OutputKind(const OrtCustomOp*, size_t i) {
  return Op::Slots::OutputOptional(i) ? INPUT_OUTPUT_OPTIONAL : INPUT_OUTPUT_REQUIRED;
}

using ShapeFunction = decltype(OrtCustomOp::InferOutputShapeFn);

template <typename Op, size_t... i>
std::vector<OrtCustomOp> UnderNames(OrtCustomOp op, std::index_sequence<i...>) {
  std::vector<OrtCustomOp> named;
  ((op.GetName = NameOf<Op, i>, named.push_back(op)), ...);
  return named;
}

// An op under each of its names, which mean the same.
template <typename Op>
std::vector<OrtCustomOp> MakeOps(ShapeFunction infer_shapes) {
  OrtCustomOp op{};
  op.version = kApiVersion;
  op.GetExecutionProviderType = Provider<Op>;
  op.GetInputType = InputType<Op>;
  op.GetInputTypeCount = InputCount<Op>;
  op.GetOutputType = OutputType<Op>;
  op.GetOutputTypeCount = OutputCount<Op>;
  op.KernelDestroy = Destroy<Op>;
  op.GetInputCharacteristic = InputKind<Op>;
  op.GetOutputCharacteristic = OutputKind<Op>;
  op.GetInputMemoryType = MemoryType<Op>;
  op.CreateKernelV2 = CreateKernel<Op>;
  op.KernelComputeV2 = Compute<Op>;
  op.InferOutputShapeFn = infer_shapes;
  op.GetStartVersion = One;
  return UnderNames<Op>(op, std::make_index_sequence<Op::Slots::kNames.size()>());
}

}  // namespace rope

#endif  // ROPE_MAKE_OP_H_
