// Numbers that follow from a seed.
#ifndef ROPE_HOSTILE_RANDOM_H_
#define ROPE_HOSTILE_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <vector>

namespace rope::hostile {

// SplitMix64: cheap to seed, which happens once for each case.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0xD1342543DE82EF95u + 1) {}

  uint64_t Bits() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  int64_t Below(int64_t n) { return static_cast<int64_t>(Bits() % static_cast<uint64_t>(n)); }
  // True in one of n draws.
  bool OneIn(int64_t n) { return Below(n) == 0; }
  template <typename N>
  N Of(std::initializer_list<N> values) {
    return *(values.begin() + Below(static_cast<int64_t>(values.size())));
  }
  template <typename N>
  N& Of(std::vector<N>& values) {
    return values[static_cast<size_t>(Below(static_cast<int64_t>(values.size())))];
  }
  float Between(float low, float high) {
    return low + (high - low) * static_cast<float>(Bits() >> 40) / (1 << 24);
  }
  std::vector<float> Floats(int64_t count, float low, float high) {
    std::vector<float> out;
    for (int64_t i = 0; i < count; ++i) out.push_back(Between(low, high));
    return out;
  }

 private:
  uint64_t state_;
};

}  // namespace rope::hostile

#endif  // ROPE_HOSTILE_RANDOM_H_
