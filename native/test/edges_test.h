#ifndef ROPE_TEST_EDGES_TEST_H_
#define ROPE_TEST_EDGES_TEST_H_

#include <string>

namespace rope::test {

// Numbers at the ends of their ranges, which are allowed and say something simple.
void TestEdges(const std::string& target);

}  // namespace rope::test

#endif  // ROPE_TEST_EDGES_TEST_H_
