#ifndef ROPE_TEST_CACHE_TEST_H_
#define ROPE_TEST_CACHE_TEST_H_

#include <string>

namespace rope::test {

// What caches of another type than the other tensors' hold, to the bit, on the target chosen now.
void TestCaches(const std::string& target);

}  // namespace rope::test

#endif  // ROPE_TEST_CACHE_TEST_H_
