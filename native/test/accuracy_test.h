#ifndef ROPE_TEST_ACCURACY_TEST_H_
#define ROPE_TEST_ACCURACY_TEST_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reference.h"

namespace rope::test {

// Runs `cases` drawn calls of at most `budget` products each on every target, from a number on.
void TestAccuracy(const std::vector<std::string>& targets,
                  const std::function<void(size_t)>& choose_target, int cases, int64_t budget,
                  Operands operands = Operands::kFloat, int first = 1);

}  // namespace rope::test

#endif  // ROPE_TEST_ACCURACY_TEST_H_
