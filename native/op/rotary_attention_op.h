// The op for one element type, whatever computes it.
#ifndef ROPE_ROTARY_ATTENTION_OP_H_
#define ROPE_ROTARY_ATTENTION_OP_H_

#include <string>
#include <vector>

#include "attention.h"
#include "attributes.h"
#include "inputs.h"
#include "refuse.h"
#include "rotary_attention.h"
#include "spec.gen.h"

namespace rope {

// What computes runs is an engine:
//
//   class Engine {
//    public:
//     static constexpr const char* kProvider;     // execution provider; null is the CPU's
//     static OrtMemType MemoryOf(size_t input);   // where an input has to lie
//     explicit Engine(const OrtApi& api);
//     // Computes one run; the text says what went wrong, if anything did.
//     template <typename T>
//     std::string Run(OrtKernelContext*, const AttentionParams&, const AttentionArgs<T>&) const;
//   };

// One node of a session. Runs may come at the same time, so nothing here changes.
template <typename T, typename Engine>
class RotaryAttention {
 public:
  RotaryAttention(const OrtApi& api, const OrtKernelInfo* info)
      : api_(api),
        node_(NodeName(api, info)),
        params_(ReadAttributes(api, info, node_)),
        run_frequencies_(ReadRunFrequencies(api, info, node_, params_)),
        engine_(api) {}
  RotaryAttention(const RotaryAttention&) = delete;
  RotaryAttention& operator=(const RotaryAttention&) = delete;

  void Compute(OrtKernelContext* context) const {
    const Inputs inputs = ReadInputs(api_, context);
    AttentionArgs<T> args = CheckInputs<T>(params_, inputs, node_);
    CreateOutputs(context, inputs[spec::kQuery].shape.size(), args);
    const std::string error = run_frequencies_.any() ? engine_.Run(context, ParamsOf(args), args)
                                                     : engine_.Run(context, params_, args);
    if (!error.empty()) throw Failure(NodeText(node_, error), ORT_FAIL);
  }

 private:
  // The call's parameters, with the frequencies for how far it reaches.
  AttentionParams ParamsOf(const AttentionArgs<T>& args) const {
    AttentionParams params = params_;
    params.frequencies = run_frequencies_.At(params.frequencies, ReachOf(args));
    return params;
  }

  void CreateOutputs(OrtKernelContext* context, size_t query_rank, AttentionArgs<T>& args) const {
    size_t count = 0;
    Check(api_, api_.KernelContext_GetOutputCount(context, &count), "KernelContext_GetOutputCount");
    const auto memory_of = [&](spec::RotaryAttentionOutput i, const std::vector<int64_t>& shape) {
      return OutputOf(api_, context, static_cast<size_t>(i), count, shape,
                      [&] { return NodeText(node_, "output ", spec::kOutputNames[i]); });
    };
    const auto create = [&](spec::RotaryAttentionOutput i, const std::vector<int64_t>& shape) {
      return static_cast<T*>(memory_of(i, shape));
    };
    const int64_t heads = params_.num_heads;
    const int64_t kv_heads = params_.kv_num_heads;
    const int64_t v = args.v_head_size;
    if (query_rank == 4) {
      args.output = {create(spec::kOutput, {args.batch, heads, args.length, v}),
                     heads * args.length * v, args.length * v, v};
    } else {
      args.output = {create(spec::kOutput, {args.batch, args.length, heads * v}),
                     args.length * heads * v, v, heads * v};
    }
    const auto create_present = [&](spec::RotaryAttentionOutput i, int64_t channels) {
      const int64_t rows = args.present_rows;
      return Rows<T>{create(i, {args.batch, kv_heads, rows, channels}), kv_heads * rows * channels,
                     rows * channels, channels};
    };
    args.present_key = create_present(spec::kPresentKey, args.head_size);
    args.present_value = create_present(spec::kPresentValue, args.v_head_size);
    args.log_sum_exp =
        static_cast<float*>(memory_of(spec::kLogSumExp, {args.batch, heads, args.length}));
    CheckSharing(args);
    // A tensor without elements may have no address.
    const bool empty = args.batch == 0 || args.length == 0;
    if (args.output.data == nullptr && !empty) RefuseNode(node_, "the output is missing");
  }

  // A host may bind one buffer to a past and its present; anything else that
  // overlaps would be overwritten while it is read.
  void CheckSharing(const AttentionArgs<T>& args) const {
    const auto check = [&](spec::RotaryAttentionInput past, const Rows<const T>& from,
                           spec::RotaryAttentionOutput present, const Rows<T>& to, bool pair) {
      if (from.data == nullptr || to.data == nullptr || (pair && from.data == to.data)) return;
      const auto begin = reinterpret_cast<uintptr_t>(from.data);
      const auto other = reinterpret_cast<uintptr_t>(to.data);
      const auto bytes = [&](int64_t stride) {
        return static_cast<uintptr_t>(args.batch * stride) * sizeof(T);
      };
      if (begin >= other + bytes(to.batch_stride) || other >= begin + bytes(from.batch_stride)) {
        return;
      }
      RefuseNode(node_, "output ", spec::kOutputNames[present], " overlaps input ",
                 spec::kInputNames[past],
                 " in memory; past and present need one buffer or two separate ones");
    };
    check(spec::kPastKey, args.past_key, spec::kPresentKey, args.present_key, true);
    check(spec::kPastKey, args.past_key, spec::kPresentValue, args.present_value, false);
    check(spec::kPastValue, args.past_value, spec::kPresentKey, args.present_key, false);
    check(spec::kPastValue, args.past_value, spec::kPresentValue, args.present_value, true);
  }

  const OrtApi& api_;
  const std::string node_;
  const AttentionParams params_;
  const RunFrequencies run_frequencies_;
  const Engine engine_;
};

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

inline const char* ORT_API_CALL Name(const OrtCustomOp*) { return spec::kRotaryAttention; }
template <typename Engine>
const char* ORT_API_CALL Provider(const OrtCustomOp*) {
  return Engine::kProvider;
}
inline size_t ORT_API_CALL InputCount(const OrtCustomOp*) { return spec::kInputCount; }
inline size_t ORT_API_CALL OutputCount(const OrtCustomOp*) { return spec::kOutputCount; }
template <typename Engine>
OrtMemType ORT_API_CALL MemoryType(const OrtCustomOp*, size_t i) {
  return Engine::MemoryOf(i);
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

template <typename T>
ONNXTensorElementDataType ElementType(const std::string& type) {
  if (type == "int64") return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
  if (type == "int32") return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32;
  if (type == "float") return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  return kElementType<T>;
}

template <typename T>
ONNXTensorElementDataType ORT_API_CALL InputType(const OrtCustomOp*, size_t i) {
  return ElementType<T>(spec::kInputTypes[i]);
}

template <typename T>
ONNXTensorElementDataType ORT_API_CALL OutputType(const OrtCustomOp*, size_t i) {
  return ElementType<T>(spec::kOutputTypes[i]);
}

inline OrtCustomOpInputOutputCharacteristic ORT_API_CALL InputKind(const OrtCustomOp*, size_t i) {
  return spec::kInputOptional[i] ? INPUT_OUTPUT_OPTIONAL : INPUT_OUTPUT_REQUIRED;
}

inline OrtCustomOpInputOutputCharacteristic ORT_API_CALL OutputKind(const OrtCustomOp*, size_t i) {
  return spec::kOutputOptional[i] ? INPUT_OUTPUT_OPTIONAL : INPUT_OUTPUT_REQUIRED;
}

// The op for tensors of type T. Without `infer_shapes` the runtime gets no shape
// function.
template <typename T, typename Engine>
OrtCustomOp MakeOp(bool infer_shapes) {
  using Op = RotaryAttention<T, Engine>;
  OrtCustomOp op{};
  op.version = kApiVersion;
  op.GetName = Name;
  op.GetExecutionProviderType = Provider<Engine>;
  op.GetInputType = InputType<T>;
  op.GetInputTypeCount = InputCount;
  op.GetOutputType = OutputType<T>;
  op.GetOutputTypeCount = OutputCount;
  op.KernelDestroy = Destroy<Op>;
  op.GetInputCharacteristic = InputKind;
  op.GetOutputCharacteristic = OutputKind;
  op.GetInputMemoryType = MemoryType<Engine>;
  op.CreateKernelV2 = CreateKernel<Op>;
  op.KernelComputeV2 = Compute<Op>;
  op.InferOutputShapeFn = infer_shapes ? InferRotaryAttentionShapes : nullptr;
  op.GetStartVersion = One;
  return op;
}

}  // namespace rope

#endif  // ROPE_ROTARY_ATTENTION_OP_H_
