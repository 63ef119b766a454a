// Rotary on every element type, compiled once for each Highway target.
#include "rotary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rotary.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
// clang-format off: the order of these two matters
#include "hwy/highway.h"
#include "rotary-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

bool RunRotaryF32(const RotaryParams& params, const RotaryArgs<float>& args, Host& host) {
  return RunRotaryOnTarget(params, args, host);
}
bool RunRotaryF16(const RotaryParams& params, const RotaryArgs<Float16>& args, Host& host) {
  return RunRotaryOnTarget(params, args, host);
}
bool RunRotaryBF16(const RotaryParams& params, const RotaryArgs<BFloat16>& args, Host& host) {
  return RunRotaryOnTarget(params, args, host);
}

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rope {

HWY_EXPORT(RunRotaryF32);
HWY_EXPORT(RunRotaryF16);
HWY_EXPORT(RunRotaryBF16);

bool RunRotary(const RotaryParams& params, const RotaryArgs<float>& args, Host& host) {
  return HWY_DYNAMIC_DISPATCH(RunRotaryF32)(params, args, host);
}
bool RunRotary(const RotaryParams& params, const RotaryArgs<Float16>& args, Host& host) {
  return HWY_DYNAMIC_DISPATCH(RunRotaryF16)(params, args, host);
}
bool RunRotary(const RotaryParams& params, const RotaryArgs<BFloat16>& args, Host& host) {
  return HWY_DYNAMIC_DISPATCH(RunRotaryBF16)(params, args, host);
}

}  // namespace rope
#endif  // HWY_ONCE
