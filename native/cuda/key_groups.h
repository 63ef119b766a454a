// What the threads of a block find out about keys: which are shown, whose documents they are, and
// the groups that the spans of a band come from.
#ifndef ROPE_CUDA_KEY_GROUPS_H_
#define ROPE_CUDA_KEY_GROUPS_H_

#include <algorithm>
#include <cstdint>

#include "call.h"
#include "device.h"

namespace rope::cuda {

// Groups of keys that a band's spans come from. Of more groups than there is room for, the last
// ones are one, of which each key is asked for.
class KeyGroups {
 public:
  static constexpr int kMost = 4;
  static constexpr int64_t kSpans = 3 * kMost;  // of a band

  ROPE_DEVICE void Begin() {
    open_ = {};
    count_ = 0;
  }

  // Takes keys that some query sees, all behind those before, of which every query may see so many.
  // Gaps of up to `bridge` keys are visited as well.
  ROPE_DEVICE void Add(Range keys, int64_t shown_to_all, int64_t bridge) {
    if (open_.empty()) {
      open_ = keys;
      shown_to_all_ = shown_to_all;
    } else if (keys.begin - open_.end > bridge) {
      Close();
      open_ = keys;
      shown_to_all_ = shown_to_all;
    } else {
      open_.end = keys.end;
      shown_to_all_ += shown_to_all;
    }
  }
  // The same where no mask hides a key, and not those between two parts of a window either.
  ROPE_DEVICE void AddByIndex(Range keys, int64_t bridge) {
    const bool joins = !open_.empty() && keys.begin - open_.end <= bridge;
    Add(keys, keys.end - (joins ? open_.end : keys.begin), bridge);
  }

  // Calls use(keys, masked) for each group; masked ones have keys that some query may not see.
  template <typename Use>
  ROPE_DEVICE void End(const Use& use) {
    if (!open_.empty()) Close();
    for (int i = 0; i < count_; ++i) use(groups_[i].keys, groups_[i].masked);
  }

 private:
  struct Group {
    Range keys;
    bool masked;
  };

  ROPE_DEVICE void Close() {
    if (count_ < kMost) {
      groups_[count_++] = {open_, shown_to_all_ < open_.size()};
    } else {
      groups_[count_ - 1] = {{groups_[count_ - 1].keys.begin, open_.end}, true};
    }
  }

  Range open_;
  int64_t shown_to_all_;
  int count_;
  Group groups_[kMost];
};

// The documents of a block's queries: between the smallest and the largest id some may be missing,
// whose keys are then visited in vain.
struct QueryDocuments {
  int64_t least = INT64_MAX, most = INT64_MIN;
  bool reader = false;

  ROPE_DEVICE static QueryDocuments Of(int64_t id) { return {id, id, id == kReader}; }
  ROPE_DEVICE QueryDocuments And(const QueryDocuments& o) const {
    return {std::min(least, o.least), std::max(most, o.most), reader || o.reader};
  }
  ROPE_DEVICE bool Show(DocumentMask mask, int64_t id) const {
    return reader || (least <= id && id <= most) ||
           (mask == DocumentMask::kAnchor && id == kAnchor);
  }
  ROPE_DEVICE bool ShowToAll(DocumentMask mask, int64_t id) const {
    if (mask == DocumentMask::kAnchor && id == kAnchor) return true;
    return least == most && DocumentShows(mask, least, id);
  }
};

// What a row's mask shows.
struct ShownKeys {
  int64_t begin = INT64_MAX, end = 0;  // of the keys that are shown
  int64_t count = 0;
  int64_t first_new = INT64_MAX;  // the first one of this call
  bool bad_id = false;            // a shown key has a document id that cannot be

  ROPE_DEVICE ShownKeys And(const ShownKeys& o) const {
    return {std::min(begin, o.begin), std::max(end, o.end), count + o.count,
            std::min(first_new, o.first_new), bad_id || o.bad_id};
  }
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_KEY_GROUPS_H_
