// The kernel tests of the CPU library, run on the emulated CUDA kernels.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "accuracy_test.h"
#include "behaviour_test.h"
#include "check.h"
#include "fixture.h"
#include "reference.h"

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

// precision=exact multiplies what fast rounds first.
void TestExactKeepsMore() {
  for (const Element element : {Element::kFloat16, Element::kBFloat16}) {
    Call call;
    call.name = std::string("exact ") + NameOf(element);
    call.element = element;
    call.params.num_heads = 4;
    call.params.kv_num_heads = 2;
    call.params.frequencies = Frequencies(64);
    call.length = 90;
    call.first_position = 131071 - 90;
    call.Draw(1);
    const double exact = LogError(call);
    call.params.fast = true;
    const double fast = LogError(call);
    Expect(16 * exact < fast, call.name + ": off by " + std::to_string(exact * 1e6) +
                                  "e-6, and by " + std::to_string(fast * 1e6) + "e-6 when fast");
  }
}

}  // namespace
}  // namespace rope::test

int main(int argc, char** argv) {
  const int cases = argc > 1 ? std::atoi(argv[1]) : 150;
  const int64_t budget = argc > 2 ? std::atoll(argv[2]) : 1000000;
  rope::test::TestBehaviour("emulated");
  rope::test::TestExactKeepsMore();
  rope::test::TestAccuracy({"emulated"}, [](size_t) {}, cases, budget);
  std::printf("%d cases on emulated CUDA kernels: %d failures\n", cases, rope::test::g_failures);
  return rope::test::g_failures == 0 ? 0 : 1;
}
