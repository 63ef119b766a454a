// The smallest test harness that prints what failed and where.
#ifndef ROPE_TEST_CHECK_H_
#define ROPE_TEST_CHECK_H_

#include <cmath>
#include <cstdio>
#include <string>

namespace rope::test {

inline int g_failures = 0;

inline void Expect(bool ok, const std::string& what) {
  if (ok) return;
  ++g_failures;
  std::fprintf(stderr, "FAILED: %s\n", what.c_str());
}

// The larger error; NaN is the largest of all and stays.
inline double Worse(double a, double b) { return std::isnan(a) || a > b ? a : b; }

}  // namespace rope::test

#endif  // ROPE_TEST_CHECK_H_
