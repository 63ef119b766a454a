// The op for one element type, whatever computes it.
#ifndef ROPE_ROTARY_ATTENTION_OP_H_
#define ROPE_ROTARY_ATTENTION_OP_H_

#include <string>
#include <type_traits>
#include <vector>

#include "attention.h"
#include "attributes.h"
#include "inputs.h"
#include "make_op.h"
#include "node_info.h"
#include "numbers.h"
#include "refuse.h"
#include "rotary_attention.h"
#include "run_frequencies.h"
#include "spec.gen.h"

namespace rope {

// What computes runs is an engine:
//
//   class Engine {
//    public:
//     static constexpr const char* kProvider;     // execution provider; null is the CPU's
//     static constexpr Numbers kNumbers;          // where it finds them
//     static OrtMemType MemoryOf(size_t input);   // where an input has to lie
//     explicit Engine(const OrtApi& api);
//     // Computes one run; the text says what went wrong, if anything did.
//     template <typename T, typename C>
//     std::string Run(OrtKernelContext*, const AttentionParams&,
//                     const AttentionArgs<T, C>&) const;
//     // The same with numbers on the device. The rule gives the frequencies of a call; where the
//     // host has chosen them by total_length, `chosen` says so.
//     template <typename T, typename C>
//     std::string Run(OrtKernelContext*, const AttentionParams&, const FrequencyRule&,
//                     bool chosen, const AttentionArgs<T, C>&) const;
//   };

// One node of a session. Runs may come at the same time, so nothing here changes.
template <typename T, typename C, typename Engine>
class RotaryAttention {
 public:
  using Slots = spec::rotary_attention::Slots;
  using Element = T;
  using CacheElement = C;
  static constexpr const char* kProvider = Engine::kProvider;
  static OrtMemType MemoryOf(size_t input) { return Engine::MemoryOf(input); }

  RotaryAttention(const OrtApi& api, const OrtKernelInfo* info)
      : api_(api),
        node_(NodeTitle(api, info, Slots::kName)),
        params_(ReadAttributes(api, info, node_)),
        run_frequencies_(ReadRunFrequencies(NodeInfo(api, info, node_), params_.frequencies)),
        engine_(api) {
    CheckCacheType(NodeInfo(api, info, node_), CacheTypeName());
    if (Engine::kNumbers == Numbers::kOnDevice) CheckDeviceNumbers();
  }
  RotaryAttention(const RotaryAttention&) = delete;
  RotaryAttention& operator=(const RotaryAttention&) = delete;

  void Compute(OrtKernelContext* context) const {
    const Inputs inputs = ReadInputs(api_, context);
    AttentionArgs<T, C> args = CheckInputs<T, C>(params_, inputs, node_, Engine::kNumbers);
    CreateOutputs(context, inputs[spec::kQuery].shape.size(), args);
    const std::string error = Run(context, args);
    if (!error.empty()) throw Failure(NodeText(node_, error), ORT_FAIL);
  }

 private:
  static const char* CacheTypeName() {
    if (std::is_same_v<T, C>) return "same";
    if (std::is_same_v<C, int8_t>) return "int8";
    return std::is_same_v<C, Float16> ? "float16" : "bfloat16";
  }

  std::string Run(OrtKernelContext* context, const AttentionArgs<T, C>& args) const {
    if constexpr (Engine::kNumbers == Numbers::kOnDevice) {
      if (!run_frequencies_.any()) return engine_.Run(context, params_, {}, false, args);
      if (args.total_length > 0) return engine_.Run(context, ParamsOf(args), {}, true, args);
      return engine_.Run(context, params_, run_frequencies_.Rule(params_.frequencies.size()), false,
                         args);
    } else {
      return run_frequencies_.any() ? engine_.Run(context, ParamsOf(args), args)
                                    : engine_.Run(context, params_, args);
    }
  }

  // What the host has to work out from numbers.
  void CheckDeviceNumbers() const {
    const auto refuse = [&](const char* what) {
      RefuseNode(node_, what,
                 " only where the host reads lengths and ids; register the library without ",
                 kDeviceInputs, ", and without enable_cuda_graph");
    };
    if (params_.ring) refuse("a cache is a ring");
    if (params_.document_restart) refuse("positions start anew in each document");
  }

  // The call's parameters, with the frequencies for how far it reaches.
  AttentionParams ParamsOf(const AttentionArgs<T, C>& args) const {
    AttentionParams params = params_;
    params.frequencies = run_frequencies_.At(params.frequencies, ReachOf(params_, args));
    return params;
  }

  void CreateOutputs(OrtKernelContext* context, size_t query_rank,
                     AttentionArgs<T, C>& args) const {
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
    const auto create_present = [&](spec::RotaryAttentionOutput i, int64_t channels, auto& to) {
      const int64_t rows = args.present_rows;
      using E = std::remove_reference_t<decltype(*to.data)>;
      to = {static_cast<E*>(memory_of(i, {args.batch, kv_heads, rows, channels})),
            kv_heads * rows * channels, rows * channels, channels};
    };
    create_present(spec::kPresentKey, args.head_size, args.present_key);
    create_present(spec::kPresentValue, args.v_head_size, args.present_value);
    if constexpr (std::is_same_v<C, int8_t>) {
      create_present(spec::kPresentKeyScale, 1, args.present_key_scale);
      create_present(spec::kPresentValueScale, 1, args.present_value_scale);
    }
    args.log_sum_exp =
        static_cast<float*>(memory_of(spec::kLogSumExp, {args.batch, heads, args.length}));
    CheckSharing(args);
    // A tensor without elements may have no address.
    const bool empty = args.batch == 0 || args.length == 0;
    if (args.output.data == nullptr && !empty) RefuseNode(node_, "the output is missing");
  }

  // A host may bind one buffer to a past and its present; anything else that
  // overlaps would be overwritten while it is read.
  void CheckSharing(const AttentionArgs<T, C>& args) const {
    const auto check = [&](spec::RotaryAttentionInput past, const auto& from,
                           spec::RotaryAttentionOutput present, const auto& to, bool pair) {
      const auto begin = reinterpret_cast<uintptr_t>(from.data);
      const auto other = reinterpret_cast<uintptr_t>(to.data);
      if (begin == 0 || other == 0 || (pair && begin == other)) return;
      const auto bytes = [&](const auto& rows) {
        return static_cast<uintptr_t>(args.batch * rows.batch_stride) * sizeof(*rows.data);
      };
      if (begin >= other + bytes(to) || other >= begin + bytes(from)) return;
      RefuseNode(node_, "output ", spec::kOutputNames[present], " overlaps input ",
                 spec::kInputNames[past],
                 " in memory; past and present need one buffer or two separate ones");
    };
    const auto check_all = [&](spec::RotaryAttentionInput past, const auto& from) {
      check(past, from, spec::kPresentKey, args.present_key, past == spec::kPastKey);
      check(past, from, spec::kPresentValue, args.present_value, past == spec::kPastValue);
      check(past, from, spec::kPresentKeyScale, args.present_key_scale,
            past == spec::kPastKeyScale);
      check(past, from, spec::kPresentValueScale, args.present_value_scale,
            past == spec::kPastValueScale);
    };
    check_all(spec::kPastKey, args.past_key);
    check_all(spec::kPastValue, args.past_value);
    check_all(spec::kPastKeyScale, args.past_key_scale);
    check_all(spec::kPastValueScale, args.past_value_scale);
  }

  const OrtApi& api_;
  const std::string node_;
  const AttentionParams params_;
  const RunFrequencies run_frequencies_;
  const Engine engine_;
};

// The op for tensors of type T and caches of type C under all its names. Without `infer_shapes` the
// runtime gets no shape function.
template <typename T, typename C, typename Engine>
std::vector<OrtCustomOp> MakeAttentionOps(bool infer_shapes) {
  return MakeOps<RotaryAttention<T, C, Engine>>(infer_shapes ? InferRotaryAttentionShapes
                                                             : nullptr);
}

}  // namespace rope

#endif  // ROPE_ROTARY_ATTENTION_OP_H_
