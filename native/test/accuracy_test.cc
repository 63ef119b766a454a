// Every target of this CPU against the float64 reference: the error may be at
// most twice that of a plain implementation in the same precision.
#include "accuracy_test.h"

#include <algorithm>
#include <cmath>

#include "check.h"
#include "fixture.h"
#include "reference.h"

namespace rope::test {
namespace {

double Largest(const std::vector<double>& values) {
  double largest = 0;
  for (const double v : values) {
    if (!std::isinf(v)) largest = std::max(largest, std::abs(v));
  }
  return largest;
}

// Nothing rounded to float32 comes closer than half a unit in the last place.
double Allowed(double plain, const std::vector<double>& truth) {
  return 2 * std::max(plain, Largest(truth) * std::ldexp(1.0, -24));
}

template <typename Random>
int64_t Pick(Random& random, std::initializer_list<int64_t> choices) {
  return choices.begin()[random() % choices.size()];
}

// Documents, first keys, biases, softcap and sinks, each in some of the calls.
void DrawMasks(Call& call, std::mt19937& random) {
  AttentionParams& p = call.params;
  const auto one_in = [&](uint32_t n) { return random() % n == 0; };
  if (one_in(2)) return;
  p.first_keys = Pick(random, {0, 1, 4, 70, 300});
  std::mt19937 shown = random;  // of its own: what else is drawn stays what it was
  shown.discard(1);
  p.first_keys_shown = shown() % 2 == 0;
  if (p.first_keys_shown && shown() % 2 == 0) {
    p.window = Pick(shown, {1, 5, 64});
    call.left_padding = Pick(shown, {0, 2, 70});
  }
  if (one_in(3)) p.softcap = one_in(2) ? 2.0f : 30.0f;
  if (one_in(2)) {
    call.documents = Pick(random, {1, 2, 3, 9});
    call.change_every = Pick(random, {1, 5, 40, 200});
    p.document_mask = one_in(2) ? DocumentMask::kAnchor : DocumentMask::kIntra;
    p.document_restart = p.bands.size() == 1 && one_in(2);
    p.document_start = Pick(random, {0, 3});
  }
  const std::vector<int64_t> all = {call.batch, p.num_heads, call.length, call.past + call.length};
  for (std::vector<int64_t>* dims : {&call.bias_dims, &call.bias_before_dims}) {
    if (!one_in(4)) continue;
    *dims = all;
    for (int64_t& dim : *dims) dim = one_in(3) ? 1 : dim;
  }
  call.bias_hides = Pick(random, {0, 0, 2, 9});
  call.has_sinks = one_in(3);
  const auto text = [](const std::vector<int64_t>& dims) {
    std::string out = "[";
    for (const int64_t dim : dims) out += std::to_string(dim) + " ";
    return out + "]";
  };
  call.name += " first keys " + std::to_string(p.first_keys) +
               (p.first_keys_shown ? " shown, window " + std::to_string(p.window) + " padding " +
                                         std::to_string(call.left_padding)
                                   : "") +
               " softcap " + std::to_string(p.softcap) + " documents " +
               std::to_string(call.documents) + "/" + std::to_string(call.change_every) +
               (p.document_restart ? " restart" : "") + " bias " + text(call.bias_dims) +
               " before " + text(call.bias_before_dims) + " hides " +
               std::to_string(call.bias_hides) + (call.has_sinks ? " sinks" : "");
}

// A raw cache in some of the calls, also where positions are too large for sums of angles.
void DrawRaw(Call& call, std::mt19937& random) {
  AttentionParams& p = call.params;
  if (random() % 4 != 0) return;
  p.raw_cache = true;
  p.document_restart = false;
  p.bands.back().key_scale = random() % 2 == 0 ? 1 : 0.3;
  if (random() % 4 == 0) call.first_position = Pick(random, {131060, 250000, 20000000});
  call.name += " raw, key scale " + std::to_string(p.bands.back().key_scale) + " from position " +
               std::to_string(call.first_position);
}

// Temperatures of queries in some of the calls.
void DrawTemperature(Call& call, std::mt19937 random) {
  if (random() % 5 != 0) return;
  call.params.temperature = {1, 0.25, 1, static_cast<double>(Pick(random, {1, 16, 1000}))};
  call.name += " temperature by " + std::to_string(call.params.temperature.group);
}

// Several positions for each token in some of the calls, and factors behind the rotation.
void DrawAxes(Call& call, std::mt19937 random) {
  AttentionParams& p = call.params;
  // What the op refuses beside several positions.
  const bool one_position = p.raw_cache || p.bands.size() > 1 || p.bands[0].MovesQuery() ||
                            p.document_restart || p.temperature.slope > 0 || p.frequencies.empty();
  if (!one_position && random() % 3 == 0) {
    call.axes = Pick(random, {1, 3, 4});
    for (size_t x = 0; x < p.frequencies.size(); ++x) {
      p.position_axes.push_back(static_cast<int64_t>(random() % static_cast<uint32_t>(call.axes)));
    }
    call.name += " axes " + std::to_string(call.axes);
  }
  for (std::vector<float>* factors : {&p.query_factors, &p.key_factors}) {
    if (random() % 4 != 0 || (p.raw_cache && factors == &p.key_factors)) continue;
    for (int64_t c = 0; c < call.head_size; ++c) {
      factors->push_back(0.5f + static_cast<float>(random() % 1000) / 1000.0f);
    }
    call.name += factors == &p.query_factors ? " query factors" : " key factors";
  }
}

// Keys of another text in some of the calls, which then have nothing that counts tokens.
void DrawCross(Call& call, int64_t budget, std::mt19937 random) {
  AttentionParams& p = call.params;
  const int64_t keys = Pick(random, {0, 1, 5, 64, 129, 300, 1500});
  if (random() % 6 != 0 ||
      call.batch * p.num_heads * call.length * keys * call.head_size > budget) {
    return;
  }
  p.cross = true;
  p.causal = p.raw_cache = p.document_restart = false;
  p.window = 0;
  p.frequencies.clear();
  p.bands = {Band{}};
  p.temperature = {};
  call.keys = keys;
  call.past = 0;
  call.row_past.clear();
  call.capacity = -1;
  call.in_place = false;
  call.first_position = -1;
  call.documents = 0;
  for (std::vector<int64_t>* dims : {&call.bias_dims, &call.bias_before_dims}) {
    if (!dims->empty() && dims->back() != 1) dims->back() = keys;
  }
  call.name += ", but " + std::to_string(keys) + " keys of another text";
}

// Biases by distance in some of the calls: slopes, buckets or both.
void DrawDistances(Call& call, std::mt19937 random) {
  AttentionParams& p = call.params;
  if (p.cross || random() % 3 != 0) return;
  const uint32_t kind = random() % 3;
  const auto heads = static_cast<size_t>(p.num_heads);
  const auto number = [&] { return static_cast<float>(random() % 1000) / 500.0f - 1.0f; };
  for (size_t h = 0; h < heads && kind != 1; ++h) {
    p.distance_slopes.push_back(std::ldexp(1.0f, -static_cast<int>(h % 9)) * (1 + number() / 2));
  }
  if (kind > 0) {
    int64_t start = p.causal ? 0 : -150;
    for (size_t b = 0; b < 24; ++b, start += Pick(random, {1, 1, 2, 9, 40})) {
      p.distance_starts.push_back(start);
      for (size_t h = 0; h < heads; ++h) p.distance_biases.push_back(number());
    }
  }
  p.distance_shown = random() % 2 == 0;
  call.name += kind == 0 ? " slopes" : kind == 1 ? " buckets" : " slopes and buckets";
  if (p.distance_shown) call.name += " of shown keys";
}

// Caches of another type in some of the calls.
void DrawCache(Call& call, std::mt19937 random) {
  if (random() % 3 != 0) return;
  call.cache = Element::kInt8;
  if (call.element == Element::kFloat && random() % 2 == 0) {
    call.cache = random() % 2 == 0 ? Element::kFloat16 : Element::kBFloat16;
  }
  call.name += std::string(", caches of ") + NameOf(*call.cache);
}

// Rings in some of the calls that have a window.
void DrawRing(Call& call, std::mt19937 random) {
  AttentionParams& p = call.params;
  if (!p.causal || p.cross || call.past == 0 || random() % 2 == 0) return;
  if (p.window == 0 || p.window > 1000) p.window = Pick(random, {1, 5, 64, 100});
  p.ring = true;
  p.document_restart = false;
  call.bias_dims.clear();
  call.bias_before_dims.clear();
  if (p.first_keys_shown) call.left_padding = std::min<int64_t>(call.left_padding, 0);
  call.capacity = -1;
  call.ring = p.first_keys + p.window + Pick(random, {0, 1, 13, 200});
  const int64_t total = call.past + call.length;
  if (random() % 2 == 0) {
    call.mask_width = std::min(total, std::max<int64_t>(1, call.batch * call.left_padding));
  }
  call.name += ", a ring of " + std::to_string(call.ring) + " rows, window " +
               std::to_string(p.window) + ", padding " + std::to_string(call.left_padding) +
               (call.mask_width > 0 ? " in a narrow mask" : "");
}

// A call drawn from all that the op can do, with at most `budget` products.
Call DrawCall(uint32_t seed, int64_t budget) {
  std::mt19937 random(seed);
  for (;;) {
    Call call;
    AttentionParams& p = call.params;
    p.kv_num_heads = Pick(random, {1, 2, 3});
    p.num_heads = p.kv_num_heads * Pick(random, {1, 3, 4, 8});
    call.head_size = Pick(random, {8, 16, 64, 80, 96, 128, 256, 30});
    call.v_head_size = random() % 4 == 0 ? Pick(random, {8, 20, 64, 128}) : call.head_size;
    call.batch = Pick(random, {1, 2});
    call.length = Pick(random, {1, 1, 1, 2, 3, 5, 7, 17, 33, 63, 65, 127, 129, 199});
    call.past = Pick(random, {0, 0, 1, 7, 64, 127, 128, 129, 300, 1500});
    if (call.batch * p.num_heads * call.length * (call.past + call.length) * call.head_size >
        budget) {
      continue;
    }
    const int64_t rotary = random() % 3 == 0 ? call.head_size / 4 * 2 : call.head_size;
    if (random() % 8 != 0) {
      p.frequencies = Frequencies(rotary, random() % 2 == 0 ? 10000 : 500000);
      p.rotary_offset = rotary < call.head_size ? Pick(random, {0, call.head_size - rotary}) : 0;
    }
    p.interleaved = random() % 3 == 0;
    p.exact_angles = random() % 4 == 0;
    p.causal = random() % 4 != 0;
    p.window = random() % 3 == 0 ? Pick(random, {1, 5, 64, 100, 1000000}) : 0;
    call.element = static_cast<Element>(random() % 3);
    p.fast = random() % 3 == 0;
    p.gain = random() % 4 == 0 ? 1.25f : 1.0f;
    p.scale = random() % 4 == 0 ? 0.3f : 0.0f;
    call.first_position = Pick(random, {-1, call.past, call.past + 1000, 131071 - call.length});
    if (p.causal && random() % 2 == 0) {
      const int64_t start = Pick(random, {1, 7, 50, 128, 400});
      p.bands.push_back({start, 1, -static_cast<double>(start / 2)});
      if (random() % 3 == 0) p.bands.push_back({start + 30, 0.5, 3});
    } else if (random() % 8 == 0) {
      p.bands[0] = {0, 1, -3};
    }
    if (call.past > 0 && random() % 3 == 0) {
      call.row_past = {static_cast<int32_t>(call.past)};
      if (call.batch > 1) call.row_past.push_back(static_cast<int32_t>(random() % call.past));
    }
    call.left_padding = Pick(random, {-1, -1, 0, 2, 70});
    call.flat = random() % 2 == 0;
    call.keep_cache = random() % 3 != 0;
    if (random() % 3 == 0) {
      call.capacity = call.past + call.length + Pick(random, {0, 1, 50});
      call.in_place = call.keep_cache && random() % 2 == 0;
    }
    call.name =
        "case " + std::to_string(seed) + ": heads " + std::to_string(p.num_heads) + "/" +
        std::to_string(p.kv_num_heads) + " d " + std::to_string(call.head_size) + "/" +
        std::to_string(call.v_head_size) + " batch " + std::to_string(call.batch) + " length " +
        std::to_string(call.length) + " past " + std::to_string(call.past) + " bands " +
        std::to_string(p.bands.size()) + " window " + std::to_string(p.window) + " causal " +
        std::to_string(p.causal) + " padding " + std::to_string(call.left_padding) + " flat " +
        std::to_string(call.flat) + " present " + std::to_string(call.keep_cache) + " row past " +
        (call.row_past.empty() ? "-" : std::to_string(call.row_past.back())) + " capacity " +
        std::to_string(call.capacity) + " in place " + std::to_string(call.in_place) + " " +
        NameOf(call.element) + (p.fast ? " fast" : "");
    DrawMasks(call, random);
    DrawRaw(call, random);
    DrawTemperature(call, std::mt19937(seed + 7919));
    DrawCross(call, budget, std::mt19937(seed + 31337));
    DrawAxes(call, std::mt19937(seed + 15487));
    DrawDistances(call, std::mt19937(seed + 27449));
    DrawCache(call, std::mt19937(seed + 44221));
    DrawRing(call, std::mt19937(seed + 60013));
    return call;
  }
}

// What is measured of one drawn call: the truth, and how far a plain
// implementation in the same precision is from it.
struct Sample {
  Call call;
  Result<double> exact;
  double plain_output = 0;
  double plain_key = 0;
  double plain_log = 0;
  // Of one that rounds to bfloat16 what it multiplies, as fast prompts in float32 may do.
  double rounded_output = 0;
  double rounded_log = 0;
};

Sample Measure(Call call, Operands operands) {
  Sample sample{std::move(call), {}};
  sample.exact = Reference<double>(sample.call.params, sample.call.Args());
  const auto plain =
      Reference<float>(sample.call.params, sample.call.Args(), sample.call.element, operands);
  sample.plain_output = Distance(plain.output, sample.exact.output);
  const auto& made = sample.call;
  sample.plain_key =
      Distance(made.cache ? made.AsCached(plain.present_key, made.head_size) : plain.present_key,
               sample.exact.present_key);
  sample.exact.present_key = made.Kept(sample.exact.present_key, made.head_size);
  sample.plain_log = Distance(plain.log_sum_exp, sample.exact.log_sum_exp);
  if (made.params.fast && made.element == Element::kFloat) {
    const auto rounded =
        Reference<float>(sample.call.params, sample.call.Args(), made.element, Operands::kRounded);
    sample.rounded_output = Distance(rounded.output, sample.exact.output);
    sample.rounded_log = Distance(rounded.log_sum_exp, sample.exact.log_sum_exp);
  }
  return sample;
}

struct Errors {
  double output = 0;
  double key = 0;
  double log = 0;
};

// Runs the kernel on 1, 2 and 3 threads, which must agree to the last bit.
Errors RunSample(const Sample& sample, const std::string& target) {
  Errors errors;
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    Call call = sample.call;
    TestHost host(threads);
    const std::string name = target + ", " + call.name;
    Expect(call.Run(host), name + ": no memory");
    Expect(host.in_use() == 0, name + ": memory not given back");
    Expect(call.RestIsRight(), name + ": the cache behind the last token is wrong");
    if (threads == 1) {
      first = call.output;
      errors.output = Distance(call.OutputByHead(), sample.exact.output);
      errors.log = Distance(call.log_sum_exp, sample.exact.log_sum_exp);
      if (call.keep_cache) errors.key = Distance(call.PresentKeys(), sample.exact.present_key);
    } else {
      Expect(call.output == first,
             name + ": " + std::to_string(threads) + " threads give another result than one");
    }
  }
  return errors;
}

// The largest error of a handful of numbers is a matter of luck, for the plain
// implementation as for ours: small calls are drawn several times and the
// largest errors over all draws are compared.
std::vector<Sample> DrawSamples(uint32_t seed, int64_t budget, Operands operands) {
  constexpr int64_t kRows = 256;
  constexpr int64_t kMoreRows = 1024;  // where they are cheap
  std::vector<Sample> samples;
  Call call = DrawCall(seed, budget);
  const int64_t rows = call.batch * call.params.num_heads * call.length;
  const int64_t cost = rows * (call.past + call.NewKeys()) * (call.head_size + call.v_head_size);
  for (int64_t drawn = 0; drawn < kRows || (drawn < kMoreRows && drawn / rows * cost < budget);
       drawn += rows) {
    Call again = call;
    again.Draw(seed + 1000003 * static_cast<uint32_t>(samples.size()));
    samples.push_back(Measure(std::move(again), operands));
  }
  return samples;
}

void CheckSamples(const std::vector<Sample>& samples, const std::string& target) {
  double error = 0, key_error = 0, log_error = 0;
  double allowed = 0, key_allowed = 0, log_allowed = 0;
  const Call& drawn = samples[0].call;
  const bool rounds = MultipliesBFloat16(target) && drawn.params.fast &&
                      drawn.element == Element::kFloat && IsPrompt(drawn);
  for (const Sample& sample : samples) {
    const Errors errors = RunSample(sample, target);
    error = Worse(error, errors.output);
    key_error = Worse(key_error, errors.key);
    log_error = Worse(log_error, errors.log);
    allowed = std::max(allowed, Allowed(rounds ? sample.rounded_output : sample.plain_output,
                                        sample.exact.output));
    key_allowed = std::max(key_allowed, Allowed(sample.plain_key, sample.exact.present_key));
    log_allowed = std::max(log_allowed, Allowed(rounds ? sample.rounded_log : sample.plain_log,
                                                sample.exact.log_sum_exp));
  }
  const std::string name = target + ", " + samples[0].call.name;
  Expect(error <= allowed, name + ": error " + std::to_string(error * 1e6) + "e-6, allowed " +
                               std::to_string(allowed * 1e6) + "e-6");
  Expect(log_error <= log_allowed, name + ": log_sum_exp is off by " +
                                       std::to_string(log_error * 1e6) + "e-6, allowed " +
                                       std::to_string(log_allowed * 1e6) + "e-6");
  Expect(key_error <= key_allowed, name + ": present_key is off by " +
                                       std::to_string(key_error * 1e6) + "e-6, allowed " +
                                       std::to_string(key_allowed * 1e6) + "e-6");
}

}  // namespace

void TestAccuracy(const std::vector<std::string>& targets,
                  const std::function<void(size_t)>& choose_target, int cases, int64_t budget,
                  Operands operands, int first) {
  for (int seed = first; seed < first + cases; ++seed) {
    const auto samples = DrawSamples(static_cast<uint32_t>(seed), budget, operands);
    for (size_t t = 0; t < targets.size(); ++t) {
      choose_target(t);
      CheckSamples(samples, targets[t]);
    }
  }
}

}  // namespace rope::test
