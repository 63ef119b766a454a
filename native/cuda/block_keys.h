// Which keys of a band the queries of a block see by index. For kernels on any device: constexpr
// throughout.
#ifndef ROPE_CUDA_BLOCK_KEYS_H_
#define ROPE_CUDA_BLOCK_KEYS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "call.h"

namespace rope::cuda {

// The queries of a block of a batch row. Positions are index + shift.
struct BlockKeys {
  const Band* bands = nullptr;
  size_t band_count = 0;
  Geometry geometry;
  int64_t shift = 0, total = 0;
  Range queries;  // by index
  int64_t tile_keys = 0;

  // Keys at the distances of a band of some query.
  constexpr Range OfBand(size_t band) const { return OfBand(band, queries.begin, queries.end - 1); }

  // Calls add(keys, sight) for a span of such keys, of which the tiles that every query sees whole,
  // but for first keys, are cut out.
  template <typename Add>
  constexpr void Cut(size_t band, Range keys, const Add& add) const {
    const Range seen{geometry.Keys(queries.end - 1, geometry.SecondSection()).begin,
                     geometry.Keys(queries.begin, geometry.SecondSection()).end};
    const Range everyones = OfBand(band, queries.end - 1, queries.begin).Intersect(seen);
    // Tiles are counted from the span's begin.
    const int64_t first =
        (std::max(everyones.begin, keys.begin) - keys.begin + tile_keys - 1) / tile_keys;
    const int64_t last = (std::min(everyones.end, keys.end) - keys.begin) / tile_keys;
    const Range whole{keys.begin + first * tile_keys, keys.begin + last * tile_keys};
    const auto part = [&](Range range, Sight sight) {
      if (!range.empty()) add(range, sight);
    };
    if (whole.empty()) return part(keys, Sight::kByIndex);
    part({keys.begin, whole.begin}, Sight::kByIndex);
    part(whole, Sight::kAll);
    part({whole.end, keys.end}, Sight::kByIndex);
  }

 private:
  // Keys of a band from the begin of one query's to the end of another's: of all that some query
  // has there if the first one comes first, of those that every query has if the last one does,
  // since both ends grow with the index.
  constexpr Range OfBand(size_t band, int64_t begin_of, int64_t end_of) const {
    const auto keys = [&](int64_t index) {
      return BandKeys(bands, band_count, band, index, shift, total);
    };
    return {keys(begin_of).begin, keys(end_of).end};
  }
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_BLOCK_KEYS_H_
