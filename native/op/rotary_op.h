// Rotary for one element type, whatever computes it.
#ifndef ROPE_ROTARY_OP_H_
#define ROPE_ROTARY_OP_H_

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "make_op.h"
#include "node_info.h"
#include "refuse.h"
#include "rotary.h"
#include "rotary_inputs.h"
#include "run_frequencies.h"
#include "spec.gen.h"

namespace rope {

// One node of a session. Runs may come at the same time, so nothing here changes. The engine is as
// rotary_attention_op.h describes it, with RotaryParams and RotaryArgs.
template <typename T, typename Engine>
class RotaryNode {
 public:
  using Slots = spec::rotary::Slots;
  using Element = T;
  using CacheElement = T;
  static constexpr const char* kProvider = Engine::kProvider;
  // Integers are few, and are checked on the host.
  static OrtMemType MemoryOf(size_t input) {
    const bool tensor = std::strcmp(Slots::InputType(input), "T") == 0;
    return kProvider == nullptr || tensor ? OrtMemTypeDefault : OrtMemTypeCPUInput;
  }

  RotaryNode(const OrtApi& api, const OrtKernelInfo* info)
      : api_(api),
        node_(NodeTitle(api, info, Slots::kName)),
        params_(ReadRotaryAttributes(NodeInfo(api, info, node_))),
        run_frequencies_(ReadRunFrequencies(NodeInfo(api, info, node_), params_.frequencies)),
        engine_(api) {}
  RotaryNode(const RotaryNode&) = delete;
  RotaryNode& operator=(const RotaryNode&) = delete;

  void Compute(OrtKernelContext* context) const {
    RotaryInputs inputs = ReadTensors(context);
    RotaryArgs<T> args = CheckRotaryInputs<T>(params_, inputs, node_);
    CreateOutputs(context, inputs, args);
    const std::string error = run_frequencies_.any()
                                  ? engine_.Run(context, ParamsOf(inputs.reach), args)
                                  : engine_.Run(context, params_, args);
    if (!error.empty()) throw Failure(NodeText(node_, error), ORT_FAIL);
  }

 private:
  // The run's parameters, with the frequencies for how far it reaches.
  RotaryParams ParamsOf(int64_t reach) const {
    RotaryParams params = params_;
    params.frequencies = run_frequencies_.At(params.frequencies, reach);
    return params;
  }

  RotaryInputs ReadTensors(OrtKernelContext* context) const {
    size_t count = 0;
    Check(api_, api_.KernelContext_GetInputCount(context, &count), "KernelContext_GetInputCount");
    RotaryInputs inputs;
    for (size_t i = 0; i < Slots::kInputs; ++i) {
      inputs.tensors[i] = InputOf(api_, context, i, count);
    }
    return inputs;
  }

  void CreateOutputs(OrtKernelContext* context, const RotaryInputs& inputs,
                     RotaryArgs<T>& args) const {
    size_t count = 0;
    Check(api_, api_.KernelContext_GetOutputCount(context, &count), "KernelContext_GetOutputCount");
    const auto create = [&](spec::rotary::RotaryOutput i, const Tensor& like,
                            RotaryTensor<T>& tensor) {
      void* data = OutputOf(api_, context, static_cast<size_t>(i), count, like.shape,
                            [&] { return NodeText(node_, Named(i)); });
      tensor.to = RowsOf(params_.format, static_cast<T*>(data), like.shape);
      if (data == nullptr && args.batch * args.length * tensor.heads > 0) {
        RefuseNode(node_, Named(i), " is missing");
      }
    };
    create(spec::rotary::kRotatedQuery, inputs[spec::rotary::kQuery], args.query);
    if (args.key.heads > 0) {
      create(spec::rotary::kRotatedKey, inputs[spec::rotary::kKey], args.key);
    } else if (inputs[spec::rotary::kKey].present) {
      OutputOf(api_, context, spec::rotary::kRotatedKey, count, inputs[spec::rotary::kKey].shape,
               [&] { return NodeText(node_, Named(spec::rotary::kRotatedKey)); });
    }
    CheckSharing(args);
  }

  static std::string Named(spec::rotary::RotaryOutput i) {
    return Text("output ", spec::rotary::kOutputNames[i]);
  }

  // An output may be its input's buffer; any other overlap would be overwritten while it is read.
  void CheckSharing(const RotaryArgs<T>& args) const {
    const RotaryTensor<T>* tensors[] = {&args.query, &args.key};
    const auto bytes = [&](const RotaryTensor<T>& t) {
      return static_cast<uintptr_t>(args.batch * args.length * t.heads * args.head_size) *
             sizeof(T);
    };
    for (int in = 0; in < 2; ++in) {
      for (int out = 0; out < 2; ++out) {
        const auto from = reinterpret_cast<uintptr_t>(tensors[in]->from.data);
        const auto to = reinterpret_cast<uintptr_t>(tensors[out]->to.data);
        if (in == out && from == to) continue;
        if (from >= to + bytes(*tensors[out]) || to >= from + bytes(*tensors[in])) continue;
        RefuseNode(node_, Named(static_cast<spec::rotary::RotaryOutput>(out)), " overlaps input ",
                   spec::rotary::kInputNames[in],
                   " in memory; an output needs its input's buffer or one of its own");
      }
    }
  }

  const OrtApi& api_;
  const std::string node_;
  const RotaryParams params_;
  const RunFrequencies run_frequencies_;
  const Engine engine_;
};

// Both outputs may have their inputs' buffers, where nothing else reads these.
inline size_t ORT_API_CALL RotaryMayInplace(int** inputs, int** outputs) {
  *inputs = new int[2]{spec::rotary::kQuery, spec::rotary::kKey};
  *outputs = new int[2]{spec::rotary::kRotatedQuery, spec::rotary::kRotatedKey};
  return 2;
}
inline void ORT_API_CALL ReleaseRotaryMayInplace(int* inputs, int* outputs) {
  delete[] inputs;
  delete[] outputs;
}

// The op for tensors of type T under all its names. Without `infer_shapes` the runtime gets no
// shape function.
template <typename T, typename Engine>
std::vector<OrtCustomOp> MakeRotaryOps(bool infer_shapes) {
  auto ops = MakeOps<RotaryNode<T, Engine>>(infer_shapes ? InferRotaryShapes : nullptr);
  for (OrtCustomOp& op : ops) {
    op.GetMayInplace = RotaryMayInplace;
    op.ReleaseMayInplace = ReleaseRotaryMayInplace;
  }
  return ops;
}

}  // namespace rope

#endif  // ROPE_ROTARY_OP_H_
