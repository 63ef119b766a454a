// The vector functions of every target.
#include "vector_test.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vector_test.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
// clang-format off: the order of these two matters
#include "hwy/highway.h"
#include "element-inl.h"
#include "sincos-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

float ExpOf(float x) {
  const DF d;
  return hn::GetLane(ExpNonPositive(d, hn::Set(d, x)));
}

float Exp2Of(float x) {
  const DF d;
  return hn::GetLane(Exp2NonPositive(d, hn::Set(d, x)));
}

// sine, then cosine
void SinCosOf(double x, double* out) {
  const DD d;
  VD sine;
  VD cosine;
  SinCos(d, hn::Set(d, x), sine, cosine);
  out[0] = hn::GetLane(sine);
  out[1] = hn::GetLane(cosine);
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
HWY_EXPORT(Exp2Of);
HWY_EXPORT(SinCosOf);
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

// exp and exp2 of what is not positive, down to where they become 0.
template <typename F, typename Truth>
void TestExp(const std::string& name, float end, const F& exp, const Truth& truth) {
  double largest = 0;
  for (float x = 0; x > end + 0.05f; x -= 0.000731f) {
    largest =
        Worse(largest, std::abs(static_cast<double>(exp(x)) / truth(static_cast<double>(x)) - 1));
  }
  Expect(largest < 1.2e-7, name + " is off by " + std::to_string(largest * 1e7) + "e-7");
  Expect(exp(0) == 1, name + " of 0 is not 1");
  Expect(exp(end - 1) == 0 && exp(-1e30f) == 0 && exp(-INFINITY) == 0,
         name + " of the far negative is not 0");
  for (const uint32_t bits : {0x7FC00000u, 0x7FC00001u, 0xFFC00001u, 0x7FFFFFFFu}) {
    Expect(std::isnan(exp(hwy::BitCastScalar<float>(bits))), name + " hides NaN");
  }
}

void TestSinCos(const std::string& target) {
  std::mt19937_64 random(1);
  double largest = 0;
  for (int i = 0; i < 200000; ++i) {
    const double part = static_cast<double>(static_cast<int64_t>(random())) / 9.3e18;
    double x = std::ldexp(part, i % 45 - 10);
    if (i % 2 == 0) x = static_cast<float>(x);
    double got[2];
    HWY_DYNAMIC_DISPATCH(SinCosOf)(x, got);
    largest = Worse(largest, std::abs(got[0] - std::sin(x)));
    largest = Worse(largest, std::abs(got[1] - std::cos(x)));
  }
  Expect(largest < 1e-11,
         target + ": sine and cosine are off by " + std::to_string(largest * 1e12) + "e-12");
  for (const double x : {INFINITY, -INFINITY, NAN}) {
    double got[2];
    HWY_DYNAMIC_DISPATCH(SinCosOf)(x, got);
    Expect(std::isnan(got[0]) && std::isnan(got[1]), target + ": sine of infinity is a number");
  }
}

}  // namespace

void TestVectors(const std::string& target) {
  TestExp(
      target + ": exp", -87.3f, [](float x) { return HWY_DYNAMIC_DISPATCH(ExpOf)(x); },
      [](double x) { return std::exp(x); });
  TestExp(
      target + ": exp2", -126.0f, [](float x) { return HWY_DYNAMIC_DISPATCH(Exp2Of)(x); },
      [](double x) { return std::exp2(x); });
  TestSinCos(target);
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
