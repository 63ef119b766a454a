#include "fast_test.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "check.h"
#include "fixture.h"
#include "reference.h"

namespace rope::test {
namespace {

// A call in float32 of two rows of a batch, the second one with a shorter past and more padding.
Call Prompt(int64_t length, int64_t past) {
  Call call;
  call.params.num_heads = 6;
  call.params.kv_num_heads = 2;
  call.params.frequencies = Frequencies(64);
  call.batch = 2;
  call.length = length;
  call.past = past;
  if (past > 0) call.row_past = {static_cast<int32_t>(past), static_cast<int32_t>(past / 3)};
  call.left_padding = 5;
  call.first_position = 131071 - length - past;
  call.name = "length " + std::to_string(length) + " past " + std::to_string(past);
  return call;
}

Call Computed(Call call, bool fast, const std::string& target) {
  call.params.fast = fast;
  TestHost host(2);
  Expect(call.Run(host), target + ", " + call.name + ": no memory");
  return call;
}

// Where the CPU multiplies bfloat16, a fast prompt is as far from the truth as rounding takes it,
// and what the caches hold is not rounded. All else is the same to the last bit.
void TestErrors(const std::string& target) {
  const auto check = [&](Call call) {
    call.Draw(6);
    const Call exact = Computed(call, false, target);
    const Call fast = Computed(call, true, target);
    const std::string name = target + ", fast floats, " + call.name;
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      return std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) {
        return x == y || (std::isnan(x) && std::isnan(y));
      });
    };
    Expect(same(exact.present_key, fast.present_key), name + ": other keys are cached");
    Expect(same(exact.present_value, fast.present_value), name + ": other values are cached");
    if (!MultipliesBFloat16(target) || !IsPrompt(call)) {
      Expect(same(exact.output, fast.output), name + ": the output is another than the exact one");
      return;
    }
    const auto truth = Reference<double>(call.params, call.Args());
    const auto rounded =
        Reference<float>(call.params, call.Args(), Element::kFloat, Operands::kRounded);
    const double error = Distance(fast.OutputByHead(), truth.output);
    const double allowed = 2 * Distance(rounded.output, truth.output);
    Expect(error <= allowed, name + ": off by " + std::to_string(error * 1e6) + "e-6, allowed " +
                                 std::to_string(allowed * 1e6) + "e-6");
    const double exact_error = Distance(exact.OutputByHead(), truth.output);
    Expect(100 * exact_error < error, name + ": off by " + std::to_string(error * 1e6) +
                                          "e-6 as if bfloat16 were not multiplied; exact by " +
                                          std::to_string(exact_error * 1e6) + "e-6");
  };
  for (const int64_t length : {1, 5, 6, 40, 300}) {
    for (const int64_t past : {0, 90}) {
      check(Prompt(length, past));
      Call raw = Prompt(length, past);
      raw.params.raw_cache = true;
      raw.name += " raw";
      check(raw);
    }
  }
  for (const Element cache : {Element::kFloat16, Element::kBFloat16, Element::kInt8}) {
    Call call = Prompt(40, 90);
    call.cache = cache;
    call.name += std::string(" with caches of ") + NameOf(cache);
    check(call);
  }
  // A prompt of so many rows has larger blocks.
  Call rows = Prompt(400, 30);
  rows.params.num_heads = 64;
  rows.params.kv_num_heads = 1;
  rows.params.frequencies = Frequencies(16);
  rows.head_size = rows.v_head_size = 16;
  rows.name += " of 64 heads";
  check(rows);
  Call warm = Prompt(40, 90);
  warm.params.temperature = {1, 0.25, 1, 16};
  warm.name += " with a temperature";
  check(warm);
}

// An odd number of channels has no pairs.
void TestOddHeads(const std::string& target) {
  Call call = Prompt(40, 0);
  call.head_size = 31;
  call.params.frequencies = Frequencies(30);
  call.Draw(7);
  Expect(Computed(call, false, target).output == Computed(call, true, target).output,
         target + ": heads of 31 channels are rounded");
}

// A value that bfloat16 has no number for makes no infinity of what is finite.
void TestLargestNumbers(const std::string& target) {
  Call call = Prompt(40, 0);
  call.left_padding = -1;
  call.Draw(8);
  call.value[0] = std::numeric_limits<float>::max();
  const auto output = Computed(call, true, target).output;
  Expect(std::all_of(output.begin(), output.end(), [](float x) { return std::isfinite(x); }),
         target + ": the largest float becomes infinite as a value");
}

}  // namespace

void TestFastFloats(const std::string& target) {
  TestErrors(target);
  TestOddHeads(target);
  TestLargestNumbers(target);
}

}  // namespace rope::test
