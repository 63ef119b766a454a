// Biases on the scores by the distance from a query back to a key. For kernels on any device, as
// band.h is.
#ifndef ROPE_DISTANCES_H_
#define ROPE_DISTANCES_H_

#include <cstdint>

namespace rope {

struct Distances {
  const float* slopes = nullptr;    // [heads]: taken off for each step of distance; null: none
  const int64_t* starts = nullptr;  // [buckets], ascending: the smallest distance of each bucket
  const float* biases = nullptr;    // [buckets, heads]
  int64_t buckets = 0;
  int64_t heads = 0;

  constexpr bool any() const { return slopes != nullptr || buckets > 0; }

  // The bucket of a distance: the last one that starts there or before. The first bucket has
  // all smaller distances too.
  constexpr int64_t BucketOf(int64_t distance) const {
    int64_t low = 0, high = buckets;
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (starts[middle] <= distance ? low : high) = middle;
    }
    return low;
  }

  constexpr float BiasOf(int64_t bucket, int64_t head) const {
    return biases[bucket * heads + head];
  }

  // What a head adds to the score of a key at a distance.
  constexpr float At(int64_t head, int64_t distance) const {
    const float bias = buckets > 0 ? BiasOf(BucketOf(distance), head) : 0.0f;
    if (slopes == nullptr) return bias;
    return bias - slopes[head] * static_cast<float>(distance < 0 ? -distance : distance);
  }
};

}  // namespace rope

#endif  // ROPE_DISTANCES_H_
