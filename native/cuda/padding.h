// Keys that a mask hides from every query.
#ifndef ROPE_CUDA_PADDING_H_
#define ROPE_CUDA_PADDING_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "visible.h"

namespace rope::cuda {

// Most masks hide nothing, or keys before or behind a text: for each row a range of shown keys says
// all. Only where some row has a hole is there a byte for each key.
class Padding {
 public:
  // mask: [batch, columns], or one row for all (stride 0), 0 hides; null: nothing is hidden.
  template <typename M>
  Padding(const M* mask, int64_t batch_stride, int64_t batch, int64_t columns)
      : columns_(columns), shared_(batch_stride == 0) {
    if (mask == nullptr) return;
    const int64_t rows = shared_ ? 1 : batch;
    for (int64_t b = 0; b < rows; ++b) {
      const M* row = mask + b * batch_stride;
      const int64_t begin = std::find_if(row, row + columns, [](M m) { return m != 0; }) - row;
      const int64_t end = FirstHidden(row, begin, columns);
      holes_ = holes_ || std::any_of(row + end, row + columns, [](M m) { return m != 0; });
      ranges_.push_back({begin, end});
    }
    if (holes_) Count(mask, batch_stride, rows);
  }

  // Whether the same keys are hidden in all rows.
  bool SameRows() const {
    return ranges_.empty() || shared_ ||
           (!holes_ && std::all_of(ranges_.begin(), ranges_.end(),
                                   [&](Range range) { return range == ranges_[0]; }));
  }

  // Whether keys are hidden between others that are shown. shown() says which; 0 hides.
  bool holes() const { return holes_; }
  const std::vector<uint8_t>& shown() const { return shown_; }
  int64_t batch_stride() const { return shared_ ? 0 : columns_; }

  bool HidesSome(int64_t batch, Range keys) const {
    if (holes_) return Before(batch, keys.end) - Before(batch, keys.begin) < keys.size();
    return WithoutEnds(batch, keys).size() < keys.size();
  }

  // The shortest range that holds all shown keys of another.
  Range WithoutEnds(int64_t batch, Range keys) const {
    if (ranges_.empty() || keys.empty()) return keys;
    if (!holes_) {
      const Range shown = keys.Intersect(ranges_[RowOf(batch)]);
      return shown.empty() ? Range{keys.begin, keys.begin} : shown;
    }
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
  // The first hidden key from one on. A mask is as long as the context, and nearly always of ones:
  // blocks whose last bits are all set hide nothing, which every compiler asks by vectors.
  template <typename M>
  static int64_t FirstHidden(const M* row, int64_t from, int64_t columns) {
    constexpr int64_t kBlock = 64;
    for (; from + kBlock <= columns; from += kBlock) {
      M all = 1;
      for (int64_t i = from; i < from + kBlock; ++i) all &= row[i];
      if (all == 0) break;
    }
    return std::find(row + from, row + columns, M{0}) - row;
  }

  template <typename M>
  void Count(const M* mask, int64_t batch_stride, int64_t rows) {
    shown_.resize(static_cast<size_t>(rows * columns_));
    shown_before_.resize(static_cast<size_t>(rows * (columns_ + 1)));
    for (int64_t b = 0; b < rows; ++b) {
      uint8_t* shown = shown_.data() + b * columns_;
      int64_t* before = shown_before_.data() + b * (columns_ + 1);
      for (int64_t i = 0; i < columns_; ++i) {
        shown[i] = mask[b * batch_stride + i] != 0;
        before[i + 1] = before[i] + shown[i];
      }
    }
  }

  size_t RowOf(int64_t batch) const { return shared_ ? 0 : static_cast<size_t>(batch); }
  const int64_t* Row(int64_t batch) const {
    return shown_before_.data() + RowOf(batch) * static_cast<size_t>(columns_ + 1);
  }
  int64_t Before(int64_t batch, int64_t key) const { return Row(batch)[key]; }

  int64_t columns_;
  bool shared_;
  bool holes_ = false;
  std::vector<Range>
      ranges_;  // shown keys of each row, up to the first hole; empty: nothing is hidden
  std::vector<uint8_t> shown_;
  std::vector<int64_t> shown_before_;  // [rows, columns + 1]
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_PADDING_H_
