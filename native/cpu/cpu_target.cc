#include "cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_target.cc"
#include "hwy/foreach_target.h"  // this file once for each target
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

const char* NameOfTarget() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rope {

HWY_EXPORT(NameOfTarget);

const char* CpuTarget() { return HWY_DYNAMIC_DISPATCH(NameOfTarget)(); }

}  // namespace rope
#endif  // HWY_ONCE
