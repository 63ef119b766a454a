#ifndef ROPE_TEST_NON_FINITE_TEST_H_
#define ROPE_TEST_NON_FINITE_TEST_H_

#include <string>

namespace rope::test {

// 16-bit tensors with numbers that are not finite.
void TestNonFiniteNumbers(const std::string& target);

}  // namespace rope::test

#endif  // ROPE_TEST_NON_FINITE_TEST_H_
