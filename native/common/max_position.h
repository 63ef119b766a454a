// How far positions go. For kernels on any device, as band.h is.
#ifndef ROPE_MAX_POSITION_H_
#define ROPE_MAX_POSITION_H_

#include <cstdint>

namespace rope {

// Positions beyond this are taken for a mistake: no table, cache or model
// reaches them, and float32 products would have lost every digit.
inline constexpr int64_t kMaxPosition = INT32_MAX;

}  // namespace rope

#endif  // ROPE_MAX_POSITION_H_
