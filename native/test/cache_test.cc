#include "cache_test.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "check.h"
#include "fixture.h"

namespace rope::test {
namespace {

// A call whose past and present have 70 rows, not all of them used.
Call Cached(Element element, Element cache) {
  Call call;
  call.element = element;
  call.cache = cache;
  call.params.num_heads = 4;
  call.params.kv_num_heads = 2;
  call.params.raw_cache = true;  // keys are stored as they come
  call.params.frequencies = Frequencies(10);
  call.head_size = 10;  // not whole vectors or chunks
  call.v_head_size = 24;
  call.batch = 2;
  call.length = 9;
  call.past = 50;
  call.row_past = {50, 13};
  call.capacity = 70;
  call.name = std::string(NameOf(element)) + " with caches of " + NameOf(cache);
  return call;
}

constexpr struct {
  Element element, cache;
} kPairs[] = {{Element::kFloat, Element::kFloat16},
              {Element::kFloat, Element::kBFloat16},
              {Element::kFloat, Element::kInt8},
              {Element::kFloat16, Element::kInt8},
              {Element::kBFloat16, Element::kInt8}};

bool SameNumbers(const float* a, const float* b, int64_t count) {
  return std::equal(a, a + count, b,
                    [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

// Whether present has the past's rows as they were, and then those of the call as a cache holds
// them.
bool Holds(const Call& call, const std::vector<float>& present, const std::vector<float>& past,
           const std::vector<float>& rows, int64_t size) {
  const std::vector<float> held = call.AsCached(rows, size);
  for (int64_t i = 0; i < call.batch * call.params.kv_num_heads; ++i) {
    const int64_t cached = call.row_past[static_cast<size_t>(i / call.params.kv_num_heads)];
    const float* head = present.data() + i * call.capacity * size;
    if (!SameNumbers(head, past.data() + i * call.capacity * size, cached * size) ||
        !SameNumbers(head + cached * size, held.data() + i * call.length * size,
                     call.length * size)) {
      return false;
    }
  }
  return true;
}

// New rows are rounded to nearest even, those of int8 by their own largest number: also of zeros,
// of the smallest numbers there are, and of numbers that are not finite.
void TestStoredRows(const std::string& target) {
  for (const auto& [element, cache] : kPairs) {
    Call call = Cached(element, cache);
    call.Draw(3);
    const auto fill = [&](int64_t row, float with) {
      std::fill_n(call.key.begin() + row * call.head_size, call.head_size, with);
      std::fill_n(call.value.begin() + row * call.v_head_size, call.v_head_size, with);
    };
    fill(2, 0.0f);
    fill(3, Rounded(element, 1e-42f));
    fill(4, -3.0f);
    for (std::vector<float>* rows : {&call.key, &call.value}) {
      const int64_t size = rows == &call.key ? call.head_size : call.v_head_size;
      (*rows)[static_cast<size_t>(6 * size - 1)] = std::numeric_limits<float>::infinity();
      (*rows)[static_cast<size_t>(7 * size)] = std::nanf("");
      for (int64_t x = 0; x < 5; ++x) {  // halves of a step
        (*rows)[static_cast<size_t>(8 * size + x)] = x == 0 ? 127.0f : static_cast<float>(x) + 0.5f;
      }
    }
    const Call before = call;
    TestHost host(2);
    Expect(call.Run(host), target + ": no memory");
    const std::string name = target + ", " + call.name;
    Expect(Holds(call, call.present_key, before.past_key, before.key, call.head_size),
           name + ": present_key is another");
    Expect(Holds(call, call.present_value, before.past_value, before.value, call.v_head_size),
           name + ": present_value is another");
    Expect(call.RestIsRight(), name + ": the cache behind the last token is wrong");
  }
}

// Whether each row of a ring has its newest token: those of the past as they were, those of the
// call as a cache holds them.
bool RingHolds(const Call& call, const std::vector<float>& present, const std::vector<float>& past,
               const std::vector<float>& rows, int64_t size) {
  const std::vector<float> held = call.AsCached(rows, size);
  const int64_t first = call.params.first_keys;
  for (int64_t i = 0; i < call.batch * call.params.kv_num_heads; ++i) {
    const int64_t cached = call.row_past[static_cast<size_t>(i / call.params.kv_num_heads)];
    std::vector<const float*> newest(static_cast<size_t>(call.ring));
    for (int64_t j = 0; j < cached + call.length; ++j) {
      const int64_t row = j < first ? j : first + (j - first) % (call.ring - first);
      newest[static_cast<size_t>(row)] = j < cached
                                             ? past.data() + (i * call.past + j) * size
                                             : held.data() + (i * call.length + j - cached) * size;
    }
    const float* at = present.data() + i * call.ring * size;
    for (const float* row : newest) {
      if (row != nullptr && !SameNumbers(at, row, size)) return false;
      at += size;
    }
  }
  return true;
}

// A ring that has turned by no rows or by some, in one row of the batch, and one that has room in
// the other: with fewer new tokens than the ring has rows, and with more.
void TestRings(const std::string& target) {
  for (const auto& [element, cache] : kPairs) {
    for (const bool in_place : {false, true}) {
      for (const int64_t past : {35, 40, 75, 103}) {
        for (const int64_t length : {1, 9, 70}) {
          for (const bool same : {false, true}) {
            Call call = Cached(element, cache);
            if (same) call.cache.reset();
            call.params.ring = true;
            call.params.first_keys = 5;
            call.params.window = 20;
            call.length = length;
            call.past = past;
            call.row_past = {static_cast<int32_t>(past), 3};
            call.capacity = -1;
            call.ring = 40;
            call.in_place = in_place;
            call.Draw(6);
            const Call before = call;
            TestHost host(2);
            Expect(call.Run(host), target + ": no memory");
            const std::string name = target + ", " + (same ? NameOf(element) : call.name) +
                                     ", a ring of " + std::to_string(past) + " tokens and " +
                                     std::to_string(length) + " new ones" +
                                     (in_place ? " in place" : "");
            Expect(RingHolds(call, call.present_key, before.past_key, before.key, call.head_size),
                   name + ": present_key is another");
            Expect(RingHolds(call, call.present_value, before.past_value, before.value,
                             call.v_head_size),
                   name + ": present_value is another");
            Expect(call.RestIsRight(), name + ": the rows without tokens are wrong");
          }
        }
      }
    }
  }
}

// Hidden rows whose scale is NaN contribute nothing.
void TestHiddenScales(const std::string& target) {
  for (const Element element : {Element::kFloat, Element::kFloat16, Element::kBFloat16}) {
    for (const int64_t length : {1, 9, 70}) {
      Call clean = Cached(element, Element::kInt8);
      clean.head_size = clean.v_head_size = 64;
      clean.length = length;
      clean.capacity = 130;
      clean.left_padding = 6;
      clean.Draw(4);
      Call poisoned = clean;
      for (int64_t i = 0; i < 4; ++i) {
        std::fill_n(poisoned.past_key.begin() + i * 130 * 64, 6 * 64, std::nanf(""));
        std::fill_n(poisoned.past_value.begin() + i * 130 * 64, 6 * 64, std::nanf(""));
      }
      TestHost host(2);
      Expect(clean.Run(host) && poisoned.Run(host), target + ": no memory");
      // Kernels may compute such blocks in another way.
      const float allowed = element == Element::kFloat ? 1e-5f : 3e-2f;
      const bool same =
          std::equal(clean.output.begin(), clean.output.end(), poisoned.output.begin(),
                     [&](float a, float b) { return std::abs(a - b) <= allowed; });
      Expect(same, target + ", " + clean.name + ": hidden scales leak");
    }
  }
}

// A past in int8 and the present it becomes; either of integers and scales may be one buffer.
struct Buffers {
  static constexpr int64_t kSize = 16;
  int64_t past_rows = 0, present_rows = 0;
  bool shared_integers = false, shared_scales = false;
  std::vector<int8_t> past, present, past_value, present_value;
  std::vector<float> scale, present_scale, value_scale, present_value_scale;

  template <typename E>
  void Place(Rows<const E>& from, Rows<E>& to, std::vector<E>& past_of, std::vector<E>& present_of,
             int64_t size, bool shared) {
    present_of.resize(static_cast<size_t>(2 * present_rows * size), E{77});
    if (shared) std::copy(past_of.begin(), past_of.end(), present_of.begin());
    from = {shared ? present_of.data() : past_of.data(), 2 * past_rows * size, past_rows * size,
            size};
    to = {present_of.data(), 2 * present_rows * size, present_rows * size, size};
  }
  void Give(AttentionArgs<float, int8_t>& args) {
    Place(args.past_key, args.present_key, past, present, kSize, shared_integers);
    Place(args.past_value, args.present_value, past_value, present_value, kSize, shared_integers);
    Place(args.past_key_scale, args.present_key_scale, scale, present_scale, 1, shared_scales);
    Place(args.past_value_scale, args.present_value_scale, value_scale, present_value_scale, 1,
          shared_scales);
    args.present_rows = present_rows;
  }
};

// Integers and scales may each share past's memory, in place or with more rows, whatever the other
// does.
void TestSharedScales(const std::string& target) {
  constexpr int64_t kPast = 50, kLength = 3;
  for (const int64_t past_rows : {60, 50}) {
    Buffers apart;
    std::vector<float> expected;
    for (const int shared : {0, 1, 2, 3}) {
      Call call;
      call.params.num_heads = call.params.kv_num_heads = 2;
      call.params.frequencies = Frequencies(Buffers::kSize);
      call.head_size = call.v_head_size = Buffers::kSize;
      call.length = kLength;
      call.past = kPast;
      call.Draw(5);
      const AttentionArgs<float> wide = call.Args();
      AttentionArgs<float, int8_t> args;
      static_cast<AttentionCall<float>&>(args) = wide;
      Buffers buffers;
      buffers.past_rows = past_rows;
      buffers.present_rows = 60;
      buffers.shared_integers = (shared & 1) != 0;
      buffers.shared_scales = (shared & 2) != 0;
      for (int64_t i = 0; i < 2 * past_rows * Buffers::kSize; ++i) {
        buffers.past.push_back(static_cast<int8_t>(i * 7 % 255 - 127));
        buffers.past_value.push_back(static_cast<int8_t>(i * 11 % 255 - 127));
      }
      for (int64_t i = 0; i < 2 * past_rows; ++i) {
        buffers.scale.push_back(0.001f * static_cast<float>(i % 17 + 1));
        buffers.value_scale.push_back(0.002f * static_cast<float>(i % 13 + 1));
      }
      buffers.Give(args);
      TestHost host(2);
      const std::string name = target + ", past of " + std::to_string(past_rows) + " rows, " +
                               (buffers.shared_integers ? "shared integers, " : "integers, ") +
                               (buffers.shared_scales ? "shared scales" : "scales");
      Expect(RunAttention(call.params, args, host), name + ": no memory");
      if (shared == 0) {
        apart = buffers;
        expected = call.output;
        continue;
      }
      bool same = true;
      for (int64_t head = 0; head < 2; ++head) {
        const auto compare = [&](const auto& a, const auto& b, int64_t size) {
          const auto begin = a.begin() + head * 60 * size;
          same = same &&
                 std::equal(begin, begin + (kPast + kLength) * size, b.begin() + head * 60 * size);
        };
        compare(apart.present, buffers.present, Buffers::kSize);
        compare(apart.present_value, buffers.present_value, Buffers::kSize);
        compare(apart.present_scale, buffers.present_scale, 1);
        compare(apart.present_value_scale, buffers.present_value_scale, 1);
      }
      Expect(same, name + ": another cache");
      const bool same_output =
          std::equal(expected.begin(), expected.end(), call.output.begin(),
                     [](float a, float b) { return std::abs(a - b) <= 1e-5f; });
      Expect(same_output, name + ": another output");
    }
  }
}

// A ring of raw keys, of which a map limits how far the first keys are away, computes after 2^25
// tokens what it computes after few, to the bit: positions count from the tokens that it has lost.
void TestRingForEver(const std::string& target) {
  for (const auto& [element, cache] : kPairs) {
    Call early = Cached(element, cache);
    early.params.ring = true;
    early.params.first_keys = 4;
    early.params.window = 60;
    early.params.bands.push_back({60, 1, 0, 1, 63});
    early.ring = early.capacity = 70;
    early.row_past = {131, 90};
    early.past = 131;
    early.in_place = true;
    early.Draw(6);
    Call late = early;
    const int32_t turns = (1 << 25) / 66 * 66;  // whole ones of the ring
    late.row_past = {131 + turns, 90 + turns};
    late.past = 131 + turns;
    TestHost host(2);
    Expect(early.Run(host) && late.Run(host), target + ": no memory");
    const std::string name = target + ", " + early.name;
    Expect(early.output == late.output, name + ": another output after 2^25 tokens");
    Expect(SameNumbers(early.present_key.data(), late.present_key.data(),
                       static_cast<int64_t>(early.present_key.size())),
           name + ": another ring after 2^25 tokens");
  }
}

}  // namespace

void TestCaches(const std::string& target) {
  TestStoredRows(target);
  TestRings(target);
  TestHiddenScales(target);
  TestSharedScales(target);
  TestRingForEver(target);
}

}  // namespace rope::test
