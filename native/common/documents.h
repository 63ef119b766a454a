// Document ids: who sees whom, and a row's ids as runs of equal ones.
#ifndef ROPE_DOCUMENTS_H_
#define ROPE_DOCUMENTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention.h"
#include "document_mask.h"
#include "visible.h"

namespace rope {

// Neighbouring keys of one document.
struct DocumentRun {
  Range keys;
  int64_t id = 0;
};

// The runs of every row of ids, made once per call. Packed documents are few
// runs; ids that alternate are as many runs as tokens, which costs time alone.
class DocumentRuns {
 public:
  template <typename T>
  explicit DocumentRuns(const AttentionCall<T>& args) : shared_(args.documents_batch_stride == 0) {
    if (args.documents == nullptr) return;
    for (int64_t row = 0; row < (shared_ ? 1 : args.batch); ++row) {
      first_.push_back(runs_.size());
      Append(args.documents + row * args.documents_batch_stride,
             shared_ ? args.max_total() : args.total(row));
    }
    first_.push_back(runs_.size());
  }

  // Calls visit(run) for the runs of a batch row that hold some of the keys,
  // each cut to them.
  template <typename Visit>
  void ForEach(int64_t batch, Range keys, const Visit& visit) const {
    if (keys.empty()) return;
    const size_t row = shared_ ? 0 : static_cast<size_t>(batch);
    const DocumentRun* end = runs_.data() + first_[row + 1];
    const DocumentRun* run =
        std::partition_point(runs_.data() + first_[row], end,
                             [&](const DocumentRun& r) { return r.keys.end <= keys.begin; });
    for (; run != end && run->keys.begin < keys.end; ++run) {
      visit(DocumentRun{run->keys.Intersect(keys), run->id});
    }
  }

 private:
  void Append(const int64_t* ids, int64_t count) {
    for (int64_t begin = 0; begin < count;) {
      int64_t end = begin + 1;
      while (end < count && ids[end] == ids[begin]) ++end;
      runs_.push_back({{begin, end}, ids[begin]});
      begin = end;
    }
  }

  bool shared_;
  std::vector<DocumentRun> runs_;
  std::vector<size_t> first_;  // of each row of ids, and the end of the last
};

// The documents that some query of a block belongs to.
class BlockDocuments {
 public:
  // The memory holds one id for each query.
  BlockDocuments(DocumentMask mask, const int64_t* ids, size_t queries, int64_t* memory)
      : mask_(mask), ids_(memory), end_(std::copy(ids, ids + queries, memory)) {
    end_ = std::unique(ids_, end_);
    std::sort(ids_, end_);
    end_ = std::unique(ids_, end_);
    any_reader_ = std::binary_search(ids_, end_, kReader);
  }

  // Whether some query of the block sees keys of a document.
  bool Show(int64_t key) const {
    return any_reader_ || (mask_ == DocumentMask::kAnchor && key == kAnchor) ||
           std::binary_search(ids_, end_, key);
  }

  // Whether every query of the block does.
  bool ShowToAll(int64_t key) const {
    return (mask_ == DocumentMask::kAnchor && key == kAnchor) ||
           (end_ - ids_ == 1 && DocumentShows(mask_, *ids_, key));
  }

 private:
  DocumentMask mask_;
  int64_t* ids_;  // ascending
  int64_t* end_;
  bool any_reader_ = false;
};

}  // namespace rope

#endif  // ROPE_DOCUMENTS_H_
