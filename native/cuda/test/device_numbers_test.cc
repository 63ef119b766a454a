#include "device_numbers_test.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "fixture.h"

namespace rope::test {
namespace {

using cuda::DeviceNumbers;
using cuda::Fault;
using cuda::kFaults;

RepeatingDevice* g_device = nullptr;  // that is tested

// Lets vectors lie where host and device both read them.
template <typename V>
struct SharedAllocator {
  using value_type = V;
  SharedAllocator() = default;
  template <typename U>
  SharedAllocator(const SharedAllocator<U>&) {}  // NOLINT: as allocators are
  V* allocate(size_t count) { return static_cast<V*>(g_device->Allocate(count * sizeof(V))); }
  void deallocate(V* memory, size_t) { g_device->Free(memory); }
  bool operator==(const SharedAllocator&) const { return true; }
  bool operator!=(const SharedAllocator&) const { return false; }
};
template <typename V>
using Shared = std::vector<V, SharedAllocator<V>>;

// A step of several texts in caches of fixed capacity.
struct Step {
  static constexpr int64_t kBatch = 3, kHeads = 4, kKvHeads = 2, kSize = 16, kCapacity = 300;

  AttentionParams params;
  int64_t length = 1;
  bool has_mask = false, has_documents = false;
  Shared<float> query, key, value, past_key, past_value, output, log_sum_exp;
  Shared<int32_t> lengths;
  Shared<int64_t> positions, mask, documents;

  explicit Step(int64_t tokens) : length(tokens) {
    params.num_heads = kHeads;
    params.kv_num_heads = kKvHeads;
    params.frequencies = Frequencies(kSize);
    output.resize(static_cast<size_t>(kBatch * kHeads * length * kSize));
    log_sum_exp.resize(static_cast<size_t>(kBatch * kHeads * length));
    const auto cached = Draw(kBatch * kKvHeads * kCapacity * kSize, 1);
    past_key.assign(cached.begin(), cached.end());
    past_value = past_key;
    Renew({20, 7, 0}, 2);
  }

  static std::vector<float> Draw(int64_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> out(static_cast<size_t>(count));
    for (float& x : out) x = normal(random);
    return out;
  }

  // Other tokens behind so many cached ones, in the same memory.
  void Renew(const std::vector<int32_t>& cached, uint32_t seed) {
    const auto fill = [&](auto& there, const auto& with) {
      there.resize(with.size());
      std::copy(with.begin(), with.end(), there.begin());
    };
    fill(lengths, cached);
    fill(query, Draw(kBatch * kHeads * length * kSize, seed));
    fill(key, Draw(kBatch * kKvHeads * length * kSize, seed + 1));
    fill(value, Draw(kBatch * kKvHeads * length * kSize, seed + 2));
    std::vector<int64_t> ids, shown, places;
    for (int64_t b = 0; b < kBatch; ++b) {
      const int64_t hidden = std::min<int64_t>(seed % 3 * b, cached[static_cast<size_t>(b)]);
      for (int64_t j = 0; j < kCapacity; ++j) {
        shown.push_back(j >= hidden && (seed % 2 == 0 || j % 50 != 49) ? 1 : 0);
        ids.push_back(j < 4 ? 0 : 1 + j / (30 + seed % 5));
      }
      for (int64_t i = 0; i < length; ++i) {
        places.push_back(cached[static_cast<size_t>(b)] + i - hidden);
      }
    }
    if (has_mask) fill(mask, shown);
    if (has_documents) fill(documents, ids);
    fill(positions, places);
  }

  AttentionArgs<float> Args(bool on_device) {
    AttentionArgs<float> args;
    args.batch = kBatch;
    args.length = args.new_keys = length;
    args.head_size = args.v_head_size = kSize;
    args.present_rows = kCapacity;
    args.row_past = lengths.data();
    args.max_past =
        on_device ? kCapacity - length : *std::max_element(lengths.begin(), lengths.end());
    const auto rows = [&](auto* data, int64_t heads, int64_t count) {
      return Rows<std::remove_pointer_t<decltype(data)>>{data, heads * count * kSize, count * kSize,
                                                         kSize};
    };
    const auto constant = [](const Shared<float>& of) { return of.data(); };
    args.query = rows(constant(query), kHeads, length);
    args.key = rows(constant(key), kKvHeads, length);
    args.value = rows(constant(value), kKvHeads, length);
    args.output = rows(output.data(), kHeads, length);
    args.log_sum_exp = log_sum_exp.data();
    args.past_key = rows(constant(past_key), kKvHeads, kCapacity);
    args.past_value = rows(constant(past_value), kKvHeads, kCapacity);
    args.present_key = rows(past_key.data(), kKvHeads, kCapacity);
    args.present_value = rows(past_value.data(), kKvHeads, kCapacity);
    args.positions = positions.data();
    args.positions_batch_stride = length;
    if (has_mask) args.mask = mask.data();
    if (has_documents) args.documents = documents.data();
    args.mask_batch_stride = args.documents_batch_stride = kCapacity;
    if (has_mask || has_documents) args.columns = kCapacity;
    return args;
  }

  // Where the host plans, where the device does, and so that it can be repeated.
  void RunByHost() { Expect(g_device->Run(params, Args(false), nullptr), "no memory"); }
  void Run(const DeviceNumbers& numbers) {
    Expect(g_device->Run(params, Args(true), &numbers), "no memory");
  }
  void Record(const DeviceNumbers& numbers) {
    Expect(g_device->Record(params, Args(true), numbers), "no memory");
  }
};

// How far two steps' results are apart; NaN counts as far.
double Apart(const Step& a, const Step& b) {
  double most = 0;
  const auto compare = [&](const Shared<float>& x, const Shared<float>& y) {
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::memcmp(&x[i], &y[i], sizeof(float)) == 0) continue;
      most = Worse(most, std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
    }
  };
  compare(a.output, b.output);
  compare(a.log_sum_exp, b.log_sum_exp);
  compare(a.past_key, b.past_key);
  compare(a.past_value, b.past_value);
  return most;
}

std::vector<std::pair<std::string, Step>> Steps() {
  std::vector<std::pair<std::string, Step>> steps;
  const auto add = [&](const char* name, int64_t length, const auto& change) {
    Step step(length);
    change(step);
    step.Renew({20, 7, 0}, 2);
    steps.emplace_back(name, std::move(step));
  };
  add("one token", 1, [](Step&) {});
  add("one token, masked", 1, [](Step& s) { s.has_mask = true; });
  add("three tokens of documents", 3, [](Step& s) {
    s.has_documents = s.has_mask = true;
    s.params.document_mask = DocumentMask::kAnchor;
  });
  add("forty tokens of documents", 40, [](Step& s) { s.has_documents = true; });
  add("two bands and a window", 1, [](Step& s) {
    s.has_mask = true;
    s.params.bands.push_back({16, 1, -8});
    s.params.window = 100;
    s.params.first_keys = 4;
    s.params.first_keys_shown = true;
  });
  add("a raw cache", 1, [](Step& s) { s.has_mask = s.params.raw_cache = true; });
  add("slopes by shown keys, and temperatures", 2, [](Step& s) {
    s.has_mask = s.params.distance_shown = true;
    s.params.distance_slopes = {0.1f, 0.2f, 0.3f, 0.4f};
    s.params.temperature = {1, 0.1, 1, 8};
  });
  return steps;
}

// Runs a step, the first time to keep what is launched and then by that, and compares it with
// another that the host plans.
void ExpectAs(Step& other, Step& step, const DeviceNumbers& numbers, bool first,
              const std::string& name) {
  other.RunByHost();
  if (first) {
    step.Record(numbers);
  } else {
    g_device->Repeat();
  }
  const double apart = Apart(step, other);
  Expect(apart <= 1e-6, name + ": off by " + std::to_string(apart));
}

// What is launched for one step serves any other one.
void TestRepeatedLaunches() {
  for (auto& [name, step] : Steps()) {
    const DeviceNumbers numbers;
    bool first = true;
    uint32_t seed = 3;
    for (const std::vector<int32_t>& lengths : std::vector<std::vector<int32_t>>{
             {20, 7, 0}, {21, 8, 1}, {297, 40, 130}, {5, 5, 5}, {64, 200, 297}}) {
      std::vector<int32_t> cached;
      for (const int32_t n : lengths) {
        cached.push_back(std::min(n, static_cast<int32_t>(Step::kCapacity - step.length)));
      }
      step.Renew(cached, seed += 4);
      Step other = step;
      ExpectAs(other, step, numbers, first,
               name + " after " + std::to_string(lengths[0]) + " cached ones");
      first = false;
    }
  }
}

// Frequencies change where a call reaches beyond the trained length, also in repeated launches.
void TestFrequencyRules() {
  const std::vector<float> longer = Frequencies(Step::kSize, 1e6);
  const auto pairs = static_cast<int64_t>(longer.size());
  for (const FrequencyRule& rule : {FrequencyRule{100, longer.data(), 0, false, pairs},
                                    FrequencyRule{100, nullptr, 2, false, pairs},
                                    FrequencyRule{100, nullptr, 0, true, pairs}}) {
    Step step(2);
    step.has_mask = true;
    const DeviceNumbers numbers{rule};
    bool first = true;
    for (const int32_t cached : {10, 250, 98, 99}) {
      step.Renew({cached, 5, 9}, static_cast<uint32_t>(cached));
      Step other = step;
      const int64_t reach = 1 + *std::max_element(step.positions.begin(), step.positions.end());
      for (size_t i = 0; i < longer.size(); ++i) {
        other.params.frequencies[i] = rule.At(step.params.frequencies.data(), i, reach);
      }
      ExpectAs(other, step, numbers, first,
               "frequencies of a call that reaches " + std::to_string(reach));
      first = false;
    }
  }
}

// Numbers that cannot be are told, make the output of their text NaN and leave its cache and the
// other texts alone.
void TestImpossibleNumbers() {
  using Spoil = std::function<void(Step&)>;
  const std::vector<std::pair<Fault, Spoil>> faults = {
      {Fault::kCacheLength, [](Step& s) { s.lengths[1] = -1; }},
      {Fault::kCacheLength, [](Step& s) { s.lengths[1] = Step::kCapacity; }},
      {Fault::kCacheLength, [](Step& s) { s.lengths[1] = INT32_MIN; }},
      {Fault::kDocumentIds, [](Step& s) { s.documents[Step::kCapacity + 6] = -2; }},
      {Fault::kPositions, [](Step& s) { s.positions[2] = -1; }},
      {Fault::kPositions, [](Step& s) { s.positions[3] = kMaxPosition + 1; }},
      {Fault::kPositions, [](Step& s) { s.positions[2] = INT64_MIN; }},
      {Fault::kPositions, [](Step& s) { s.positions[2] = INT64_MAX; }},
      {Fault::kConsecutive, [](Step& s) { s.positions[3] += 1; }},
  };
  for (size_t i = 0; i < faults.size(); ++i) {
    Step step(2);
    step.has_documents = true;
    step.params.raw_cache = true;
    step.Renew({20, 7, 0}, 2);
    Step other = step;
    other.RunByHost();
    const Shared<float> before = step.past_key;
    faults[i].second(step);
    Shared<uint8_t> told(kFaults);
    step.Run({{}, told.data()});
    const std::string name = "impossible numbers, case " + std::to_string(i);
    for (int f = 0; f < kFaults; ++f) {
      const bool is_told = told[static_cast<size_t>(f)] != 0;
      Expect(is_told == (f == static_cast<int>(faults[i].first)),
             name + ": fault " + std::to_string(f) + (is_told ? " is told" : " is not told"));
    }
    // Rows 0 and 2 are as they would be, row 1 has NaN and the cache that it had.
    const size_t row = step.output.size() / Step::kBatch, cached = before.size() / Step::kBatch;
    for (size_t at = 0; at < step.output.size(); ++at) {
      if (at / row == 1 ? std::isnan(step.output[at])
                        : std::abs(step.output[at] - other.output[at]) <= 1e-6f) {
        continue;
      }
      Expect(false,
             name + ": output " + std::to_string(at) + " is " + std::to_string(step.output[at]));
      break;
    }
    for (size_t at = 0; at < before.size(); ++at) {
      if (step.past_key[at] == (at / cached == 1 ? before[at] : other.past_key[at])) continue;
      Expect(false, name + ": cached number " + std::to_string(at) + " is another one");
      break;
    }
  }
}

// A text that is longer than its mask.
void TestTooFewColumns() {
  Step step(1);
  step.has_mask = true;
  step.Renew({20, 7, 0}, 2);
  AttentionArgs<float> args = step.Args(true);
  args.columns = 15;
  Shared<uint8_t> told(kFaults);
  const DeviceNumbers numbers{{}, told.data()};
  Expect(g_device->Run(step.params, args, &numbers), "no memory");
  Expect(told[static_cast<size_t>(Fault::kColumns)] != 0 && std::isnan(step.output[0]) &&
             std::isfinite(step.output[step.output.size() / 3]),
         "a mask of 15 columns for 21 keys: " + std::to_string(step.output[0]));
}

}  // namespace

void TestDeviceNumbers(RepeatingDevice& device) {
  g_device = &device;
  TestRepeatedLaunches();
  TestFrequencyRules();
  TestImpossibleNumbers();
  TestTooFewColumns();
}

}  // namespace rope::test
