#include "judge.h"

#include <algorithm>
#include <cmath>

#include "spec.gen.h"

namespace rope::hostile {
namespace {

// One sentence that names the node.
std::string JudgeError(const Case& c, const std::string& error) {
  const std::string start = c.op + " node 'hostile': ";
  const bool named = error.compare(0, start.size(), start) == 0 && error.size() > start.size() + 9;
  const bool newer = error.find(" was written for spec version ") != std::string::npos;
  if (!named && !newer) return "the error does not name its node: " + error;
  if (error.find('\n') != std::string::npos) return "the error is more than a sentence: " + error;
  if (c.distortions > 0 || c.allocations >= 0) return {};
  return "a valid case is refused: " + error;
}

double LargestOf(const Tensor& t, const Tensor& scales) {
  double largest = 0;
  const size_t count = t.bytes.size() / SizeOf(t.element);
  const size_t size =
      t.shape.empty() ? 1 : static_cast<size_t>(std::max<int64_t>(1, t.shape.back()));
  for (size_t i = 0; i < count; ++i) {
    const double x = std::abs(NumberAt(t.element, t.bytes.data(), i));
    const double scale = t.element == kInt8 ? NumberAt(kFloat, scales.bytes.data(), i / size) : 1;
    largest = std::max(largest, x * scale);
  }
  return largest;
}

// Of small finite numbers all results are finite. An output is a mean of values, so none is larger
// than the largest value.
std::string JudgeNumbers(const Case& c, const Outcome& outcome) {
  const bool attention = c.op == spec::kRotaryAttention;
  double most = INFINITY;
  if (attention) {
    most = std::max(LargestOf(c.inputs[spec::kValue], {}),
                    LargestOf(c.inputs[spec::kPastValue], c.inputs[spec::kPastValueScale]));
    most *= 1.01;  // bfloat16 rounds a mean by less than that
  }
  for (size_t i = 0; i < outcome.outputs.size(); ++i) {
    const Tensor& t = outcome.outputs[i];
    const bool log_sum_exp = attention && i == spec::kLogSumExp;
    for (size_t j = 0; j < t.bytes.size() / SizeOf(t.element); ++j) {
      const double x = NumberAt(t.element, t.bytes.data(), j);
      const bool right = std::isfinite(x) || (log_sum_exp && x == -INFINITY);
      const double limit = i == spec::kOutput ? most : INFINITY;
      if (right && std::abs(x) <= limit) continue;
      return "output " + std::to_string(i) + " has " + std::to_string(x) + " at " +
             std::to_string(j) + ", of values up to " + std::to_string(most);
    }
  }
  return {};
}

}  // namespace

std::string Judge(const Case& c, const Outcome& outcome) {
  if (!outcome.mistake.empty()) return outcome.mistake;
  if (!outcome.error.empty()) return JudgeError(c, outcome.error);
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    const bool must = c.outputs[i].wanted;
    if (outcome.outputs[i].present != must) {
      return "output " + std::to_string(i) + (must ? " is missing" : " is not wanted");
    }
    if (must && !c.outputs[i].promised.empty() &&
        c.outputs[i].promised != outcome.outputs[i].shape) {
      return "output " + std::to_string(i) + " has another shape than promised";
    }
  }
  return c.tame ? JudgeNumbers(c, outcome) : std::string();
}

std::string Compare(const Outcome& a, const Outcome& b) {
  if (a.error != b.error) return "another error: '" + a.error + "' and '" + b.error + "'";
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    const auto& x = a.outputs[i].bytes;
    const auto& y = b.outputs[i].bytes;
    const auto at = std::mismatch(x.begin(), x.end(), y.begin(), y.end()).first;
    if (x.size() == y.size() && at == x.end()) continue;
    return "output " + std::to_string(i) + " of two runs differs from byte " +
           std::to_string(at - x.begin()) + " of " + std::to_string(x.size()) + " on";
  }
  return {};
}

}  // namespace rope::hostile
