// Caches in which new tokens take the rows of the oldest.
#ifndef ROPE_RING_H_
#define ROPE_RING_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "attention.h"

namespace rope {

// Makes of a call whose caches are rings the call that has no other tokens than those which are
// left: so nothing in it grows with the text. It holds the numbers that the call then points to.
template <typename T>
class RingCall {
 public:
  RingCall(const AttentionParams& params, AttentionCall<T>& call) : call_(call) {
    if (call.ring.rows == 0) return;
    for (int64_t b = 0; b < call.batch; ++b) {
      lost_.push_back(std::max<int64_t>(0, call.past(b) - call.ring.capacity()));
      past_.push_back(static_cast<int32_t>(call.past(b) - lost_.back()));
      turns_.push_back(lost_.back() == 0 ? 0 : (call.past(b) - call.ring.first) % call.ring.rows);
    }
    const bool any_lost = std::any_of(lost_.begin(), lost_.end(), [](int64_t n) { return n > 0; });
    // Positions without an input are indices, which are to stay those of all tokens.
    if (any_lost) TakePositions(params.raw_cache);
    const int64_t total = *std::max_element(past_.begin(), past_.end()) + call.new_keys;
    if (call.mask != nullptr && (any_lost || call.mask_width < total)) {
      Take(call.mask, call.mask_batch_stride, call.mask_width, total, mask_);
      call.mask_width = total;
    }
    if (call.documents != nullptr && any_lost) {
      Take(call.documents, call.documents_batch_stride, INT64_MAX, total, documents_);
    }
    call.max_past = total - call.new_keys;
    if (call.row_past != nullptr) call.row_past = past_.data();
    call.ring.turns = turns_.data();
  }
  RingCall(const RingCall&) = delete;
  RingCall& operator=(const RingCall&) = delete;

 private:
  // A raw cache's keys stand at their index, so it loses as many positions as tokens.
  void TakePositions(bool raw) {
    if ((call_.positions == nullptr) == raw) return;
    for (int64_t b = 0; b < call_.batch; ++b) {
      const int64_t lost = lost_[static_cast<size_t>(b)];
      for (int64_t place = 0; place < call_.length; ++place) {
        if (call_.positions == nullptr) {
          positions_.push_back(call_.past(b) + place);
          continue;
        }
        // Those of hidden tokens may be anything, also what overflows.
        const int64_t p = call_.positions[b * call_.positions_batch_stride + place];
        positions_.push_back(p < 0 ? p : p - lost);
      }
    }
    call_.positions = positions_.data();
    call_.positions_batch_stride = call_.length;
  }

  // Takes the columns of the tokens that are left. Those behind the width are 1.
  void Take(const int64_t*& columns, int64_t& stride, int64_t width, int64_t total,
            std::vector<int64_t>& taken) const {
    for (int64_t b = 0; b < call_.batch; ++b) {
      const int64_t own = past_[static_cast<size_t>(b)] + call_.new_keys;
      for (int64_t i = 0; i < total; ++i) {
        const int64_t lost = i < call_.ring.first ? 0 : lost_[static_cast<size_t>(b)];
        taken.push_back(i < own && i + lost < width ? columns[b * stride + i + lost] : 1);
      }
    }
    columns = taken.data();
    stride = total;
  }

  AttentionCall<T>& call_;
  std::vector<int64_t> lost_;  // tokens of each row of the batch
  std::vector<int32_t> past_;
  std::vector<int64_t> turns_;
  std::vector<int64_t> positions_, mask_, documents_;
};

}  // namespace rope

#endif  // ROPE_RING_H_
