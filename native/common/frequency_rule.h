// Frequencies that depend on how far a call reaches. For kernels on any device: constexpr
// throughout.
#ifndef ROPE_FREQUENCY_RULE_H_
#define ROPE_FREQUENCY_RULE_H_

#include <cmath>
#include <cstdint>

namespace rope {

// Beyond the trained length a call has other frequencies, or its own raised to a larger base, or
// divided.
struct FrequencyRule {
  int64_t trained = 0;            // 0: frequencies are always the same
  const float* longer = nullptr;  // [pairs], beyond the trained length; null: none
  double ntk = 0;                 // factor of dynamic NTK scaling; 0: none
  bool linear = false;            // dynamic linear scaling
  int64_t pairs = 0;

  constexpr bool any() const { return trained > 0; }

  // That of a pair in a call that reaches so many positions.
  template <typename Int>
  constexpr float At(const float* frequencies, Int pair, int64_t reach) const {
    if (reach <= trained) return frequencies[pair];
    if (longer != nullptr) return longer[pair];
    const double stretch = static_cast<double>(reach) / static_cast<double>(trained);
    const double n = 2 * static_cast<double>(pairs);
    double f = static_cast<double>(frequencies[pair]);
    if (ntk > 0) {
      f *= std::pow(ntk * stretch - (ntk - 1), -2 * static_cast<double>(pair) / (n - 2));
    }
    if (linear) f /= stretch;
    return static_cast<float>(f);
  }
};

}  // namespace rope

#endif  // ROPE_FREQUENCY_RULE_H_
