#include "calls_test.h"

#include <algorithm>
#include <cmath>

#include "check.h"
#include "fixture.h"
#include "model_bytes.h"
#include "ort_session.h"
#include "reference.h"
#include "run_frequencies.h"

namespace rope::test {
namespace {

constexpr int kFloat = 1;
constexpr int kInt32 = 6;
constexpr int kInt64 = 7;
constexpr int kFloat16 = 10;
constexpr int kBFloat16 = 16;

// The call as a model of one node with its feeds. An empty tensor that the op
// may do without is left out altogether.
struct Prepared {
  NodeModel model;
  std::vector<Value> inputs, outputs;
  int element = kFloat;  // of the call's tensors

  void Input(const std::string& name, std::vector<int64_t> shape, const std::vector<float>& floats,
             const std::vector<int64_t>& ints, int integer = kInt64) {
    if (floats.empty() && ints.empty()) {
      model.inputs.push_back({"", 0, 0});
      return;
    }
    const int type = floats.empty() ? integer : element;
    model.inputs.push_back({name, type, static_cast<int>(shape.size())});
    inputs.push_back({name, std::move(shape), floats, ints, type, {}});
  }
  void Output(const std::string& name, int rank, bool wanted, int type,
              const std::string& buffer_of = "") {
    model.outputs.push_back({wanted ? name : "", type, rank});
    if (wanted) outputs.push_back({name, {}, {}, {}, 0, {}, buffer_of});
  }
};

Prepared Prepare(const Call& c) {
  const AttentionParams& p = c.params;
  Prepared out;
  if (c.element == Element::kFloat16) out.element = kFloat16;
  if (c.element == Element::kBFloat16) out.element = kBFloat16;
  const auto rows = [&](int64_t heads, int64_t count, int64_t size) {
    return c.flat ? std::vector<int64_t>{c.batch, count, heads * size}
                  : std::vector<int64_t>{c.batch, heads, count, size};
  };
  const int64_t cached = c.capacity < 0 ? c.past : c.capacity;
  out.Input("query", rows(p.num_heads, c.length, c.head_size), c.query, {});
  out.Input("key", rows(p.kv_num_heads, c.NewKeys(), c.head_size), c.key, {});
  out.Input("value", rows(p.kv_num_heads, c.NewKeys(), c.v_head_size), c.value, {});
  out.Input("past_key", {c.batch, p.kv_num_heads, cached, c.head_size}, c.past_key, {});
  out.Input("past_value", {c.batch, p.kv_num_heads, cached, c.v_head_size}, c.past_value, {});
  out.Input("position_ids",
            c.axes > 0 ? std::vector<int64_t>{c.axes, c.batch, c.length}
                       : std::vector<int64_t>{1, c.length},
            {}, c.positions);
  out.Input("attention_mask", {c.batch, c.past + c.NewKeys()}, {}, c.mask);
  out.Input("attention_bias", c.bias_dims, c.bias, {});
  out.Input("cache_length", {c.batch}, {}, {c.row_past.begin(), c.row_past.end()}, kInt32);
  out.Input("document_ids", {c.batch, c.past + c.length}, {}, c.ids);
  out.Input("sink_logits", {p.num_heads}, c.sinks, {});
  out.Input("bias_before_softcap", c.bias_before_dims, c.bias_before, {});
  while (out.model.inputs.back().name.empty()) out.model.inputs.pop_back();
  out.Output("output", c.flat ? 3 : 4, true, out.element);
  out.Output("present_key", 4, c.keep_cache, out.element, c.in_place ? "past_key" : "");
  out.Output("present_value", 4, c.keep_cache, out.element, c.in_place ? "past_value" : "");
  out.Output("log_sum_exp", 3, true, kFloat);
  std::vector<int64_t> starts;
  std::vector<float> offsets;
  for (const Band& b : p.bands) {
    starts.push_back(b.start);
    offsets.push_back(static_cast<float>(b.query_offset));
  }
  const bool newest = c.axes > 0 || p.cross || !p.query_factors.empty() || !p.key_factors.empty();
  const int64_t version = p.has_distances() ? 7 : newest ? 6 : p.first_keys_shown ? 4 : 2;
  out.model.attributes = {IntAttribute("spec_version", version),
                          IntAttribute("num_heads", p.num_heads),
                          IntAttribute("kv_num_heads", p.kv_num_heads),
                          FloatsAttribute("frequencies", p.frequencies),
                          StringAttribute("rotary_layout", p.interleaved ? "interleaved" : "half"),
                          IntAttribute("window", p.window),
                          IntsAttribute("band_starts", starts),
                          FloatsAttribute("band_query_offsets", offsets),
                          StringAttribute("precision", p.fast ? "fast" : "exact"),
                          FloatAttribute("softcap", p.softcap),
                          IntAttribute("first_keys", p.first_keys),
                          IntAttribute("first_keys_shown", p.first_keys_shown)};
  if (newest) {
    out.model.attributes.push_back(IntsAttribute("position_axes", p.position_axes));
    out.model.attributes.push_back(IntAttribute("causal", p.causal));
    out.model.attributes.push_back(IntAttribute("cross", p.cross));
    out.model.attributes.push_back(FloatsAttribute("query_factors", p.query_factors));
    out.model.attributes.push_back(FloatsAttribute("key_factors", p.key_factors));
  }
  if (p.has_distances()) {
    out.model.attributes.push_back(FloatsAttribute("distance_slopes", p.distance_slopes));
    out.model.attributes.push_back(IntsAttribute("distance_starts", p.distance_starts));
    out.model.attributes.push_back(FloatsAttribute("distance_biases", p.distance_biases));
    out.model.attributes.push_back(IntAttribute("distance_shown", p.distance_shown));
  }
  if (!c.ids.empty()) {
    const bool anchor = p.document_mask == DocumentMask::kAnchor;
    out.model.attributes.push_back(StringAttribute("document_mask", anchor ? "anchor" : "intra"));
    out.model.attributes.push_back(IntAttribute("document_restart", p.document_restart));
  }
  return out;
}

// Nothing rounded to float32 comes closer than half a unit in the last place.
void Compare(const std::string& what, const std::vector<float>& got,
             const std::vector<float>& plain, const std::vector<double>& truth) {
  double largest = 0;
  for (const double v : truth) {
    if (!std::isinf(v)) largest = std::max(largest, std::abs(v));
  }
  const double allowed = 2 * std::max(Distance(plain, truth), std::ldexp(largest, -24));
  const double error = Distance(got, truth);
  Expect(error <= allowed,
         what + " is off by " + std::to_string(error) + ", allowed " + std::to_string(allowed));
}

void Check(Call c, const std::string& library) {
  c.Draw(7);
  Prepared prepared = Prepare(c);
  const Session session(prepared.model.Encode(), library, 2);
  std::string error = session.error();
  if (error.empty()) error = session.Run(prepared.inputs, prepared.outputs);
  Expect(error.empty(), c.name + ": " + error);
  if (!error.empty()) return;
  const auto truth = Reference<double>(c.params, c.Args());
  // Whether this CPU rounds what it may round is for kernel_test to say.
  const bool may_round = c.params.fast && c.element == Element::kFloat;
  const auto plain = Reference<float>(c.params, c.Args(), c.element,
                                      may_round ? Operands::kRounded : Operands::kFloat);
  c.output = prepared.outputs[0].floats;
  if (c.output.size() != truth.output.size()) c.flat = false;  // of another size: compared as it is
  Compare(c.name + ": output", c.OutputByHead(), plain.output, truth.output);
  Compare(c.name + ": log_sum_exp", prepared.outputs.back().floats, plain.log_sum_exp,
          truth.log_sum_exp);
  if (!c.keep_cache) return;
  c.present_key = prepared.outputs[1].floats;
  c.present_value = prepared.outputs[2].floats;
  Compare(c.name + ": present_key", c.PresentKeys(), plain.present_key, truth.present_key);
  Expect(c.RestIsRight(), c.name + ": the cache behind the last token is wrong");
}

}  // namespace

void TestReach() {
  Call c;
  c.params.num_heads = c.params.kv_num_heads = 1;
  c.params.document_restart = true;
  c.params.document_start = 5;
  c.length = 6;
  c.first_position = INT64_MAX - 5;
  c.documents = 3;
  c.Draw(1);
  c.ids = {1, 1, 1, 2, 2, 0};
  const int64_t reach = ReachOf<float>(c.params, c.Args());
  Expect(reach == 8, "documents of 3 tokens from 5 on reach " + std::to_string(reach) + ", not 8");
}

void TestCalls(const std::string& library) {
  Call plain;
  plain.params.num_heads = 6;
  plain.params.kv_num_heads = 2;
  plain.params.frequencies = Frequencies(32);
  plain.batch = 2;
  plain.head_size = plain.v_head_size = 32;
  const auto with = [&](const char* name, auto change) {
    Call c = plain;
    c.name = name;
    change(c);
    Check(c, library);
  };
  with("prefill", [](Call& c) { c.length = 13; });
  with("prefill, no cache", [](Call& c) { c.length = 13, c.keep_cache = false; });
  with("prefill, flat, positions, mask",
       [](Call& c) { c.length = 13, c.flat = true, c.first_position = 0, c.left_padding = 2; });
  with("decode", [](Call& c) { c.past = 41; });
  with("decode, positions, mask",
       [](Call& c) { c.past = 41, c.first_position = 41, c.left_padding = 3; });
  with("decode far out", [](Call& c) { c.past = 41, c.first_position = 131071; });
  with("chunk, bands", [](Call& c) {
    c.past = 21, c.length = 9, c.params.bands.push_back({8, 1, -5}), c.left_padding = 1;
  });
  with("chunk, window, half of the channels interleaved", [](Call& c) {
    c.past = 21, c.length = 9, c.params.window = 6, c.params.interleaved = true;
    c.params.frequencies = Frequencies(16);
  });
  for (const Element element : {Element::kFloat, Element::kFloat16, Element::kBFloat16}) {
    const auto typed = [&](const std::string& name, auto change) {
      with((name + ", " + NameOf(element)).c_str(), [&](Call& c) {
        c.element = element;
        change(c);
      });
    };
    typed("prefill", [](Call& c) { c.length = 113, c.flat = true; });
    typed("fast prefill", [](Call& c) { c.length = 113, c.params.fast = true; });
    typed("decode", [](Call& c) { c.past = 341, c.first_position = 131071; });
    typed("decode with a fixed cache",
          [](Call& c) { c.past = 341, c.row_past = {77, 341}, c.capacity = 350; });
    typed("chunk with a full cache",
          [](Call& c) { c.past = 41, c.length = 9, c.row_past = {41, 0}, c.capacity = 50; });
    typed("decode in place", [](Call& c) {
      c.past = 341, c.row_past = {77, 341}, c.capacity = 350, c.in_place = true;
    });
    typed("chunk in place, documents", [](Call& c) {
      c.past = 341, c.length = 9, c.row_past = {341, 20}, c.capacity = 350, c.in_place = true;
      c.documents = 3, c.change_every = 20, c.params.document_mask = DocumentMask::kAnchor;
    });
    typed("documents that start anew", [](Call& c) {
      c.length = 90, c.documents = 4, c.change_every = 9, c.params.document_restart = true;
    });
    typed("bias, softcap, sinks", [](Call& c) {
      c.past = 30, c.length = 9, c.params.softcap = 5, c.has_sinks = true, c.bias_hides = 4;
      c.bias_dims = {2, 1, 9, 39}, c.bias_before_dims = {1, 6, 1, 39};
    });
    typed("first keys and a window, bias of one key", [](Call& c) {
      c.past = 300, c.params.window = 40, c.params.first_keys = 4, c.bias_dims = {1, 6, 1, 301};
    });
    typed("three positions per token, factors", [](Call& c) {
      c.past = 30, c.length = 9, c.axes = 3, c.left_padding = 2;
      for (size_t x = 0; x < c.params.frequencies.size(); ++x) {
        c.params.position_axes.push_back(static_cast<int64_t>(x % 3));
      }
      for (int64_t i = 0; i < c.head_size; ++i) {
        c.params.query_factors.push_back(0.5f + static_cast<float>(i) / 32);
        c.params.key_factors.push_back(2 - static_cast<float>(i) / 32);
      }
    });
    typed("slopes and buckets by shown keys", [](Call& c) {
      c.past = 300, c.length = 9, c.left_padding = 40, c.params.distance_shown = true;
      for (int64_t h = 0; h < c.params.num_heads; ++h) {
        c.params.distance_slopes.push_back(std::ldexp(1.0f, -static_cast<int>(h)));
      }
      for (int64_t b = 0; b < 12; ++b) {
        c.params.distance_starts.push_back(b * b);
        for (int64_t h = 0; h < c.params.num_heads; ++h) {
          c.params.distance_biases.push_back(static_cast<float>((5 * b + 3 * h) % 11) / 4);
        }
      }
    });
    typed("keys of another text", [](Call& c) {
      c.params.causal = false, c.params.cross = true, c.params.frequencies.clear();
      c.past = 0, c.first_position = -1, c.length = 9, c.keys = 140, c.left_padding = 20;
    });
    typed("first keys that the mask shows", [](Call& c) {
      c.past = 300, c.length = 9, c.params.window = 40, c.left_padding = 60;
      c.params.first_keys = 4, c.params.first_keys_shown = true;
    });
  }
}

}  // namespace rope::test
