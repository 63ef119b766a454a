// What biases by distance need in one run, made once for all tasks.
#ifndef ROPE_DISTANCE_RUN_H_
#define ROPE_DISTANCE_RUN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention.h"
#include "plan.h"
#include "shown_before.h"

namespace rope {

// The bucket biases of each head by distance, the largest distance first: the keys of a tile
// rise, so their biases stand side by side.
class BucketTable {
 public:
  // Columns of a tile and of the vector behind it.
  static constexpr int64_t kMargin = kTileKeys + 64;

  BucketTable(const Distances& distances, int64_t length) {
    // Fewer queries do not repay the table, and farther buckets have few tiles to themselves.
    constexpr int64_t kQueries = 8;
    constexpr int64_t kSpan = 4096;
    if (distances.buckets < 2 || length < kQueries) return;
    const int64_t first = distances.starts[0], last = distances.starts[distances.buckets - 1];
    // Starts may be the ends of int64_t, where sums overflow; no distance is that far.
    if (first < -kMaxPosition || last > kMaxPosition) return;
    largest_ = last + kMargin;
    const int64_t smallest = first - kMargin;
    if (largest_ - smallest > kSpan) return;
    width_ = largest_ - smallest + 1;
    values_.reserve(static_cast<size_t>(distances.heads * width_));
    for (int64_t head = 0; head < distances.heads; ++head) {
      int64_t bucket = distances.buckets - 1;
      for (int64_t d = largest_; d >= smallest; --d) {
        while (bucket > 0 && d < distances.starts[bucket]) --bucket;
        values_.push_back(distances.BiasOf(bucket, head));
      }
    }
  }

  bool empty() const { return values_.empty(); }

  // The biases of a head, from that of column 0 on, which is at a distance from the query.
  // Columns at distances within the margins of the buckets can be read.
  const float* Row(int64_t head, int64_t distance) const {
    return values_.data() + head * width_ + (largest_ - distance);
  }

 private:
  int64_t largest_ = 0;
  int64_t width_ = 0;
  std::vector<float> values_;
};

struct DistanceRun {
  template <typename T>
  DistanceRun(const AttentionParams& params, const AttentionCall<T>& args)
      : distances(params.distances()),
        shown_before(params, args, kTileKeys),
        table(distances, args.length) {}

  Distances distances;
  ShownBefore shown_before;
  BucketTable table;
};

}  // namespace rope

#endif  // ROPE_DISTANCE_RUN_H_
