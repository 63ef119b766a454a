#include "machine.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/machine.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rope::bench {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sums that do not wait for each other: more than latency times throughput of
// any CPU, fewer than it has registers.
constexpr size_t kSums = 12;

double MultiplyAddOnTarget(int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  V sum[kSums];
  for (size_t i = 0; i < kSums; ++i) sum[i] = hn::Set(d, sink[i % 4]);
  const V a = hn::Set(d, sink[0] + 0.999f);
  const V b = hn::Set(d, sink[1] + 0.001f);
  for (int64_t r = 0; r < rounds; ++r) {
    for (size_t i = 0; i < kSums; ++i) sum[i] = hn::MulAdd(sum[i], a, b);
  }
  V all = sum[0];
  for (size_t i = 1; i < kSums; ++i) all = hn::Add(all, sum[i]);
  sink[2] = hn::GetLane(all) * 1e-30f;
  return 2.0 * static_cast<double>(rounds) * kSums * static_cast<double>(hn::Lanes(d));
}

double MultiplyAddBFloat16OnTarget(int64_t rounds, float* sink) {
#if HWY_NATIVE_DOT_BF16
  const hn::ScalableTag<float> d;
  const hn::Repartition<hwy::bfloat16_t, decltype(d)> db;
  using V = hn::Vec<decltype(d)>;
  V sum[kSums];
  for (size_t i = 0; i < kSums; ++i) sum[i] = hn::Set(d, sink[i % 4]);
  const auto a = hn::BitCast(db, hn::Set(d, sink[0] + 0.999f));
  const auto b = hn::BitCast(db, hn::Set(d, sink[1] + 0.001f));
  for (int64_t r = 0; r < rounds; ++r) {
    for (size_t i = 0; i < kSums; ++i) {
      V none = hn::Zero(d);
      sum[i] = hn::ReorderWidenMulAccumulate(d, a, b, sum[i], none);
    }
  }
  V all = sum[0];
  for (size_t i = 1; i < kSums; ++i) all = hn::Add(all, sum[i]);
  sink[2] = hn::GetLane(all) * 1e-30f;
  return 4.0 * static_cast<double>(rounds) * kSums * static_cast<double>(hn::Lanes(d));
#else
  (void)rounds;
  (void)sink;
  return 0;
#endif
}

void ReadOnTarget(const float* data, size_t count, float* sink) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  V sum[4];
  for (size_t i = 0; i < 4; ++i) sum[i] = hn::Zero(d);
  const size_t step = 4 * hn::Lanes(d);
  for (size_t x = 0; x + step <= count; x += step) {
    for (size_t i = 0; i < 4; ++i) {
      sum[i] = hn::Add(sum[i], hn::LoadU(d, data + x + i * hn::Lanes(d)));
    }
  }
  sink[3] = hn::GetLane(hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]))) * 1e-30f;
}

const char* NameOfTarget() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace rope::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rope::bench {

HWY_EXPORT(MultiplyAddOnTarget);
HWY_EXPORT(MultiplyAddBFloat16OnTarget);
HWY_EXPORT(ReadOnTarget);
HWY_EXPORT(NameOfTarget);

double MultiplyAdd(int64_t rounds, float* sink) {
  return HWY_DYNAMIC_DISPATCH(MultiplyAddOnTarget)(rounds, sink);
}
double MultiplyAddBFloat16(int64_t rounds, float* sink) {
  return HWY_DYNAMIC_DISPATCH(MultiplyAddBFloat16OnTarget)(rounds, sink);
}
void Read(const float* data, size_t count, float* sink) {
  HWY_DYNAMIC_DISPATCH(ReadOnTarget)(data, count, sink);
}
const char* TargetName() { return HWY_DYNAMIC_DISPATCH(NameOfTarget)(); }

}  // namespace rope::bench
#endif  // HWY_ONCE
