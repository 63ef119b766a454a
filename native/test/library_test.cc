// The op library inside a real ONNX Runtime: right results, and a sentence for
// everything that is wrong. Built with sanitizers by default.
//
//   library_test LIBONNXRUNTIME LIBROPE_OPS
//
// plain_library_test is the same without sanitizers, for the library as it is
// shipped under the oldest and newest runtimes.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>

#include "calls_test.h"
#include "check.h"
#include "fixture.h"
#include "model_bytes.h"
#include "ort_session.h"
#include "reference.h"
#include "rotary_calls_test.h"
#include "spec.gen.h"

namespace rope::test {
namespace {

constexpr int kFloat = 1;
constexpr int kInt64 = 7;
constexpr int kInt32 = 6;

std::string g_library;

// A node and one call of it, both valid; tests break one thing at a time.
struct Trial {
  NodeModel model;
  std::vector<Value> inputs, outputs;
  Call call;

  Value& Input(const std::string& name) {
    for (Value& v : inputs) {
      if (v.name == name) return v;
    }
    std::abort();
  }
  void SetAttribute(const std::string& name, const Message& attribute) {
    for (Message& a : model.attributes) {
      if (a.bytes().compare(2, name.size(), name) == 0) {
        a = attribute;
        return;
      }
    }
    model.attributes.push_back(attribute);
  }
};

Trial ValidTrial() {
  Trial t;
  Call& c = t.call;
  c.params.num_heads = 4;
  c.params.kv_num_heads = 2;
  c.params.frequencies = Frequencies(16);
  c.params.bands.push_back({5, 1, -3});
  c.batch = 2;
  c.length = 7;
  c.past = 9;
  c.head_size = 16;
  c.v_head_size = 20;
  c.flat = true;
  c.first_position = 9;
  c.left_padding = 2;
  c.Draw(1);
  t.model.inputs = {{"query", kFloat, 3},         {"key", kFloat, 3},
                    {"value", kFloat, 3},         {"past_key", kFloat, 4},
                    {"past_value", kFloat, 4},    {"position_ids", kInt64, 2},
                    {"attention_mask", kInt64, 2}};
  t.model.outputs = {
      {"output", kFloat, 3}, {"present_key", kFloat, 4}, {"present_value", kFloat, 4}};
  t.model.attributes = {
      IntAttribute("spec_version", 1),      IntAttribute("num_heads", 4),
      IntAttribute("kv_num_heads", 2),      FloatsAttribute("frequencies", c.params.frequencies),
      IntsAttribute("band_starts", {0, 5}), FloatsAttribute("band_query_offsets", {0, -3})};
  t.inputs = {{"query", {2, 7, 64}, c.query, {}},
              {"key", {2, 7, 32}, c.key, {}},
              {"value", {2, 7, 40}, c.value, {}},
              {"past_key", {2, 2, 9, 16}, c.past_key, {}},
              {"past_value", {2, 2, 9, 20}, c.past_value, {}},
              {"position_ids", {1, 7}, {}, c.positions},
              {"attention_mask", {2, 16}, {}, c.mask}};
  t.outputs = {{"output", {}, {}, {}}, {"present_key", {}, {}, {}}, {"present_value", {}, {}, {}}};
  return t;
}

double Distance(const std::vector<float>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = Worse(largest, std::abs(a[i] - b[i]));
  return largest;
}

void TestValid() {
  for (const int threads : {1, 2}) {
    Trial t = ValidTrial();
    const Session session(t.model.Encode(), g_library, threads);
    Expect(session.error().empty(), "session: " + session.error());
    if (!session.error().empty()) return;
    const std::string error = session.Run(t.inputs, t.outputs);
    Expect(error.empty(), "run: " + error);
    const auto truth = Reference<double>(t.call.params, t.call.Args());
    t.call.output = t.outputs[0].floats;
    Expect(t.outputs[0].shape == std::vector<int64_t>{2, 7, 80}, "output has another shape");
    Expect(Distance(t.call.OutputByHead(), truth.output) < 1e-5, "output is wrong");
    Expect(Distance(t.outputs[1].floats, truth.present_key) < 1e-5, "present_key is wrong");
  }
}

// Two runs of one session at the same time.
void TestConcurrentRuns() {
  Trial t = ValidTrial();
  const Session session(t.model.Encode(), g_library, 2);
  if (!session.error().empty()) return;
  std::vector<std::vector<Value>> results(4, t.outputs);
  std::vector<std::thread> threads;
  for (auto& result : results) {
    threads.emplace_back([&session, &result, inputs = t.inputs]() mutable {
      for (int i = 0; i < 20; ++i) {
        for (Value& v : result) v.shape.clear();
        if (!session.Run(inputs, result).empty()) result[0].floats.clear();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& result : results) {
    Expect(!result[0].floats.empty() && result[0].floats == results[0][0].floats,
           "runs at the same time disturb each other");
  }
}

// Optional inputs and outputs may be left out.
void TestLeftOut() {
  Trial t = ValidTrial();
  for (const size_t i : {3, 4, 5}) t.model.inputs[i].name.clear();
  t.model.outputs[1].name.clear();
  Value mask = t.Input("attention_mask");
  mask.shape = {1, 7};
  mask.ints.assign(7, 1);
  t.inputs.erase(t.inputs.begin() + 3, t.inputs.end());
  t.inputs.push_back(mask);
  t.outputs.erase(t.outputs.begin() + 1);
  const Session session(t.model.Encode(), g_library, 1);
  Expect(session.error().empty(), "left out: " + session.error());
  if (!session.error().empty()) return;
  const std::string error = session.Run(t.inputs, t.outputs);
  Expect(error.empty(), "left out: " + error);
}

struct Bad {
  const char* name;
  std::function<void(Trial&)> break_it;
  std::vector<std::string> wanted;  // what the sentence must hold
};

void ExpectRefused(const Bad& bad) {
  Trial t = ValidTrial();
  bad.break_it(t);
  const Session session(t.model.Encode(), g_library, 1);
  std::string error = session.error();
  if (error.empty()) error = session.Run(t.inputs, t.outputs);
  Expect(!error.empty(), std::string(bad.name) + " was accepted");
  for (const std::string& wanted : bad.wanted) {
    Expect(error.find(wanted) != std::string::npos,
           std::string(bad.name) + ": the sentence lacks '" + wanted + "': " + error);
  }
  if (std::getenv("ROPE_TEST_VERBOSE") != nullptr) {
    std::printf("%s: %s\n", bad.name, error.c_str());
  }
}

void AddInput(Trial& t, size_t index, const char* name, int type, int rank) {
  while (t.model.inputs.size() < index) t.model.inputs.push_back({"", 0, 0});
  t.model.inputs.push_back({name, type, rank});
}

void TestBadNodes() {
  const float nan = std::nanf("");
  const auto attribute = [](const char* name, Message value) {
    return [name, value](Trial& t) { t.SetAttribute(name, value); };
  };
  const std::vector<Bad> cases = {
      {"newer spec",
       attribute("spec_version", IntAttribute("spec_version", spec::kSpecVersion + 1)),
       {"layer.0/attention", "spec version " + std::to_string(spec::kSpecVersion + 1),
        "this library knows " + std::to_string(spec::kSpecVersion), "update librope_ops"}},
      {"no spec", attribute("spec_version", IntAttribute("other", 1)), {"spec_version is missing"}},
      {"spec 0", attribute("spec_version", IntAttribute("spec_version", 0)), {"does not exist"}},
      {"no heads", attribute("num_heads", IntAttribute("num_heads", 0)), {"num_heads is 0"}},
      {"negative heads", attribute("kv_num_heads", IntAttribute("kv_num_heads", -4)), {"is -4"}},
      {"odd heads", attribute("num_heads", IntAttribute("num_heads", 5)), {"not a multiple"}},
      {"heads as float", attribute("num_heads", FloatAttribute("num_heads", 4)), {"type int"}},
      {"frequencies as text",
       attribute("frequencies", StringAttribute("frequencies", "1")),
       {"frequencies", "type floats"}},
      {"frequencies as ints",
       attribute("frequencies", IntsAttribute("frequencies", {1})),
       {"frequencies", "type floats"}},
      {"bands as int", attribute("band_starts", IntAttribute("band_starts", 5)), {"type ints"}},
      {"scale as int", attribute("scale", IntAttribute("scale", 1)), {"scale", "type float"}},
      {"NaN scale", attribute("scale", FloatAttribute("scale", nan)), {"scale", "finite"}},
      {"infinite gain", attribute("gain", FloatAttribute("gain", INFINITY)), {"gain", "finite"}},
      {"NaN frequency",
       attribute("frequencies", FloatsAttribute("frequencies", {1, nan})),
       {"frequencies", "place 1", "finite"}},
      {"layout",
       attribute("rotary_layout", StringAttribute("rotary_layout", "quarter")),
       {"'quarter'", "'half' or 'interleaved'"}},
      {"offset", attribute("rotary_offset", IntAttribute("rotary_offset", -1)), {"negative"}},
      {"causal 2", attribute("causal", IntAttribute("causal", 2)), {"causal is 2"}},
      {"window", attribute("window", IntAttribute("window", -5)), {"window is -5"}},
      {"first keys", attribute("first_keys", IntAttribute("first_keys", -4)), {"first_keys", "-4"}},
      {"softcap", attribute("softcap", FloatAttribute("softcap", -30)), {"softcap", "-30"}},
      {"groups, rotated",
       attribute("band_groups", IntsAttribute("band_groups", {1, 2})),
       {"rotated"}},
      {"strange cache", attribute("cache", StringAttribute("cache", "x")), {"'x'"}},
      {"bands down", attribute("band_starts", IntsAttribute("band_starts", {0, 0})), {"ascend"}},
      {"bands late",
       attribute("band_starts", IntsAttribute("band_starts", {1, 5})),
       {"first band"}},
      {"band count",
       attribute("band_query_offsets", FloatsAttribute("band_query_offsets", {1})),
       {"1 values for 2 bands"}},
      {"key scales",
       attribute("band_key_scales", FloatsAttribute("band_key_scales", {1, 0.5f})),
       {"band_key_scales", "0.5", "needs 1"}},
      {"bidirectional bands", attribute("causal", IntAttribute("causal", 0)), {"causal = 1"}},
      {"no documents",
       attribute("document_mask", StringAttribute("document_mask", "anchor")),
       {"document_mask", "document_ids"}},
      {"lengths of nothing",
       [](Trial& t) {
         AddInput(t, 8, "cache_length", kInt32, 1);
         for (const size_t i : {3, 4}) t.model.inputs[i].name.clear();
       },
       {"cache_length needs past_key"}},
      {"restart between bands",
       [](Trial& t) {
         AddInput(t, 9, "document_ids", kInt64, 2);
         t.SetAttribute("document_restart", IntAttribute("document_restart", 1));
       },
       {"document_restart", "one band"}},
      {"ring",
       [](Trial& t) {
         AddInput(t, 8, "cache_length", kInt32, 1);
         t.inputs.push_back({"cache_length", {2}, {}, {9, 9}, kInt32});
         t.SetAttribute("band_starts", IntsAttribute("band_starts", {}));
         t.SetAttribute("band_query_offsets", FloatsAttribute("band_query_offsets", {}));
         t.SetAttribute("first_keys", IntAttribute("first_keys", 2));
         t.SetAttribute("window", IntAttribute("window", INT64_MAX));
         t.SetAttribute("cache_ring", IntAttribute("cache_ring", 1));
       },
       {"past_key [2, 2, 9, 16]", "needs 9223372036854775809 or more"}},
      {"axis",
       attribute("position_axes",
                 IntsAttribute("position_axes", std::vector<int64_t>(8, INT64_MAX))),
       {"position_axes holds 9223372036854775807", "the number of an axis of position_ids"}},
      {"half a past", [](Trial& t) { t.model.inputs[4].name.clear(); }, {"together"}},
  };
  for (const Bad& bad : cases) ExpectRefused(bad);
}

void TestBadInputs() {
  const auto shape = [](const char* input, std::vector<int64_t> dims) {
    return [input, dims](Trial& t) {
      Value& v = t.Input(input);
      int64_t count = 1;
      for (const int64_t d : dims) count *= d;
      v.shape = dims;
      if (v.ints.empty()) v.floats.assign(static_cast<size_t>(count), 0.5f);
      if (!v.ints.empty()) v.ints.assign(static_cast<size_t>(count), 1);
    };
  };
  // The last dimension's rank is part of the model, so rank changes change both.
  const auto rank = [shape](size_t index, const char* input, std::vector<int64_t> dims) {
    return [=](Trial& t) {
      t.model.inputs[index].rank = static_cast<int>(dims.size());
      shape(input, dims)(t);
    };
  };
  const auto added = [](size_t index, const char* name, std::vector<int64_t> dims,
                        std::vector<float> numbers, std::vector<int64_t> ids) {
    return [=](Trial& t) {
      AddInput(t, index, name, ids.empty() ? kFloat : kInt64, static_cast<int>(dims.size()));
      t.inputs.push_back({name, dims, numbers, ids});
    };
  };
  const auto position = [](size_t place, int64_t value) {
    return [=](Trial& t) { t.Input("position_ids").ints[place] = value; };
  };
  const std::vector<Bad> cases = {
      {"query width",
       shape("query", {2, 7, 66}),
       {"layer.0/attention", "query [2, 7, 66]", "num_heads 4"}},
      {"query rank", rank(0, "query", {2, 448}), {"query [2, 448]", "3 or 4 dimensions"}},
      {"query heads", rank(0, "query", {2, 5, 7, 16}), {"query [2, 5, 7, 16]", "num_heads 4"}},
      {"no channels", shape("query", {2, 7, 0}), {"no channels"}},
      {"nothing of a large size",
       shape("query", {0, int64_t{1} << 40, 64}),
       {"query [0, 1099511627776, 64] has no elements", "too large together"}},
      {"key length", shape("key", {2, 6, 32}), {"key [2, 6, 32]", "query [2, 7, 64]", "length 6"}},
      {"key size",
       shape("key", {2, 7, 24}),
       {"key [2, 7, 24]", "head size 12", "query [2, 7, 64]"}},
      {"value batch", shape("value", {1, 7, 40}), {"value [1, 7, 40]", "batch 1"}},
      {"rotation",
       [](Trial& t) {
         t.SetAttribute("frequencies", FloatsAttribute("frequencies", std::vector<float>(9, 1)));
       },
       {"9 frequencies", "head size 16"}},
      {"rotation offset",
       [](Trial& t) { t.SetAttribute("rotary_offset", IntAttribute("rotary_offset", INT64_MAX)); },
       {"frequencies from channel 9223372036854775807"}},
      {"past heads", shape("past_key", {2, 3, 9, 16}), {"past_key [2, 3, 9, 16]", "[2, 2, 9, 16]"}},
      {"past length",
       shape("past_value", {2, 2, 8, 20}),
       {"past_value [2, 2, 8, 20]", "[2, 2, 9, 20]", "past_key [2, 2, 9, 16]"}},
      {"past size", shape("past_value", {2, 2, 9, 16}), {"past_value", "value [2, 7, 40]"}},
      {"mask width",
       shape("attention_mask", {2, 15}),
       {"attention_mask [2, 15]", "[2, 16]", "past + length", "query [2, 7, 64]"}},
      {"mask batch", shape("attention_mask", {3, 16}), {"attention_mask [3, 16]"}},
      {"positions width", shape("position_ids", {2, 8}), {"position_ids [2, 8]", "[2, 7]"}},
      {"negative position", position(3, -1), {"position_ids [1, 7]", "-1", "place 3"}},
      {"huge position", position(6, INT64_MAX), {"9223372036854775807", "place 6"}},
      {"position gap", position(4, 20), {"20 in row 0 at place 4", "consecutive"}},
      {"bias",
       added(7, "attention_bias", {2, 1, 7, 15}, std::vector<float>(210), {}),
       {"attention_bias [2, 1, 7, 15]", "[2, 4, 7, 16]", "query [2, 7, 64]"}},
      {"bias rank",
       added(11, "bias_before_softcap", {1, 2, 4, 7, 16}, std::vector<float>(896), {}),
       {"bias_before_softcap [1, 2, 4, 7, 16]", "[2, 4, 7, 16]"}},
      {"sinks", added(10, "sink_logits", {2}, {0, 0}, {}), {"sink_logits [2]", "[4]", "num_heads"}},
      {"NaN sink",
       added(10, "sink_logits", {4}, {0, 1, NAN, 0}, {}),
       {"sink_logits [4]", "nan", "head 2"}},
      {"ids",
       added(9, "document_ids", {2, 7}, {}, std::vector<int64_t>(14, 1)),
       {"document_ids [2, 7]", "[2, 16]", "past_key"}},
      {"id",
       added(9, "document_ids", {1, 16}, {}, {0, 0, 0, 1, 1, 1, 1, 1, -1, 1, 1, 1, -3, 1, 1, 1}),
       {"document_ids [1, 16]", "-3 in row 0 at place 12"}},
      {"bound output",
       [](Trial& t) {
         t.outputs[1].shape = {2, 2, 17, 16};
         t.outputs[1].floats.assign(2 * 2 * 17 * 16, 0);
       },
       {"present_key"}},
  };
  for (const Bad& bad : cases) ExpectRefused(bad);
}

// Hidden tokens may stand anywhere: only real ones are checked.
void TestHiddenPositions() {
  Trial t = ValidTrial();
  Value& mask = t.Input("attention_mask");
  for (const size_t row : {0, 1}) {
    for (const size_t j : {9, 10}) mask.ints[row * 16 + j] = 0;
  }
  Value& positions = t.Input("position_ids");
  positions.ints = {-1, INT64_MAX, 11, 12, 13, 14, 15};
  const Session session(t.model.Encode(), g_library, 1);
  const std::string error =
      session.error().empty() ? session.Run(t.inputs, t.outputs) : session.error();
  Expect(error.empty(), "positions of hidden tokens: " + error);
}

}  // namespace
}  // namespace rope::test

int main(int argc, char** argv) {
  using namespace rope::test;
  constexpr int kSkipped = 77;
  const char* runtime =
      argc > 1 && argv[1][0] != '\0' ? argv[1] : std::getenv("ONNXRUNTIME_SHARED_LIBRARY_PATH");
  if (argc < 3 || runtime == nullptr) {
    std::printf("skipped: set ONNXRUNTIME_SHARED_LIBRARY_PATH to an ONNX Runtime library\n");
    return kSkipped;
  }
  if (FILE* file = std::fopen(runtime, "rb"); file != nullptr) {
    std::fclose(file);
  } else {
    std::printf("skipped: %s is not there\n", runtime);
    return kSkipped;
  }
  if (const std::string error = OpenRuntime(runtime); !error.empty()) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return 1;
  }
  g_library = argv[2];
  TestValid();
  TestReach();
  TestCalls(g_library);
  TestRotaryCalls(g_library);
  TestConcurrentRuns();
  TestLeftOut();
  TestBadNodes();
  TestBadInputs();
  TestHiddenPositions();
  std::printf("ONNX Runtime %s: %d failures\n", RuntimeVersion(), g_failures);
  return g_failures == 0 ? 0 : 1;
}
