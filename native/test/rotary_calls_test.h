#ifndef ROPE_TEST_ROTARY_CALLS_TEST_H_
#define ROPE_TEST_ROTARY_CALLS_TEST_H_

#include <string>

namespace rope::test {

// Rotary inside the runtime that is open: each with and without the optional inputs and outputs,
// in place, of every element type; and a sentence for what is wrong.
void TestRotaryCalls(const std::string& library);

}  // namespace rope::test

#endif  // ROPE_TEST_ROTARY_CALLS_TEST_H_
