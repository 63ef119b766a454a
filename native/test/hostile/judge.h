// Whether what an op gave for a case is what it may give.
#ifndef ROPE_HOSTILE_JUDGE_H_
#define ROPE_HOSTILE_JUDGE_H_

#include <string>

#include "case.h"
#include "stand_in.h"

namespace rope::hostile {

// What is wrong with the outcome of one run; empty: nothing.
std::string Judge(const Case& c, const Outcome& outcome);

// What is different in two runs of one case.
std::string Compare(const Outcome& a, const Outcome& b);

}  // namespace rope::hostile

#endif  // ROPE_HOSTILE_JUDGE_H_
