#include "rotary_calls_test.h"

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "check.h"
#include "fixture.h"
#include "model_bytes.h"
#include "ort_session.h"
#include "spec.gen.h"

namespace rope::test {
namespace {

constexpr int kFloat = 1;
constexpr int kInt32 = 6;
constexpr int kInt64 = 7;
constexpr int64_t kBatch = 2, kLength = 5, kSize = 24, kPairs = 8, kOffset = 3;

// A node that turns [batch, length, heads, size], and one call of it; tests change one thing.
struct Trial {
  NodeModel model;
  std::vector<Value> inputs, outputs;
  std::vector<int64_t> starts = {0, 0};  // position of the first token of each row
};

Value Numbers(const std::string& name, int64_t heads, uint32_t seed, int type) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Value v{name, {kBatch, kLength, heads, kSize}, {}, {}, type};
  const Element element = type == kFloat                                  ? Element::kFloat
                          : type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16 ? Element::kFloat16
                                                                          : Element::kBFloat16;
  for (int64_t i = 0; i < kBatch * kLength * heads * kSize; ++i) {
    v.floats.push_back(Rounded(element, normal(random)));
  }
  return v;
}

Trial Plain(int type = kFloat) {
  Trial t;
  t.model.node_name = "layer.0/rotary";
  t.model.op = "Rotary";
  t.model.inputs = {{"query", type, 4}, {"key", type, 4}};
  t.model.outputs = {{"rotated_query", type, 4}, {"rotated_key", type, 4}};
  t.model.attributes = {IntAttribute("spec_version", 7), IntAttribute("rotary_offset", kOffset),
                        FloatsAttribute("frequencies", Frequencies(2 * kPairs))};
  t.inputs = {Numbers("query", 3, 1, type), Numbers("key", 1, 2, type)};
  t.outputs = {{"rotated_query", {}, {}, {}}, {"rotated_key", {}, {}, {}}};
  return t;
}

void AddInput(Trial& t, size_t index, const Value& value) {
  while (t.model.inputs.size() < index) t.model.inputs.push_back({"", 0, 0});
  const int type = value.type == 0 ? kInt64 : value.type;
  t.model.inputs.push_back({value.name, type, static_cast<int>(value.shape.size())});
  t.inputs.push_back(value);
}

// A tensor turned in float64.
std::vector<double> Turned(const Value& v, const std::vector<int64_t>& starts) {
  std::vector<double> out(v.floats.begin(), v.floats.end());
  const auto frequencies = Frequencies(2 * kPairs);
  const int64_t heads = v.shape[2];
  for (int64_t head = 0; head < kBatch * kLength * heads; ++head) {
    const int64_t token = head / heads;
    const auto p =
        static_cast<float>(starts[static_cast<size_t>(token / kLength)] + token % kLength);
    for (int64_t x = 0; x < kPairs; ++x) {
      const auto angle = static_cast<double>(p * frequencies[static_cast<size_t>(x)]);
      const auto first = static_cast<size_t>(head * kSize + kOffset + x);
      const auto second = first + static_cast<size_t>(kPairs);
      const double a = static_cast<double>(v.floats[first]);
      const double b = static_cast<double>(v.floats[second]);
      out[first] = a * std::cos(angle) - b * std::sin(angle);
      out[second] = b * std::cos(angle) + a * std::sin(angle);
    }
  }
  return out;
}

void ExpectRight(const std::string& library, const std::string& what, Trial t, double allowed) {
  const Session session(t.model.Encode(), library, 2);
  Expect(session.error().empty(), what + ": " + session.error());
  if (!session.error().empty()) return;
  std::vector<std::vector<double>> truth;
  for (size_t i = 0; i < t.outputs.size(); ++i) truth.push_back(Turned(t.inputs[i], t.starts));
  const std::string error = session.Run(t.inputs, t.outputs);
  Expect(error.empty(), what + ": " + error);
  for (size_t i = 0; i < t.outputs.size() && error.empty(); ++i) {
    if (!t.outputs[i].buffer_of.empty()) continue;
    Expect(t.outputs[i].shape == t.inputs[i].shape, what + ": an output has another shape");
    Expect(Distance(t.outputs[i].floats, truth[i]) < allowed, what + ": an output is wrong");
  }
}

void TestRight(const std::string& library) {
  ExpectRight(library, "rotary", Plain(), 1e-6);
  ExpectRight(library, "rotary, float16", Plain(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16), 4e-3);
  ExpectRight(library, "rotary, bfloat16", Plain(ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16), 3e-2);
  Trial alone = Plain();
  alone.model.inputs.pop_back(), alone.model.outputs.pop_back();
  alone.inputs.pop_back(), alone.outputs.pop_back();
  ExpectRight(library, "rotary, no key", alone, 1e-6);
  Trial moved = Plain();
  moved.starts = {7, 131071 - 4};
  AddInput(moved, 4, {"offsets", {2}, {}, moved.starts, kInt32});
  ExpectRight(library, "rotary, offsets", moved, 1e-6);
  Trial placed = Plain();
  placed.starts = {9, 9};
  AddInput(placed, 2, {"positions", {1, kLength}, {}, {9, 10, 11, 12, 13}});
  ExpectRight(library, "rotary, positions", placed, 1e-6);
}

// An output that is its input's tensor.
void TestInPlace(const std::string& library) {
  Trial t = Plain();
  const auto wanted = Turned(t.inputs[0], t.starts);
  const Session session(t.model.Encode(), library, 2);
  if (!session.error().empty()) return;
  t.outputs[0].buffer_of = "query";
  const std::string error = session.Run(t.inputs, t.outputs);
  Expect(error.empty(), "rotary in place: " + error);
  Expect(Distance(t.outputs[0].floats, wanted) < 1e-6, "rotary in place: the result is wrong");
}

struct Bad {
  const char* name;
  std::function<void(Trial&)> break_it;
  std::vector<std::string> wanted;  // what the sentence must hold
};

void TestBad(const std::string& library) {
  const auto attribute = [](const Message& a) {
    return [a](Trial& t) { t.model.attributes.push_back(a); };
  };
  const std::vector<Bad> cases = {
      {"newer spec",
       [](Trial& t) {
         t.model.attributes[0] = IntAttribute("spec_version", spec::kSpecVersion + 1);
       },
       {"layer.0/rotary", "spec version " + std::to_string(spec::kSpecVersion + 1),
        "this library knows " + std::to_string(spec::kSpecVersion), "update librope_ops"}},
      {"no frequencies", [](Trial& t) { t.model.attributes.pop_back(); }, {"no values"}},
      {"format",
       attribute(StringAttribute("tensor_format", "dhsb")),
       {"'dhsb'", "'bshd', 'sbhd', 'bhsd' or 'thd'"}},
      {"key's output",
       [](Trial& t) { t.model.outputs.pop_back(), t.outputs.pop_back(); },
       {"must be given together"}},
      {"lengths of nothing",
       [](Trial& t) { AddInput(t, 3, {"cu_seqlens", {2}, {}, {0, 5}, kInt32}); },
       {"cu_seqlens needs tensor_format 'thd'"}},
      {"offset",
       [](Trial& t) { AddInput(t, 4, {"offsets", {2}, {}, {0, -1}, kInt32}); },
       {"seqlen_offsets [2]", "-1 at place 1"}},
      {"positions",
       [](Trial& t) { AddInput(t, 2, {"positions", {1, 4}, {}, {0, 1, 2, 3}}); },
       {"position_ids [1, 4]", "[1, 5]", "query [2, 5, 3, 24]"}},
      {"packed bounds",
       [](Trial& t) {
         t.model.attributes.push_back(StringAttribute("tensor_format", "thd"));
         for (size_t i = 0; i < 2; ++i) {
           t.model.inputs[i].rank = t.model.outputs[i].rank = 3;
           t.inputs[i].shape = {kBatch * kLength, t.inputs[i].shape[2], kSize};
         }
         AddInput(t, 3, {"cu_seqlens", {3}, {}, {0, 11, 10}, kInt32});
       },
       {"cu_seqlens [3]", "10 at place 2 after 11", "must not descend"}},
      {"bound output",
       [](Trial& t) {
         t.outputs[1].shape = {kBatch, kLength, 1, kSize + 1};
         t.outputs[1].floats.assign(static_cast<size_t>(kBatch * kLength * (kSize + 1)), 0);
       },
       {"rotated_key"}},
  };
  for (const Bad& bad : cases) {
    Trial t = Plain();
    bad.break_it(t);
    const Session session(t.model.Encode(), library, 1);
    std::string error = session.error();
    if (error.empty()) error = session.Run(t.inputs, t.outputs);
    Expect(!error.empty(), std::string("rotary, ") + bad.name + " was accepted");
    for (const std::string& wanted : bad.wanted) {
      Expect(
          error.find(wanted) != std::string::npos,
          std::string("rotary, ") + bad.name + ": the sentence lacks '" + wanted + "': " + error);
    }
  }
}

}  // namespace

void TestRotaryCalls(const std::string& library) {
  TestRight(library);
  TestInPlace(library);
  TestBad(library);
}

}  // namespace rope::test
