// RotaryAttention with caches of int8, compiled once for each Highway target.
#include "attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention_int8.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
// clang-format off: the order of these two matters
#include "hwy/highway.h"
#include "attention-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

bool RunF32CacheInt8(const AttentionParams& params, const AttentionArgs<float, int8_t>& args,
                     Host& host) {
  return RunOnTarget(params, args, host);
}
bool RunF16CacheInt8(const AttentionParams& params, const AttentionArgs<Float16, int8_t>& args,
                     Host& host) {
  return RunOnTarget(params, args, host);
}
bool RunBF16CacheInt8(const AttentionParams& params, const AttentionArgs<BFloat16, int8_t>& args,
                      Host& host) {
  return RunOnTarget(params, args, host);
}

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rope {

HWY_EXPORT(RunF32CacheInt8);
HWY_EXPORT(RunF16CacheInt8);
HWY_EXPORT(RunBF16CacheInt8);

bool RunAttention(const AttentionParams& params, const AttentionArgs<float, int8_t>& args,
                  Host& host) {
  return HWY_DYNAMIC_DISPATCH(RunF32CacheInt8)(params, args, host);
}

bool RunAttention(const AttentionParams& params, const AttentionArgs<Float16, int8_t>& args,
                  Host& host) {
  return HWY_DYNAMIC_DISPATCH(RunF16CacheInt8)(params, args, host);
}

bool RunAttention(const AttentionParams& params, const AttentionArgs<BFloat16, int8_t>& args,
                  Host& host) {
  return HWY_DYNAMIC_DISPATCH(RunBF16CacheInt8)(params, args, host);
}

}  // namespace rope
#endif  // HWY_ONCE
