// One band of the position map. Like every header that says so, this one knows
// no library and is constexpr throughout: kernels for any device can use it.
#ifndef ROPE_BAND_H_
#define ROPE_BAND_H_

#include <cstdint>

namespace rope {

// One piece of the position map: keys whose distance i - j (of chunks, with a
// `chunk`) is at least `start` and less than the next band's start. Positions p
// become u = (p modulo chunk) / group, rounded down; there the query stands at
// query_scale * u + query_offset, at most at query_limit, and the key at
// key_scale * u.
struct Band {
  int64_t start = 0;
  double query_scale = 1;
  double query_offset = 0;
  double key_scale = 1;
  double query_limit = 0;  // 0 means none
  int64_t group = 1;
  int64_t chunk = 0;  // the same for all bands; 0 means none

  constexpr bool MovesQuery() const {
    return query_scale != 1 || query_offset != 0 || query_limit != 0 || group != 1 || chunk != 0;
  }
  constexpr double Shared(int64_t p) const {
    if (chunk > 0) p = p % chunk + (p % chunk < 0 ? chunk : 0);
    return static_cast<double>(p / group - (p % group < 0 ? 1 : 0));
  }
  constexpr double QueryAt(int64_t p) const {
    const double a = query_scale * Shared(p) + query_offset;
    return query_limit > 0 && a > query_limit ? query_limit : a;
  }
  constexpr double KeyAt(int64_t p) const { return key_scale * Shared(p); }
  constexpr bool SameKeys(const Band& other) const {
    return key_scale == other.key_scale && group == other.group;
  }
};

}  // namespace rope

#endif  // ROPE_BAND_H_
