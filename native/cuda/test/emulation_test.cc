// The kernel tests of the CPU library, run on the emulated CUDA kernels.
//
//   cuda_emulation_test [CASES [BUDGET [WAY [FIRST]]]]
//
// The arguments are those of cuda_device_test, but that any runs both ways of multiplying one after
// the other; with FIRST it is that of the device.
#include "emulation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "accuracy_test.h"
#include "behaviour_test.h"
#include "cache_test.h"
#include "check.h"
#include "device_numbers.h"
#include "device_numbers_test.h"
#include "fixture.h"
#include "non_finite_test.h"
#include "products_test.h"
#include "recorder.h"
#include "reference.h"
#include "rotary_test.h"

namespace rope::test {
namespace {

// The largest error of log_sum_exp, which no 16-bit rounding hides.
double LogError(Call call) {
  const auto truth = Reference<double>(call.params, call.Args());
  TestHost host(1);
  Expect(call.Run(host), call.name + ": no memory");
  double largest = 0;
  for (size_t i = 0; i < truth.log_sum_exp.size(); ++i) {
    largest =
        Worse(largest, std::abs(static_cast<double>(call.log_sum_exp[i]) - truth.log_sum_exp[i]));
  }
  return largest;
}

// Gives cached rows of int8 scales with which they are no numbers of 16 bits.
void SpoilScales(Call& call) {
  for (float& x : call.past_key) x *= 0.7f;
  for (float& x : call.past_value) x *= 0.7f;
}

// precision=exact multiplies what fast rounds first; keys of this call, which the
// cache has rounded, also in a tile with cached ones, and those of int8.
void TestExactKeepsMore() {
  for (int i = 0; i < 6; ++i) {
    for (const int64_t past : {0, 30, 200}) {
      const Element element = i % 2 == 0 ? Element::kFloat16 : Element::kBFloat16;
      Call call;
      call.name = std::string("exact ") + NameOf(element) + " after " + std::to_string(past) +
                  " tokens, case " + std::to_string(i);
      call.element = element;
      if (i >= 2) call.cache = Element::kInt8;
      call.params.raw_cache = i >= 4;
      call.params.num_heads = 4;
      call.params.kv_num_heads = 2;
      call.params.frequencies = Frequencies(64);
      call.length = past == 0 ? 90 : 30;
      call.past = past;
      call.first_position = 131071 - 90;
      call.Draw(1);
      if (call.cache) SpoilScales(call);
      const double exact = LogError(call);
      call.params.fast = true;
      const double fast = LogError(call);
      Expect(16 * exact < fast, call.name + ": off by " + std::to_string(exact * 1e6) +
                                    "e-6, and by " + std::to_string(fast * 1e6) + "e-6 when fast");
    }
  }
}

// So do weights: of values chosen so that the last query's output nearly vanishes,
// what is left is what weights lose.
void TestExactWeights() {
  for (const Element element : {Element::kFloat16, Element::kBFloat16}) {
    for (const int64_t length : {1, 40, 64}) {
      Call call;
      call.name =
          std::string("exact weights ") + NameOf(element) + ", length " + std::to_string(length);
      call.element = element;
      call.params.num_heads = call.params.kv_num_heads = 1;
      call.params.frequencies = Frequencies(64);
      call.length = length;
      call.past = 64 - length;
      call.keep_cache = false;
      call.Draw(1);
      const auto value = [&](int64_t j, int64_t c) -> float& {
        auto& values = j < call.past ? call.past_value : call.value;
        return values[static_cast<size_t>((j < call.past ? j : j - call.past) * 64 + c)];
      };
      const Call drawn = call;
      for (int64_t j = 0; j < 64; ++j) {
        for (int64_t c = 0; c < 64; ++c) value(j, c) = j == c ? 1.0f : 0.0f;
      }
      const auto weights = Reference<double>(call.params, call.Args()).output;
      const double* last = weights.data() + (length - 1) * 64;
      call = drawn;
      double summed = 0;  // the largest sum of what cancels
      for (int64_t c = 0; c < 64; ++c) {
        double rest = 0, sizes = 0;
        for (int64_t j = 1; j < 64; ++j) {
          rest += last[j] * static_cast<double>(value(j, c));
          sizes += std::abs(last[j] * static_cast<double>(value(j, c)));
        }
        value(0, c) = Rounded(element, static_cast<float>(-rest / last[0]));
        summed = std::max(summed, sizes + std::abs(rest));
      }
      const auto truth = Reference<double>(call.params, call.Args()).output;
      TestHost host(1);
      Expect(call.Run(host), call.name + ": no memory");
      double error = 0, largest = 0;
      for (size_t i = truth.size() - 64; i < truth.size(); ++i) {
        error = Worse(error, std::abs(static_cast<double>(call.output[i]) - truth[i]));
        largest = std::max(largest, std::abs(truth[i]));
      }
      // Twice what rounding takes of the output, and of weights that are two numbers.
      const double unit = element == Element::kFloat16 ? 1.0 / 2048 : 1.0 / 256;
      const double allowed = 2 * (unit * largest + unit * unit * summed);
      Expect(error <= allowed, call.name + ": off by " + std::to_string(error * 1e6) +
                                   "e-6, allowed " + std::to_string(allowed * 1e6) + "e-6");
    }
  }
}

// Blocks of many rows over several tiles of cached keys and new ones, by the rule of
// accuracy_test.h: of two bands, or with a window and a ring, whose ends lie within tiles.
void TestSeveralTiles(const std::string& name, bool ring) {
  for (int i = 0; i < 32; ++i) {
    Call call;
    call.element = i % 2 == 0 ? Element::kFloat16 : Element::kBFloat16;
    call.params.fast = i / 2 % 2 == 0;
    call.params.raw_cache = i / 4 % 2 == 0;
    call.head_size = call.v_head_size = i / 8 % 2 == 0 ? 64 : 128;
    if (i >= 16) call.cache = Element::kInt8;
    call.name = name + (ring ? ", a ring" : ", two bands") + ", case " + std::to_string(i);
    call.params.num_heads = 2;
    call.params.kv_num_heads = 1;
    call.params.frequencies = Frequencies(call.head_size);
    if (ring) {
      call.params.ring = true;
      call.params.first_keys = 70;
      call.params.window = 250;
      call.ring = 333;
      call.in_place = i % 3 == 0;
    } else {
      call.params.bands.push_back({200, 1, -100});
    }
    call.length = 100;
    call.past = 500;
    call.Draw(static_cast<uint32_t>(i + 1));
    if (call.cache) SpoilScales(call);
    const auto truth = Reference<double>(call.params, call.Args());
    const auto plain = Reference<float>(call.params, call.Args(), call.element, Operands::kPairs);
    TestHost host(1);
    Expect(call.Run(host), call.name + ": no memory");
    const double error = Distance(call.OutputByHead(), truth.output);
    const double allowed = 2 * Distance(plain.output, truth.output);
    Expect(error <= allowed, call.name + ": error " + std::to_string(error * 1e6) +
                                 "e-6, allowed " + std::to_string(allowed * 1e6) + "e-6");
  }
}

// All of it, on one of the two ways in which 16-bit numbers are multiplied.
void TestEverything(bool warpgroups, int cases, int64_t budget) {
  cuda::test::g_warpgroups = warpgroups;
  const char* name = warpgroups ? "emulated warpgroups" : "emulated";
  TestBehaviour(name);
  TestNonFiniteNumbers(name);
  TestCaches(name);
  TestExactKeepsMore();
  TestExactWeights();
  for (const bool ring : {false, true}) TestSeveralTiles(name, ring);
  const int64_t steps = cuda::test::g_non_finite_steps;
  // Blocks of warpgroups need many rows and keys to have several tiles.
  TestAccuracy(
      {name}, [](size_t) {}, warpgroups ? cases / 2 : cases, warpgroups ? 100 * budget : budget,
      Operands::kPairs);
  // Ordinary numbers need no second computation, which is slow.
  Expect(cuda::test::g_non_finite_steps == steps,
         std::string(name) + ": ordinary numbers are computed twice");
}

// Where a kernel plans. What the others then do is the same.
void TestNumbersOnDevice(int cases, int64_t budget) {
  EmulatedRepeatingDevice device;
  TestDeviceNumbers(device);
  const char* name = "emulated, numbers on the device";
  cuda::test::g_warpgroups = false;
  cuda::test::g_device_numbers = true;
  TestBehaviour(name);
  TestCaches(name);
  TestSeveralTiles(name, false);
  TestAccuracy({name}, [](size_t) {}, cases, budget, Operands::kPairs);
  cuda::test::g_device_numbers = false;
}

}  // namespace
}  // namespace rope::test

int main(int argc, char** argv) {
  const int cases = argc > 1 ? std::atoi(argv[1]) : 150;
  const int64_t budget = argc > 2 ? std::atoll(argv[2]) : 1000000;
  rope::cuda::test::TestProducts();
  const bool mma = argc > 3 && std::strcmp(argv[3], "mma") == 0;
  if (argc > 4) {
    rope::cuda::test::g_warpgroups = !mma;
    rope::test::TestAccuracy(
        {"emulated"}, [](size_t) {}, cases, budget, rope::test::Operands::kPairs,
        std::atoi(argv[4]));
    std::printf("%d cases on emulated CUDA kernels: %d failures\n", cases, rope::test::g_failures);
    return rope::test::g_failures == 0 ? 0 : 1;
  }
  for (const bool warpgroups : {true, false}) {
    if (!warpgroups || !mma) rope::test::TestEverything(warpgroups, cases, budget);
  }
  rope::test::TestNumbersOnDevice(cases / 4, budget);
  rope::test::TestRotary("emulated", cases);
  rope::test::TestRotaryWithoutMemory("emulated");
  std::printf("%d cases on emulated CUDA kernels: %d failures\n", cases, rope::test::g_failures);
  return rope::test::g_failures == 0 ? 0 : 1;
}
