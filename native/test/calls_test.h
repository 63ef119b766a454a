#ifndef ROPE_TEST_CALLS_TEST_H_
#define ROPE_TEST_CALLS_TEST_H_

#include <string>

namespace rope::test {

// What a decoder asks of the op, inside the runtime that is open: prefill,
// decode, chunks, padding, each with and without the optional inputs and
// outputs. The error is at most twice that of a plain float32 implementation.
void TestCalls(const std::string& library);

// Where positions restart a call reaches as far as its longest document, whatever position_ids say.
void TestReach();

}  // namespace rope::test

#endif  // ROPE_TEST_CALLS_TEST_H_
