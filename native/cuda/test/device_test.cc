// The kernel tests of the CPU library on a GPU. Without one, that the library
// says so.
//
//   cuda_device_test [CASES [BUDGET [WAY [FIRST]]]]
//
// WAY is mma, as on devices without warpgroups, or any, what the device has. With FIRST only the
// drawn cases from that one on run, so that several processes may share them.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "accuracy_test.h"
#include "behaviour_test.h"
#include "cache_test.h"
#include "check.h"
#include "cuda_device.h"
#include "device_numbers.h"
#include "graph_device.h"
#include "mirror.h"
#include "non_finite_test.h"
#include "rotary_test.h"

namespace {

// What a run says where there is no driver or no GPU.
void TestWithoutDevice(cudaError_t missing) {
  std::string text;
  try {
    rope::cuda::CudaDevice<float> device(nullptr);
    device.Allocate(1);
  } catch (const rope::cuda::CudaError& error) {
    text = error.what();
  }
  rope::test::Expect(text.find(cudaGetErrorString(missing)) != std::string::npos,
                     "a run without a GPU says '" + text + "'");
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;
  const int cases = argc > 1 ? std::atoi(argv[1]) : 150;
  const int64_t budget = argc > 2 ? std::atoll(argv[2]) : 4000000;
  rope::cuda::test::g_warpgroups = argc <= 3 || std::strcmp(argv[3], "mma") != 0;
  const int first = argc > 4 ? std::atoi(argv[4]) : 1;
  int devices = 0;
  const cudaError_t missing = cudaGetDeviceCount(&devices);
  if (missing != cudaSuccess) {
    TestWithoutDevice(missing);
    std::printf("skipped: no GPU (%s); the kernels were not run\n", cudaGetErrorString(missing));
    return rope::test::g_failures == 0 ? kSkipped : 1;
  }
  if (argc <= 4) {
    rope::test::TestRotary("CUDA", cases);
    rope::test::GraphDevice device;
    rope::test::TestDeviceNumbers(device);
  }
  for (const bool on_device : {false, true}) {
    rope::cuda::test::g_device_numbers = on_device;
    const char* name = on_device ? "CUDA, numbers on the device" : "CUDA";
    if (argc <= 4) {
      rope::test::TestBehaviour(name);
      rope::test::TestNonFiniteNumbers(name);
      rope::test::TestCaches(name);
    }
    rope::test::TestAccuracy(
        {name}, [](size_t) {}, cases, budget, rope::test::Operands::kPairs, first);
  }
  std::printf("%d cases on CUDA: %d failures\n", cases, rope::test::g_failures);
  return rope::test::g_failures == 0 ? 0 : 1;
}
