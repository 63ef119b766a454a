#ifndef ROPE_TEST_BEHAVIOUR_TEST_H_
#define ROPE_TEST_BEHAVIOUR_TEST_H_

#include <string>

namespace rope::test {

// What must hold exactly, on the target chosen now.
void TestBehaviour(const std::string& target);

// How much memory the CPU's kernels take beside the tensors.
void TestWorkingMemory(const std::string& target);

}  // namespace rope::test

#endif  // ROPE_TEST_BEHAVIOUR_TEST_H_
