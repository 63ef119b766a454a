// Which keys a query sees by index, as ranges: causality, window and first keys.
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
  // The shortest range that holds both.
  Range Hull(Range o) const {
    if (empty()) return o;
    if (o.empty()) return *this;
    return {std::min(begin, o.begin), std::max(end, o.end)};
  }
  bool operator==(Range o) const { return begin == o.begin && end == o.end; }
};

// The part of one batch row's mask that follows from indices alone (padding and
// documents come on top). `total` is the number of the row's keys. Keys fall
// into two sections, [0, first_keys()) and the rest; what a query sees of one
// section is one range.
class Geometry {
 public:
  Geometry(const AttentionParams& params, int64_t total)
      : causal_(params.causal),
        // A window as long as the keys hides nothing; so no sum below overflows.
        window_(params.window >= total ? 0 : params.window),
        first_keys_(window_ > 0 ? std::min(params.first_keys, total) : 0),
        total_(total) {}

  // Keys that the window does not hide; 0 when there is no window.
  int64_t first_keys() const { return first_keys_; }

  // Keys of a section, or of a part of it, that the query at index i sees.
  Range Keys(int64_t i, Range part) const {
    if (causal_) part.end = std::min(part.end, i + 1);
    if (window_ > 0 && part.begin >= first_keys_) {
      part.begin = std::max(part.begin, i - window_ + 1);
      if (!causal_) part.end = std::min(part.end, i + window_);
    }
    return part;
  }

  // Keys that some query with index in [first, last] sees. Both ends of Keys
  // grow with i, so this is one range.
  Range KeysOfAny(int64_t first, int64_t last, Range part) const {
    return {Keys(first, part).begin, Keys(last, part).end};
  }

  Range FirstSection() const { return {0, first_keys_}; }
  Range SecondSection() const { return {first_keys_, total_}; }

 private:
  bool causal_;
  int64_t window_;
  int64_t first_keys_;
  int64_t total_;
};

// Keys at the distances of band b from the query at index i, in a row whose
// tokens stand at the positions index + shift. Both ends grow with i.
inline Range BandKeys(const AttentionParams& params, size_t b, int64_t i, int64_t shift,
                      int64_t total) {
  const int64_t chunk = params.bands[0].chunk;
  // The end of the keys that are at distance d or farther.
  const auto end_of = [&](int64_t d) {
    if (chunk == 0) return i - d + 1;
    const int64_t p = i + shift;
    const int64_t begin = p - p % chunk - (p % chunk < 0 ? chunk : 0) - shift;
    return begin - std::min(d - 1, i / chunk + 1) * chunk;
  };
  Range keys{0, total};
  if (b > 0) keys.end = std::clamp<int64_t>(end_of(params.bands[b].start), 0, total);
  if (b + 1 < params.bands.size()) {
    keys.begin = std::max<int64_t>(0, end_of(params.bands[b + 1].start));
  }
  return keys;
}

}  // namespace rope

#endif  // ROPE_VISIBLE_H_
