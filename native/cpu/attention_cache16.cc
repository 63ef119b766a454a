// RotaryAttention on float32 with caches of 16 bits, compiled once for each Highway target.
#include "attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention_cache16.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
// clang-format off: the order of these two matters
#include "hwy/highway.h"
#include "attention-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

bool RunF32CacheF16(const AttentionParams& params, const AttentionArgs<float, Float16>& args,
                    Host& host) {
  return RunOnTarget(params, args, host);
}
bool RunF32CacheBF16(const AttentionParams& params, const AttentionArgs<float, BFloat16>& args,
                     Host& host) {
  return RunOnTarget(params, args, host);
}

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rope {

HWY_EXPORT(RunF32CacheF16);
HWY_EXPORT(RunF32CacheBF16);

bool RunAttention(const AttentionParams& params, const AttentionArgs<float, Float16>& args,
                  Host& host) {
  return HWY_DYNAMIC_DISPATCH(RunF32CacheF16)(params, args, host);
}

bool RunAttention(const AttentionParams& params, const AttentionArgs<float, BFloat16>& args,
                  Host& host) {
  return HWY_DYNAMIC_DISPATCH(RunF32CacheBF16)(params, args, host);
}

}  // namespace rope
#endif  // HWY_ONCE
