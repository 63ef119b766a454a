// Where tokens stand for distances that count only the keys that the mask shows.
#ifndef ROPE_SHOWN_BEFORE_H_
#define ROPE_SHOWN_BEFORE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention.h"

namespace rope {

// Worked out once per call: for each index of a row the number of shown keys before it.
class ShownBefore {
 public:
  // `more` numbers can be read behind a row's last one.
  template <typename T>
  ShownBefore(const AttentionParams& params, const AttentionCall<T>& args, int64_t more) {
    if (!params.distance_shown || !params.has_distances() || args.mask == nullptr) return;
    const int64_t rows = args.mask_batch_stride == 0 ? 1 : args.batch;
    const int64_t columns = args.max_total();
    bool hides = false;
    for (int64_t b = 0; b < rows && !hides; ++b) {
      const int64_t* row = args.mask + b * args.mask_batch_stride;
      hides = std::find(row, row + columns, 0) != row + columns;
    }
    if (!hides) return;
    stride_ = rows == 1 ? 0 : columns + more;
    counts_.resize(static_cast<size_t>(rows * (columns + more)));
    for (int64_t b = 0; b < rows; ++b) {
      const int64_t* row = args.mask + b * args.mask_batch_stride;
      int32_t* counts = counts_.data() + b * stride_;
      int32_t shown = 0;
      for (int64_t i = 0; i < columns; ++i) {
        counts[i] = shown;
        shown += row[i] != 0;
      }
    }
  }

  // Those of a batch row, by index; null where every token stands at its index.
  const int32_t* Row(int64_t batch) const {
    return !counts_.empty() ? counts_.data() + batch * stride_ : nullptr;
  }

  // All of them, empty where every token stands at its index; a row of the batch is `stride` apart.
  const std::vector<int32_t>& counts() const { return counts_; }
  int64_t stride() const { return stride_; }

 private:
  int64_t stride_ = 0;
  std::vector<int32_t> counts_;
};

}  // namespace rope

#endif  // ROPE_SHOWN_BEFORE_H_
