// The smallest test harness that prints what failed and where.
#ifndef ROPE_TEST_CHECK_H_
#define ROPE_TEST_CHECK_H_

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace rope::test {

inline int g_failures = 0;

inline void Expect(bool ok, const std::string& what) {
  if (ok) return;
  ++g_failures;
  std::fprintf(stderr, "FAILED: %s\n", what.c_str());
}

// Prints the name of a case before it runs, if the environment asks for it (ROPE_TEST_NAMES): what
// hangs a device is then the last line.
inline void Announce(const std::string& name) {
  static const bool asked = std::getenv("ROPE_TEST_NAMES") != nullptr;
  if (asked) std::fprintf(stderr, "%s\n", name.c_str());
}

// The larger error; NaN is the largest of all and stays.
inline double Worse(double a, double b) { return std::isnan(a) || a > b ? a : b; }

// The largest error of numbers.
template <typename A>
double Distance(const std::vector<A>& a, const std::vector<double>& truth) {
  if (a.size() != truth.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (static_cast<double>(a[i]) == truth[i]) continue;  // infinities have no difference
    largest = Worse(largest, std::abs(static_cast<double>(a[i]) - truth[i]));
  }
  return largest;
}

}  // namespace rope::test

#endif  // ROPE_TEST_CHECK_H_
