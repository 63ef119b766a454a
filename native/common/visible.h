// Which keys a query sees by index, as ranges: causality, window and first keys.
// For kernels on any device, as band.h is.
#ifndef ROPE_VISIBLE_H_
#define ROPE_VISIBLE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "band.h"

namespace rope {

struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  constexpr bool empty() const { return begin >= end; }
  constexpr int64_t size() const { return end - begin; }
  constexpr Range Intersect(Range o) const {
    return {std::max(begin, o.begin), std::min(end, o.end)};
  }
  // The shortest range that holds both.
  constexpr Range Hull(Range o) const {
    if (empty()) return o;
    if (o.empty()) return *this;
    return {std::min(begin, o.begin), std::max(end, o.end)};
  }
  constexpr bool operator==(Range o) const { return begin == o.begin && end == o.end; }
};

// The part of one batch row's mask that follows from indices alone (padding and
// documents come on top). `total` is the number of the row's keys, of which those
// before `first_keys` are visible outside the window. Keys fall into two sections,
// [0, first_keys()) and the rest; what a query sees of one section is one range.
class Geometry {
 public:
  constexpr Geometry(bool causal, int64_t window, int64_t first_keys, int64_t total)
      : causal_(causal),
        // A window as long as the keys hides nothing; so no sum below overflows.
        window_(window >= total ? 0 : window),
        first_keys_(window_ > 0 ? std::min(first_keys, total) : 0),
        total_(total) {}
  template <typename Params>
  constexpr Geometry(const Params& params, int64_t first_keys, int64_t total)
      : Geometry(params.causal, params.window, first_keys, total) {}

  // Keys that the window does not hide; 0 when there is no window.
  constexpr int64_t first_keys() const { return first_keys_; }

  // Keys of a section, or of a part of it, that the query at index i sees.
  constexpr Range Keys(int64_t i, Range part) const {
    if (causal_) part.end = std::min(part.end, i + 1);
    if (window_ > 0 && part.begin >= first_keys_) {
      part.begin = std::max(part.begin, i - window_ + 1);
      if (!causal_) part.end = std::min(part.end, i + window_);
    }
    return part;
  }

  // Keys that some query with index in [first, last] sees. Both ends of Keys
  // grow with i, so this is one range.
  constexpr Range KeysOfAny(int64_t first, int64_t last, Range part) const {
    return {Keys(first, part).begin, Keys(last, part).end};
  }

  // Whether the query at index i sees all of the keys.
  constexpr bool Sees(int64_t i, Range keys) const {
    if (causal_ && keys.end > i + 1) return false;
    if (window_ == 0 || keys.end <= first_keys_) return true;
    return std::max(keys.begin, first_keys_) > i - window_ && (causal_ || keys.end <= i + window_);
  }

  constexpr Range FirstSection() const { return {0, first_keys_}; }
  constexpr Range SecondSection() const { return {first_keys_, total_}; }

 private:
  bool causal_;
  int64_t window_;
  int64_t first_keys_;
  int64_t total_;
};

// Keys at the distances of band b of several from the query at index i, in a row whose
// tokens stand at the positions index + shift. Both ends grow with i.
constexpr Range BandKeys(const Band* bands, size_t count, size_t b, int64_t i, int64_t shift,
                         int64_t total) {
  const int64_t chunk = bands[0].chunk;
  // The end of the keys that are at distance d or farther.
  const auto end_of = [&](int64_t d) {
    if (chunk == 0) return i - d + 1;
    const int64_t p = i + shift;
    const int64_t begin = p - p % chunk - (p % chunk < 0 ? chunk : 0) - shift;
    return begin - std::min(d - 1, i / chunk + 1) * chunk;
  };
  Range keys{0, total};
  if (b > 0) keys.end = std::clamp<int64_t>(end_of(bands[b].start), 0, total);
  if (b + 1 < count) keys.begin = std::max<int64_t>(0, end_of(bands[b + 1].start));
  return keys;
}

template <typename Params>
Range BandKeys(const Params& params, size_t b, int64_t i, int64_t shift, int64_t total) {
  return BandKeys(params.bands.data(), params.bands.size(), b, i, shift, total);
}

}  // namespace rope

#endif  // ROPE_VISIBLE_H_
