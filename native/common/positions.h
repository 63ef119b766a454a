// The positions of a call's new tokens.
#ifndef ROPE_POSITIONS_H_
#define ROPE_POSITIONS_H_

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "attention.h"
#include "documents.h"

namespace rope {

// A token's position is what position_ids say, or its index; where positions
// restart, the number of real tokens of its document before it in the row.
template <typename T>
class Positions {
 public:
  Positions(const AttentionParams& params, const AttentionCall<T>& args)
      : args_(args), restart_(params.document_restart && args.documents != nullptr) {
    if (!restart_) return;
    const int64_t rows = shared() ? 1 : args.batch;
    restarted_.reserve(static_cast<size_t>(rows * args.length));
    for (int64_t row = 0; row < rows; ++row) Restart(row, params.document_start);
  }

  // Whether all rows of the batch have the same positions.
  bool shared() const {
    const bool given = args_.positions != nullptr;
    const bool own = given ? args_.positions_batch_stride == 0 : args_.row_past == nullptr;
    if (!restart_) return own;
    return own && args_.row_past == nullptr && args_.documents_batch_stride == 0 &&
           (args_.mask == nullptr || args_.mask_batch_stride == 0);
  }

  // Position - index of a row's real tokens, which is one number where bands or a
  // raw cache need it; 0 without a real token.
  int64_t Shift(int64_t batch) const {
    if (args_.positions == nullptr || restart_) return 0;
    const int64_t past = args_.past(batch);
    const int64_t* mask =
        args_.mask == nullptr ? nullptr : args_.mask + batch * args_.mask_batch_stride + past;
    for (int64_t place = 0; place < args_.length; ++place) {
      if (mask == nullptr || mask[place] != 0) return Own(batch, place) - past - place;
    }
    return 0;
  }

  // On one of a token's axes, where it has several positions.
  int64_t AtAxis(int64_t batch, int64_t place, int64_t axis) const {
    return args_.positions[axis * args_.positions_axis_stride +
                           batch * args_.positions_batch_stride + place];
  }

  int64_t At(int64_t batch, int64_t place) const {
    if (!restart_) return Own(batch, place);
    const int64_t row = shared() ? 0 : batch;
    return restarted_[static_cast<size_t>(row * args_.length + place)];
  }

 private:
  int64_t Own(int64_t batch, int64_t place) const {
    return args_.positions == nullptr
               ? args_.past(batch) + place
               : args_.positions[batch * args_.positions_batch_stride + place];
  }

  void Restart(int64_t row, int64_t start) {
    const int64_t* ids = args_.documents + row * args_.documents_batch_stride;
    const int64_t* mask =
        args_.mask == nullptr ? nullptr : args_.mask + row * args_.mask_batch_stride;
    const int64_t past = args_.past(row);
    std::unordered_map<int64_t, int64_t> counts;  // real tokens of each document so far
    int64_t* count = nullptr;                     // that of the last token's document
    for (int64_t j = 0; j < args_.total(row); ++j) {
      if (count == nullptr || ids[j] != ids[j - 1]) count = &counts[ids[j]];
      if (j >= past) {
        const int64_t first = ids[j] == kAnchor ? 0 : start;
        restarted_.push_back(ids[j] == kReader ? Own(row, j - past) : first + *count);
      }
      if (mask == nullptr || mask[j] != 0) ++*count;
    }
  }

  const AttentionCall<T>& args_;
  const bool restart_;
  std::vector<int64_t> restarted_;  // [batch or 1, length]
};

}  // namespace rope

#endif  // ROPE_POSITIONS_H_
