// Temperatures of queries. For kernels on any device: constexpr throughout.
#ifndef ROPE_TEMPERATURE_H_
#define ROPE_TEMPERATURE_H_

#include <algorithm>
#include <cmath>

namespace rope {

// A factor max(1, offset + slope * ln(start + floor((p + 1) / group))) on the
// content score of a query at position p. No slope means no factor.
struct Temperature {
  double offset = 0;
  double slope = 0;
  double start = 0;
  double group = 1;

  template <typename Int>
  constexpr double At(Int p) const {
    const double steps = std::floor((static_cast<double>(p < 0 ? 0 : p) + 1) / group);
    return std::max(1.0, offset + slope * std::log(start + steps));
  }
};

}  // namespace rope

#endif  // ROPE_TEMPERATURE_H_
