// The vector functions of every target.
#include "vector_test.h"

#include <cmath>

#include "check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "test/vector_test.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
// clang-format off: the order of these two matters
#include "hwy/highway.h"
#include "vector-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

float ExpOf(float x) {
  const DF d;
  return hn::GetLane(ExpNonPositive(d, hn::Set(d, x)));
}

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rope {

HWY_EXPORT(ExpOf);

namespace test {

void TestVectors(const std::string& target) {
  const auto exp = [](float x) { return HWY_DYNAMIC_DISPATCH(ExpOf)(x); };
  double largest = 0;
  for (float x = 0; x > -87.25f; x -= 0.000731f) {
    const double truth = std::exp(static_cast<double>(x));
    largest = Worse(largest, std::abs(static_cast<double>(exp(x)) / truth - 1));
  }
  Expect(largest < 1.2e-7, target + ": exp is off by " + std::to_string(largest * 1e7) + "e-7");
  Expect(exp(0) == 1, target + ": exp(0) is not 1");
  Expect(exp(-88) == 0 && exp(-1e30f) == 0 && exp(-INFINITY) == 0,
         target + ": exp of the far negative is not 0");
  Expect(std::isnan(exp(NAN)), target + ": exp hides NaN");
}

}  // namespace test
}  // namespace rope
#endif  // HWY_ONCE
