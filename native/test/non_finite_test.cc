#include "non_finite_test.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "check.h"
#include "fixture.h"

namespace rope::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kPast = 100;

// Calls use(call) with calls before Draw of all kinds that kernels may tell apart.
void ForEachKind(const std::function<void(Call&)>& use) {
  for (const Element element : {Element::kFloat, Element::kFloat16, Element::kBFloat16}) {
    for (const bool fast : {false, true}) {
      for (const int64_t size : {64, 80, 256}) {
        for (const int64_t length : {1, 3, 70}) {
          Call call;
          call.element = element;
          call.params.num_heads = 4;
          call.params.kv_num_heads = 2;
          call.params.fast = fast;
          call.params.frequencies = Frequencies(size);
          call.head_size = call.v_head_size = size;
          call.length = length;
          call.past = kPast;
          call.name = std::string(NameOf(element)) + (fast ? " fast" : "") + ", head size " +
                      std::to_string(size) + ", length " + std::to_string(length);
          use(call);
        }
      }
    }
  }
}

std::vector<float> Output(Call call) {
  TestHost host(2);
  Expect(call.Run(host), call.name + ": no memory");
  return call.output;
}

// Whether outputs differ by rounding at most: with non-finite numbers, kernels may take another
// path.
bool Same(const Call& call, const std::vector<float>& a, const std::vector<float>& b) {
  const bool exact = call.element == Element::kFloat && !call.params.fast;
  const double allowed = exact ? 1e-5 : call.element == Element::kFloat16 ? 4e-3 : 3e-2;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(static_cast<double>(a[i]) - b[i]) <= allowed)) return false;
  }
  return true;
}

// Puts a number into the first channel of the first cached keys of all heads.
void PoisonKeys(Call& call, int64_t count, float poison) {
  for (int64_t h = 0; h < call.params.kv_num_heads; ++h) {
    for (int64_t j = 0; j < count; ++j) {
      call.past_key[static_cast<size_t>((h * kPast + j) * call.head_size)] = poison;
    }
  }
}
void PoisonValues(Call& call, int64_t count, float poison) {
  for (int64_t h = 0; h < call.params.kv_num_heads; ++h) {
    for (int64_t j = 0; j < count; ++j) {
      call.past_value[static_cast<size_t>((h * kPast + j) * call.v_head_size)] = poison;
    }
  }
}

}  // namespace

void TestNonFiniteNumbers(const std::string& target) {
  ForEachKind([&](Call& call) {
    call.left_padding = 40;
    call.Draw(2);
    const auto clean = Output(call);
    for (const float poison : {std::nanf(""), kInfinity, -kInfinity}) {
      Call poisoned = call;
      PoisonKeys(poisoned, 40, poison);
      PoisonValues(poisoned, 40, poison);
      Expect(Same(call, Output(poisoned), clean),
             target + ": hidden " + std::to_string(poison) + " leaks, " + call.name);
    }
    // Behind the padding, an infinite value is all that one channel has.
    Call visible = call;
    PoisonValues(visible, 41, kInfinity);
    const auto output = Output(visible);
    Expect(output[0] == kInfinity && std::isfinite(output[1]),
           target + ": a visible infinite value is lost or spreads, " + call.name);
  });
  // A key whose scores are -inf has no weight, as one whose scores are very small.
  ForEachKind([&](Call& call) {
    call.params.frequencies.clear();
    call.Draw(3);
    for (size_t i = 0; i < call.query.size(); i += static_cast<size_t>(call.head_size)) {
      call.query[i] = 30.0f;
    }
    Call small = call;
    PoisonKeys(small, 1, -60000.0f);
    PoisonKeys(call, 1, -kInfinity);
    Expect(Same(call, Output(call), Output(small)),
           target + ": an infinite key without weight spoils the output, " + call.name);
  });
}

}  // namespace rope::test
