#ifndef ROPE_TEST_FAST_TEST_H_
#define ROPE_TEST_FAST_TEST_H_

#include <string>

namespace rope::test {

// What precision=fast makes of float32, on the target chosen now.
void TestFastFloats(const std::string& target);

}  // namespace rope::test

#endif  // ROPE_TEST_FAST_TEST_H_
