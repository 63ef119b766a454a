// Which keys a block of query rows visits, worked out on the host.
#ifndef ROPE_CUDA_BLOCK_SPANS_H_
#define ROPE_CUDA_BLOCK_SPANS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "attention.h"
#include "block_keys.h"
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
    const int64_t past = args_.past(batch);
    const int64_t total = args_.total(batch);
    const BlockKeys keys_of{params_.bands.data(),
                            params_.bands.size(),
                            Geometry(params_, first_keys_.End(batch), total),
                            positions_.Shift(batch),
                            total,
                            {past + places.begin, past + places.end},
                            tile_keys_};
    const bool by_document = args_.documents != nullptr;
    ids_.resize(static_cast<size_t>(places.size()));
    const BlockDocuments documents(
        params_.document_mask,
        by_document ? args_.documents + batch * args_.documents_batch_stride + keys_of.queries.begin
                    : nullptr,
        by_document ? ids_.size() : 0, ids_.data());
    for (size_t band = 0; band < params_.bands.size(); ++band) {
      const auto add = [&](Range part, Sight sight) {
        spans.push_back({part, static_cast<int32_t>(band), sight});
      };
      ForEachSpan(keys_of.geometry, keys_of.queries, keys_of.OfBand(band),
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
                      add(keys, Sight::kMasked);
                    } else {
                      keys_of.Cut(band, keys, add);
                    }
                  });
    }
  }

 private:
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
