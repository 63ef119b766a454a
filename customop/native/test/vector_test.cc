// The vector functions of every target.
#include "vector_test.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "test/vector_test.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
// clang-format off: the order of these two matters
#include "hwy/highway.h"
#include "element-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

float ExpOf(float x) {
  const DF d;
  return hn::GetLane(ExpNonPositive(d, hn::Set(d, x)));
}

void WidenF16(const Float16* in, size_t n, float* out) { Convert(in, n, out); }
void WidenBF16(const BFloat16* in, size_t n, float* out) { Convert(in, n, out); }
void NarrowF16(const float* in, size_t n, Float16* out) { Convert(in, n, out); }
void NarrowBF16(const float* in, size_t n, BFloat16* out) { Convert(in, n, out); }

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rope {

HWY_EXPORT(ExpOf);
HWY_EXPORT(WidenF16);
HWY_EXPORT(WidenBF16);
HWY_EXPORT(NarrowF16);
HWY_EXPORT(NarrowBF16);

namespace test {
namespace {

// A 16-bit type by its definition.
struct Format {
  int mantissa_bits;
  int smallest_exponent;  // of normal numbers
};
constexpr Format kFormat16{10, -14};
constexpr Format kFormatB16{7, -126};

float ValueOf(Format f, uint16_t bits) {
  const int exponent_bits = 15 - f.mantissa_bits;
  const int mantissa = bits & ((1 << f.mantissa_bits) - 1);
  const int exponent = (bits >> f.mantissa_bits) & ((1 << exponent_bits) - 1);
  double value;
  if (exponent == (1 << exponent_bits) - 1) {
    value = mantissa != 0 ? NAN : INFINITY;
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, f.smallest_exponent - f.mantissa_bits);
  } else {
    value = std::ldexp(mantissa + (1 << f.mantissa_bits),
                       f.smallest_exponent + exponent - 1 - f.mantissa_bits);
  }
  return static_cast<float>(bits >> 15 != 0 ? -value : value);
}

// The nearest value, of two the even one.
float Nearest(Format f, float x) {
  if (!std::isfinite(x) || x == 0) return x;
  const int exponent = std::max(std::ilogb(x), f.smallest_exponent);
  const double unit = std::ldexp(1.0, exponent - f.mantissa_bits);
  const double nearest = std::nearbyint(static_cast<double>(x) / unit) * unit;
  const bool overflow = std::abs(nearest) >= std::ldexp(1.0, 2 - f.smallest_exponent);
  return static_cast<float>(overflow ? std::copysign(INFINITY, nearest) : nearest);
}

bool Same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

template <typename T, typename Widen, typename Narrow>
void TestElements(const std::string& name, Format format, const Widen& widen,
                  const Narrow& narrow) {
  std::vector<T> all;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    all.push_back(hwy::BitCastScalar<T>(static_cast<uint16_t>(bits)));
  }
  all.resize(65536 + 3, all[12345]);  // a tail that fills no vector
  std::vector<float> wide(all.size());
  widen(all.data(), all.size(), wide.data());
  std::vector<float> numbers;
  for (size_t i = 0; i < 65536; ++i) {
    Expect(Same(wide[i], ValueOf(format, static_cast<uint16_t>(i))),
           name + " " + std::to_string(i) + " is read as " + std::to_string(wide[i]));
    if (g_failures > 20) return;
    // Numbers, what is halfway to their neighbours, and a little to either side.
    const float next = ValueOf(format, static_cast<uint16_t>((i & 0x7FFF) + 1));
    const float middle = wide[i] / 2 + std::copysign(next, wide[i]) / 2;
    for (const float x : {wide[i], middle}) {
      numbers.insert(numbers.end(), {x, std::nextafter(x, INFINITY), std::nextafter(x, -INFINITY)});
    }
  }
  std::mt19937 random(1);
  for (int i = 0; i < 100003; ++i) {
    numbers.push_back(hwy::BitCastScalar<float>(static_cast<uint32_t>(random())));
  }
  std::vector<T> back(numbers.size());
  narrow(numbers.data(), numbers.size(), back.data());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const float got = ValueOf(format, hwy::BitCastScalar<uint16_t>(back[i]));
    const float want = Nearest(format, numbers[i]);
    char text[100];
    std::snprintf(text, sizeof(text), " %a is written as %a instead of %a",
                  static_cast<double>(numbers[i]), static_cast<double>(got),
                  static_cast<double>(want));
    Expect(Same(got, want), name + text);
    if (g_failures > 20) return;
  }
}

}  // namespace

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
  TestElements<Float16>(
      target + ": float16", kFormat16, [](auto... a) { HWY_DYNAMIC_DISPATCH(WidenF16)(a...); },
      [](auto... a) { HWY_DYNAMIC_DISPATCH(NarrowF16)(a...); });
  TestElements<BFloat16>(
      target + ": bfloat16", kFormatB16, [](auto... a) { HWY_DYNAMIC_DISPATCH(WidenBF16)(a...); },
      [](auto... a) { HWY_DYNAMIC_DISPATCH(NarrowBF16)(a...); });
}

}  // namespace test
}  // namespace rope
#endif  // HWY_ONCE
