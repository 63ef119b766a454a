// Keys that a mask hides from every query.
#ifndef ROPE_CUDA_PADDING_H_
#define ROPE_CUDA_PADDING_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "visible.h"

namespace rope::cuda {

class Padding {
 public:
  // mask: [batch, columns], or one row for all (stride 0), 0 hides; null: nothing is hidden.
  template <typename M>
  Padding(const M* mask, int64_t batch_stride, int64_t batch, int64_t columns)
      : columns_(mask == nullptr ? 0 : columns), batch_stride_(batch_stride == 0 ? 0 : columns) {
    if (mask == nullptr) return;
    const int64_t rows = batch_stride == 0 ? 1 : batch;
    // Most masks hide nothing, and are as long as the context.
    for (int64_t b = 0; b < rows && !any_; ++b) {
      const M* row = mask + b * batch_stride;
      any_ = std::find(row, row + columns, M{0}) != row + columns;
    }
    for (int64_t b = 0; b < rows && any_; ++b) {
      shown_before_.push_back(0);
      for (int64_t i = 0; i < columns; ++i) {
        const bool shown = mask[b * batch_stride + i] != 0;
        shown_.push_back(shown);
        shown_before_.push_back(shown_before_.back() + shown);
      }
    }
  }

  bool any() const { return any_; }
  const std::vector<uint8_t>& shown() const { return shown_; }  // 0 hides
  int64_t batch_stride() const { return batch_stride_; }

  bool HidesSome(int64_t batch, Range keys) const {
    return any_ && Before(batch, keys.end) - Before(batch, keys.begin) < keys.size();
  }

  // The shortest range that holds all shown keys of another.
  Range WithoutEnds(int64_t batch, Range keys) const {
    if (!any_ || keys.empty()) return keys;
    const int64_t* row = Row(batch);
    const int64_t first = row[keys.begin];
    const int64_t last = row[keys.end];
    if (first == last) return {keys.begin, keys.begin};
    // The key before which one more is shown, and the first before which all are.
    const int64_t begin = std::upper_bound(row + keys.begin, row + keys.end, first) - row - 1;
    const int64_t end = std::lower_bound(row + keys.begin, row + keys.end, last) - row;
    return {begin, end};
  }

 private:
  const int64_t* Row(int64_t batch) const {
    return shown_before_.data() + (batch_stride_ == 0 ? 0 : batch * (columns_ + 1));
  }
  int64_t Before(int64_t batch, int64_t key) const { return Row(batch)[key]; }

  int64_t columns_;
  int64_t batch_stride_;
  bool any_ = false;
  std::vector<uint8_t> shown_;
  std::vector<int64_t> shown_before_;  // [rows, columns + 1]
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_PADDING_H_
