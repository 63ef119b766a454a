#ifndef ROPE_TEST_VECTOR_TEST_H_
#define ROPE_TEST_VECTOR_TEST_H_

#include <string>

namespace rope::test {

// The vector functions of the target chosen now.
void TestVectors(const std::string& target);

}  // namespace rope::test

#endif  // ROPE_TEST_VECTOR_TEST_H_
