// Which keys the rows of a task see: spans of keys worth a visit, and for each
// tile the columns of each row.
#if defined(ROPE_TILE_MASK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_TILE_MASK_INL_H_
#undef ROPE_TILE_MASK_INL_H_
#else
#define ROPE_TILE_MASK_INL_H_
#endif

#include <algorithm>

#include "documents.h"
#include "first_keys.h"
#include "plan.h"
#include "product-inl.h"
#include "softmax-inl.h"
#include "spans.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

template <typename T>
class TileMask {
 public:
  // `shown` has room for a tile's keys, `ids` for one id for each query.
  TileMask(const AttentionParams& params, const AttentionCall<T>& args, const DocumentRuns& runs,
           const FirstKeys& first_keys, const Task& task, float* shown, int64_t* ids)
      : params_(params),
        runs_(runs),
        batch_(task.batch),
        geometry_(params, first_keys.End(task.batch), args.total(task.batch)),
        first_index_(args.past(task.batch) + task.queries.begin),
        last_index_(args.past(task.batch) + task.queries.end - 1),
        padding_(args.mask == nullptr ? nullptr : args.mask + batch_ * args.mask_batch_stride),
        ids_(args.documents == nullptr ? nullptr
                                       : args.documents + batch_ * args.documents_batch_stride),
        documents_(params.document_mask, ids_ == nullptr ? ids : ids_ + first_index_,
                   ids_ == nullptr ? 0 : static_cast<size_t>(task.queries.size()), ids),
        shown_(shown) {}

  // Where tiles must end: what a query sees of a tile by index is one range.
  int64_t Split() const { return geometry_.first_keys(); }

  // Calls visit(keys), ascending, for what some query sees of the keys. Gaps too
  // short to repay a tile of their own are bridged.
  template <typename Visit>
  void ForEachSpan(Range keys, const Visit& visit) const {
    constexpr int64_t kBridge = 16;
    rope::ForEachSpan(geometry_, {first_index_, last_index_ + 1}, keys,
                      ids_ == nullptr ? nullptr : &runs_, documents_, batch_, kBridge, visit);
  }

  // Takes up a tile. Returns whether it holds anything but padding.
  bool Begin(Range tile) {
    tile_ = tile;
    const size_t count = static_cast<size_t>(tile.size());
    const size_t shown = padding_ == nullptr ? count : LoadPadding(padding_ + tile.begin, count);
    padded_ = shown < count;
    if (shown == 0) return false;
    by_document_ = false;
    if (ids_ != nullptr) {
      runs_.ForEach(batch_, tile,
                    [&](const DocumentRun& run) { by_document_ |= !documents_.ShowToAll(run.id); });
    }
    return true;
  }

  // Columns of the tile that the query at an index sees. `shown` has room for a
  // tile's keys.
  RowMask Row(int64_t index, float* shown) const {
    Range keys = geometry_.Keys(index, tile_);
    const float* mask = padded_ ? shown_ : nullptr;
    if (by_document_) {
      bool gaps = false;
      keys = DocumentKeys(index, keys, gaps);
      if (gaps) {
        LoadDocuments(index, keys, mask, shown);
        mask = shown;
      }
    }
    if (keys.empty()) return {{0, 0}, mask};
    return {{keys.begin - tile_.begin, keys.end - tile_.begin}, mask};
  }

 private:
  bool Shows(int64_t index, const DocumentRun& run) const {
    return DocumentShows(params_.document_mask, ids_[index], run.id);
  }

  // The shortest range that holds what a query sees of the keys.
  Range DocumentKeys(int64_t index, Range keys, bool& gaps) const {
    Range visible{};
    runs_.ForEach(batch_, keys, [&](const DocumentRun& run) {
      if (!Shows(index, run)) return;
      gaps |= !visible.empty() && visible.end != run.keys.begin;
      visible = visible.Hull(run.keys);
    });
    return visible;
  }

  // Sets shown for a query whose documents leave gaps in the keys.
  void LoadDocuments(int64_t index, Range keys, const float* mask, float* shown) const {
    std::fill(shown, shown + PaddedColumns(static_cast<size_t>(tile_.size())), 0.0f);
    runs_.ForEach(batch_, keys, [&](const DocumentRun& run) {
      if (!Shows(index, run)) return;
      const int64_t begin = run.keys.begin - tile_.begin;
      const int64_t end = run.keys.end - tile_.begin;
      if (mask == nullptr) {
        std::fill(shown + begin, shown + end, 1.0f);
      } else {
        std::copy(mask + begin, mask + end, shown + begin);
      }
    });
  }

  // Sets shown_ for the tile's padding. Returns how many keys it shows.
  size_t LoadPadding(const int64_t* padding, size_t count) {
    size_t shown = 0;
    for (size_t j = 0; j < count; ++j) {
      shown_[j] = padding[j] != 0 ? 1.0f : 0.0f;
      shown += padding[j] != 0;
    }
    for (size_t j = count; j < PaddedColumns(count); ++j) shown_[j] = 0.0f;
    return shown;
  }

  const AttentionParams& params_;
  const DocumentRuns& runs_;
  const int64_t batch_;
  const Geometry geometry_;
  const int64_t first_index_;  // of the task's queries
  const int64_t last_index_;
  const int64_t* const padding_;  // of the batch row, null if there is none
  const int64_t* const ids_;      // of the batch row, null if there are none
  const BlockDocuments documents_;
  float* const shown_;  // [kTileKeys]

  Range tile_;
  bool padded_ = false;
  bool by_document_ = false;  // rows see different documents of the tile
};

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_TILE_MASK_INL_H_
