// Which keys a query sees, as ranges of key indices.
#ifndef ROPE_VISIBLE_H_
#define ROPE_VISIBLE_H_

#include <algorithm>
#include <cstdint>

#include "attention.h"

namespace rope {

struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  bool empty() const { return begin >= end; }
  int64_t size() const { return end - begin; }
  Range Intersect(Range o) const { return {std::max(begin, o.begin), std::min(end, o.end)}; }
  bool operator==(Range o) const { return begin == o.begin && end == o.end; }
};

// The causal and window part of one batch row's mask (padding comes on top).
// `total` is the number of the row's keys.
class Geometry {
 public:
  Geometry(const AttentionParams& params, int64_t total)
      : causal_(params.causal),
        // A window as long as the keys hides nothing; so no sum below overflows.
        window_(params.window >= total ? 0 : params.window),
        total_(total) {}

  // Keys that the query at index i sees.
  Range Keys(int64_t i) const {
    Range keys{0, total_};
    if (causal_) keys.end = std::min(keys.end, i + 1);
    if (window_ > 0) {
      keys.begin = std::max<int64_t>(keys.begin, i - window_ + 1);
      if (!causal_) keys.end = std::min(keys.end, i + window_);
    }
    return keys;
  }

  // Keys that some query with index in [first, last] sees. Both ends of Keys
  // grow with i, so this is one range.
  Range KeysOfAny(int64_t first, int64_t last) const { return {Keys(first).begin, Keys(last).end}; }

 private:
  bool causal_;
  int64_t window_;
  int64_t total_;
};

// Keys at the distances of band b from the query at index i.
inline Range BandKeys(const AttentionParams& params, size_t b, int64_t i, int64_t total) {
  Range keys{0, total};
  if (b > 0) keys.end = std::max<int64_t>(0, std::min(total, i - params.bands[b].start + 1));
  if (b + 1 < params.bands.size()) {
    keys.begin = std::max<int64_t>(0, i - params.bands[b + 1].start + 1);
  }
  return keys;
}

}  // namespace rope

#endif  // ROPE_VISIBLE_H_
