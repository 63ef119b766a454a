// The kernel tests of the CPU library, run on the emulated CUDA kernels.
#include <cstdio>
#include <cstdlib>

#include "accuracy_test.h"
#include "behaviour_test.h"
#include "check.h"

int main(int argc, char** argv) {
  const int cases = argc > 1 ? std::atoi(argv[1]) : 150;
  const int64_t budget = argc > 2 ? std::atoll(argv[2]) : 1000000;
  rope::test::TestBehaviour("emulated");
  rope::test::TestAccuracy({"emulated"}, [](size_t) {}, cases, budget);
  std::printf("%d cases on emulated CUDA kernels: %d failures\n", cases, rope::test::g_failures);
  return rope::test::g_failures == 0 ? 0 : 1;
}
