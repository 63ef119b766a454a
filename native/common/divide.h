// Division of whole numbers, rounded up.
#ifndef ROPE_DIVIDE_H_
#define ROPE_DIVIDE_H_

#include <cstdint>

namespace rope {

inline int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The smallest multiple of b that is at least a.
template <typename N>
N RoundUp(N a, N b) {
  return (a + b - 1) / b * b;
}

}  // namespace rope

#endif  // ROPE_DIVIDE_H_
