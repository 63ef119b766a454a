// Which keys a block of query rows visits, worked out on the host.
#ifndef ROPE_CUDA_BLOCK_SPANS_H_
#define ROPE_CUDA_BLOCK_SPANS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "attention.h"
#include "call.h"
#include "first_keys.h"
#include "padding.h"
#include "positions.h"
#include "spans.h"

namespace rope::cuda {

template <typename T>
class BlockSpans {
 public:
  BlockSpans(const AttentionParams& params, const AttentionCall<T>& args,
             const Positions<T>& positions, const Padding& padding, const FirstKeys& first_keys,
             int64_t tile_keys)
      : params_(params),
        args_(args),
        positions_(positions),
        padding_(padding),
        first_keys_(first_keys),
        tile_keys_(tile_keys),
        runs_(args) {}

  // Adds the spans of the queries at some places of a batch row, band by band.
  void Add(int64_t batch, Range places, std::vector<Span>& spans) {
    const Range queries{args_.past(batch) + places.begin, args_.past(batch) + places.end};
    const bool by_document = args_.documents != nullptr;
    ids_.resize(static_cast<size_t>(places.size()));
    const BlockDocuments documents(
        params_.document_mask,
        by_document ? args_.documents + batch * args_.documents_batch_stride + queries.begin
                    : nullptr,
        by_document ? ids_.size() : 0, ids_.data());
    const Geometry geometry(params_, first_keys_.End(batch), args_.total(batch));
    for (size_t band = 0; band < params_.bands.size(); ++band) {
      ForEachSpan(geometry, queries, OfBand(batch, band, queries.begin, queries.end - 1),
                  by_document ? &runs_ : nullptr, documents, batch, tile_keys_, [&](Range keys) {
                    keys = padding_.WithoutEnds(batch, keys);
                    if (keys.empty()) return;
                    bool masked = padding_.HidesSome(batch, keys);
                    if (by_document) {
                      runs_.ForEach(batch, keys, [&](const DocumentRun& run) {
                        masked = masked || !documents.ShowToAll(run.id);
                      });
                    }
                    if (masked) {
                      spans.push_back({keys, static_cast<int32_t>(band), Sight::kMasked});
                    } else {
                      AddByIndex(geometry, batch, band, queries, keys, spans);
                    }
                  });
    }
  }

 private:
  // Keys of a band from the begin of one query's to the end of another's: of all
  // that some query has there if the first one comes first, of those that every
  // query has if the last one does, since both ends grow with the index.
  Range OfBand(int64_t batch, size_t band, int64_t begin_of, int64_t end_of) const {
    const auto keys = [&](int64_t index) {
      return BandKeys(params_, band, index, positions_.Shift(batch), args_.total(batch));
    };
    return {keys(begin_of).begin, keys(end_of).end};
  }

  // Cuts the tiles that every query sees whole from a span, but for first keys.
  void AddByIndex(const Geometry& geometry, int64_t batch, size_t band, Range queries, Range keys,
                  std::vector<Span>& spans) const {
    const Range seen{geometry.Keys(queries.end - 1, geometry.SecondSection()).begin,
                     geometry.Keys(queries.begin, geometry.SecondSection()).end};
    const Range everyones = OfBand(batch, band, queries.end - 1, queries.begin).Intersect(seen);
    // Tiles are counted from the span's begin.
    const int64_t first =
        (std::max(everyones.begin, keys.begin) - keys.begin + tile_keys_ - 1) / tile_keys_;
    const int64_t last = (std::min(everyones.end, keys.end) - keys.begin) / tile_keys_;
    const Range whole{keys.begin + first * tile_keys_, keys.begin + last * tile_keys_};
    const auto add = [&](Range part, Sight sight) {
      if (!part.empty()) spans.push_back({part, static_cast<int32_t>(band), sight});
    };
    if (whole.empty()) return add(keys, Sight::kByIndex);
    add({keys.begin, whole.begin}, Sight::kByIndex);
    add(whole, Sight::kAll);
    add({whole.end, keys.end}, Sight::kByIndex);
  }

  const AttentionParams& params_;
  const AttentionCall<T>& args_;
  const Positions<T>& positions_;
  const Padding& padding_;
  const FirstKeys& first_keys_;
  const int64_t tile_keys_;
  const DocumentRuns runs_;
  std::vector<int64_t> ids_;  // of one block's queries
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_BLOCK_SPANS_H_
