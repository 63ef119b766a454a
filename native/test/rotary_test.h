#ifndef ROPE_TEST_ROTARY_TEST_H_
#define ROPE_TEST_ROTARY_TEST_H_

#include <string>

namespace rope::test {

// The rotation alone on the target chosen now: drawn calls of every format, layout of pairs and
// element type against float64, in place and not, on one thread and on several.
void TestRotary(const std::string& target, int cases);

// Without memory nothing is computed, and the caller hears of it.
void TestRotaryWithoutMemory(const std::string& target);

// Outputs that are too large for a cache, which are written past it, have the same bits.
void TestLargeRotary(const std::string& target);

}  // namespace rope::test

#endif  // ROPE_TEST_ROTARY_TEST_H_
