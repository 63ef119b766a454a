// Where the first keys of each row end, which stay visible outside the window.
#ifndef ROPE_FIRST_KEYS_H_
#define ROPE_FIRST_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention.h"

namespace rope {

// Worked out once per call. Among the keys before the end are some that the mask
// hides; they stay hidden.
class FirstKeys {
 public:
  template <typename T>
  FirstKeys(const AttentionParams& params, const AttentionCall<T>& args)
      : count_(params.first_keys) {
    if (!params.first_keys_shown || args.mask == nullptr || count_ == 0 || params.window == 0) {
      return;
    }
    for (int64_t b = 0; b < args.batch; ++b) {
      ends_.push_back(EndOf(args.mask + b * args.mask_batch_stride, args.total(b)));
    }
  }

  // The index behind the last one of a row.
  int64_t End(int64_t batch) const {
    return ends_.empty() ? count_ : ends_[static_cast<size_t>(batch)];
  }

  // That of every row; empty where it is the same for all.
  const std::vector<int64_t>& ends() const { return ends_; }

 private:
  int64_t EndOf(const int64_t* mask, int64_t total) const {
    int64_t shown = 0, end = 0;
    while (end < total && shown < count_) shown += mask[end++] != 0;
    return end;
  }

  int64_t count_;
  std::vector<int64_t> ends_;
};

}  // namespace rope

#endif  // ROPE_FIRST_KEYS_H_
