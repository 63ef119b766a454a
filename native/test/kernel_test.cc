// Runs the kernel tests on every Highway target that this CPU has.
#include <cstdio>
#include <cstdlib>

#include "accuracy_test.h"
#include "behaviour_test.h"
#include "cache_test.h"
#include "check.h"
#include "edges_test.h"
#include "fast_test.h"
#include "hwy/highway.h"
#include "non_finite_test.h"
#include "rotary_test.h"
#include "vector_test.h"

int main(int argc, char** argv) {
  const int cases = argc > 1 ? std::atoi(argv[1]) : 150;
  const int64_t budget = argc > 2 ? std::atoll(argv[2]) : 4000000;
  std::vector<int64_t> targets;
  std::vector<std::string> names;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    targets.push_back(target);
    names.push_back(hwy::TargetName(target));
  }
  const auto choose = [&](size_t t) { hwy::SetSupportedTargetsForTest(targets[t]); };
  for (size_t t = 0; t < targets.size(); ++t) {
    choose(t);
    rope::test::TestVectors(names[t]);
    rope::test::TestBehaviour(names[t]);
    rope::test::TestNonFiniteNumbers(names[t]);
    rope::test::TestEdges(names[t]);
    rope::test::TestCaches(names[t]);
    rope::test::TestFastFloats(names[t]);
    rope::test::TestWorkingMemory(names[t]);
    rope::test::TestRotary(names[t], cases);
    rope::test::TestRotaryWithoutMemory(names[t]);
    rope::test::TestLargeRotary(names[t]);
  }
  rope::test::TestAccuracy(names, choose, cases, budget);
  std::printf("%d cases on", cases);
  for (const auto& name : names) std::printf(" %s", name.c_str());
  std::printf(": %d failures\n", rope::test::g_failures);
  return rope::test::g_failures == 0 ? 0 : 1;
}
