#include "run_frequencies.h"

#include "attribute_values.h"
#include "spec.gen.h"

namespace rope {

RunFrequencies ReadRunFrequencies(const NodeInfo& node, const std::vector<float>& frequencies) {
  RunFrequencies run;
  run.trained = NonNegative(node, spec::kAttrTrainedLength, spec::kDefaultTrainedLength);
  run.long_frequencies = FiniteFloats(node, spec::kAttrLongFrequencies);
  run.ntk = FiniteFloat(node, spec::kAttrDynamicNtk, spec::kDefaultDynamicNtk);
  run.linear = Flag(node, spec::kAttrDynamicLinear, spec::kDefaultDynamicLinear);
  const int given = !run.long_frequencies.empty() + (run.ntk != 0) + run.linear;
  if (given != (run.any() ? 1 : 0)) {
    node.RefuseAttribute(spec::kAttrTrainedLength, " is ", run.trained, "; with it exactly one of ",
                         spec::kAttrLongFrequencies, ", ", spec::kAttrDynamicNtk, " and ",
                         spec::kAttrDynamicLinear, " must be given, and without it none");
  }
  if (!run.long_frequencies.empty() && run.long_frequencies.size() != frequencies.size()) {
    node.RefuseAttribute(spec::kAttrLongFrequencies, " has ", run.long_frequencies.size(),
                         " values, ", spec::kAttrFrequencies, " has ", frequencies.size());
  }
  if (run.ntk != 0 && (run.ntk < 1 || frequencies.size() < 2)) {
    node.RefuseAttribute(spec::kAttrDynamicNtk, " is ", run.ntk,
                         "; it must be at least 1 and needs two frequencies");
  }
  return run;
}

}  // namespace rope
