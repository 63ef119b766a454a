// The keys that a block of query rows visits, found on the device by a block of threads.
#ifndef ROPE_CUDA_PLAN_SPANS_H_
#define ROPE_CUDA_PLAN_SPANS_H_

#include <algorithm>
#include <cstdint>

#include "block_keys.h"
#include "device.h"
#include "key_groups.h"
#include "plan_call.h"
#include "schedule.h"

namespace rope::cuda {

// combine of what `of` says in each of the threads, a power of two of them; the memory has a value
// for each.
template <int kThreads, typename V, typename Block, typename Of, typename Combine>
ROPE_DEVICE V Together(Block& block, V* shared, const Of& of, const Combine& combine) {
  block.ForThreads([&](int thread) { shared[thread] = of(thread); });
  for (int step = kThreads / 2; step > 0; step /= 2) {
    block.ForThreads([&](int thread) {
      if (thread < step) shared[thread] = combine(shared[thread], shared[thread + step]);
    });
  }
  const V all = shared[0];
  block.Barrier();  // before the memory is written again
  return all;
}

// What the threads of a block share.
template <int kThreads>
struct SpanMemory {
  union {
    ShownKeys shown[kThreads];
    QueryDocuments documents[kThreads];
    int32_t sums[kThreads];
    struct {
      int32_t first, end, shown_to_all;  // in a tile of keys
    } tiles[kThreads];
  };
  KeyGroups groups;
  int64_t first_keys_end;

  SpanMemory() = delete;  // it is memory of any content
};

template <typename T, typename Block, int kThreads>
class SpanPlanner {
 public:
  ROPE_DEVICE SpanPlanner(Block& block, SpanMemory<kThreads>& shared, const PlanCall<T>& plan,
                          int64_t row, int64_t number)
      : block_(block),
        shared_(shared),
        plan_(plan),
        call_(plan.call),
        row_(row),
        number_(number),
        past_(plan.past(row)),
        total_(past_ + call_.new_keys) {}

  ROPE_DEVICE void Run() {
    LookAtMask();
    TakeFirstKeys();
    if (number_ == 0) WriteRow();
    WriteShown();
    if (number_ < call_.schedule.blocks) PlanSpans();
  }

 private:
  ROPE_DEVICE const int64_t* documents() const {
    return call_.mask.documents == nullptr
               ? nullptr
               : call_.mask.documents + row_ * call_.mask.documents_batch_stride;
  }

  // Blocks behind the first one of a row need no more than the mask.
  ROPE_DEVICE void LookAtMask() {
    const int64_t* ids = number_ == 0 ? documents() : nullptr;
    if (plan_.mask == nullptr && ids == nullptr) {
      shown_ = {0, total_, total_, past_, false};
      return;
    }
    shown_ = Together<kThreads>(
        block_, shared_.shown,
        [&](int thread) {
          ShownKeys own;
          for (int64_t j = thread; j < total_; j += kThreads) {
            if (!plan_.Shows(row_, j)) continue;
            if (own.count++ == 0) own.begin = j;
            own.end = j + 1;
            if (j >= past_ && own.first_new > j) own.first_new = j;
            own.bad_id = own.bad_id || (ids != nullptr && ids[j] < kReader);
          }
          return own;
        },
        [](const ShownKeys& a, const ShownKeys& b) { return a.And(b); });
  }

  ROPE_DEVICE bool holes() const { return shown_.count < shown_.end - shown_.begin; }
  ROPE_DEVICE int64_t shift() const { return plan_.ShiftAt(row_, shown_.first_new - past_); }

  ROPE_DEVICE void TakeFirstKeys() {
    block_.ForThreads([&](int thread) {
      if (thread != 0) return;
      int64_t end = call_.mask.first_keys;
      if (plan_.counts_first_keys) {
        end = shown_.count < end ? total_ : std::min(shown_.begin, total_);
        for (int64_t left = call_.mask.first_keys; left > 0 && end < total_; ++end) {
          left -= plan_.Shows(row_, end) ? 1 : 0;
        }
      }
      shared_.first_keys_end = end;
    });
    first_keys_end_ = shared_.first_keys_end;
  }

  // What the other kernels ask of the row; rows that are alike are all this one's.
  ROPE_DEVICE void WriteRow() {
    const bool positions_fit = !block_.AnyThread([&](int thread) {
      bool bad = false;
      for (int64_t place = thread; place < call_.length && plan_.positions != nullptr;
           place += kThreads) {
        if (!plan_.Shows(row_, past_ + place)) continue;
        for (int64_t axis = 0; axis < plan_.axes; ++axis) {
          bad = bad || !plan_.CanBe(plan_.Position(row_, place, axis));
        }
      }
      return bad;
    });
    const bool asks = plan_.consecutive && positions_fit;
    const bool consecutive = !block_.AnyThread([&](int thread) {
      bool bad = false;
      for (int64_t place = thread; place < call_.length && asks; place += kThreads) {
        if (!plan_.Shows(row_, past_ + place)) continue;
        bad = bad || plan_.Position(row_, place, 0) - past_ - place != shift();
      }
      return bad;
    });
    block_.ForThreads([&](int thread) {
      if (thread != 0) return;
      bool refused = false;
      const auto refuse = [&](bool bad, Fault fault) {
        refused = refused || bad;
        if (bad && plan_.faults != nullptr) plan_.faults[static_cast<int>(fault)] = 1;
      };
      refuse(!plan_.LengthFits(row_), Fault::kCacheLength);
      refuse(past_ + call_.new_keys > plan_.columns ||
                 (plan_.LengthFits(row_) && plan_.cache_lengths != nullptr &&
                  plan_.cache_lengths[row_] != past_),
             Fault::kColumns);
      refuse(shown_.bad_id, Fault::kDocumentIds);
      refuse(!positions_fit, Fault::kPositions);
      refuse(!consecutive, Fault::kConsecutive);
      const int64_t rows = plan_.rows_alike ? call_.batch : 1;
      for (int64_t b = row_; b < row_ + rows; ++b) {
        if (plan_.row_past != nullptr) plan_.row_past[b] = static_cast<int32_t>(past_);
        if (plan_.first_keys_ends != nullptr) plan_.first_keys_ends[b] = first_keys_end_;
        plan_.shifts[b] = shift();
        plan_.refused[b] = refused ? 1 : 0;
      }
    });
    if (plan_.shown_before != nullptr && WritesShown()) WriteShownBefore();
  }

  // Rows that share a mask are written once; columns behind a row's last key are written, too.
  ROPE_DEVICE bool WritesShown() const { return plan_.mask_batch_stride != 0 || row_ == 0; }

  ROPE_DEVICE void WriteShown() {
    if (plan_.shown == nullptr || !WritesShown()) return;
    const int64_t blocks = std::max<int64_t>(1, call_.schedule.blocks);
    const int64_t each = (plan_.columns + blocks - 1) / blocks;
    const int64_t end = std::min((number_ + 1) * each, plan_.columns);
    uint8_t* shown = plan_.shown + row_ * call_.mask.shown_batch_stride;
    block_.ForThreads([&](int thread) {
      for (int64_t j = number_ * each + thread; j < end; j += kThreads) {
        shown[j] = plan_.Shows(row_, j) ? 1 : 0;
      }
    });
  }

  // For each index the number of shown keys before it: each thread counts those of a piece.
  ROPE_DEVICE void WriteShownBefore() {
    int32_t* before = plan_.shown_before + row_ * call_.score.shown_before_stride;
    const int64_t each = (plan_.columns + kThreads - 1) / kThreads;
    const auto piece = [&](int thread, const auto& use) {
      const int64_t end = std::min((thread + 1) * each, plan_.columns);
      for (int64_t j = thread * each; j < end; ++j) use(j, plan_.Shows(row_, j) ? 1 : 0);
    };
    block_.ForThreads([&](int thread) {
      int32_t sum = 0;
      piece(thread, [&](int64_t, int32_t shown) { sum += shown; });
      shared_.sums[thread] = sum;
    });
    block_.ForThreads([&](int thread) {
      if (thread != 0) return;
      int32_t sum = 0;
      for (int i = 0; i < kThreads; ++i) {
        const int32_t own = shared_.sums[i];
        shared_.sums[i] = sum;
        sum += own;
      }
    });
    block_.ForThreads([&](int thread) {
      int32_t sum = shared_.sums[thread];
      piece(thread, [&](int64_t j, int32_t shown) {
        before[j] = sum;
        sum += shown;
      });
    });
  }

  ROPE_DEVICE void PlanSpans() {
    const Schedule& schedule = call_.schedule;
    const int64_t first_row = number_ * schedule.shape.rows;
    const int64_t left = call_.length * call_.group() - first_row;
    const Range places =
        PlacesOf(first_row, std::min<int64_t>(schedule.shape.rows, left), call_.group());
    const Range queries{past_ + places.begin, past_ + places.end};
    const int64_t tile_keys = schedule.shape.keys;
    const BlockKeys keys_of{call_.bands,
                            static_cast<size_t>(call_.band_count),
                            Geometry(call_.mask.causal, call_.mask.window, first_keys_end_, total_),
                            shift(),
                            total_,
                            queries,
                            tile_keys};
    const bool asks = holes() || documents() != nullptr;
    if (documents() != nullptr) LookAtDocuments(queries);
    const int64_t list = row_ * schedule.batch_stride + number_;
    int64_t at = list * plan_.spans_of_block;  // of the next span, in the first thread
    for (size_t band = 0; band < keys_of.band_count; ++band) {
      block_.Lanes([&](int thread) {
        if (thread == 0) shared_.groups.Begin();
      });
      for (int section = 0; section < 2; ++section) {
        const Range part = keys_of.OfBand(band)
                               .Intersect(keys_of.geometry.KeysOfAny(
                                   queries.begin, queries.end - 1,
                                   section == 0 ? keys_of.geometry.FirstSection()
                                                : keys_of.geometry.SecondSection()))
                               .Intersect({shown_.begin, shown_.end});
        if (part.empty()) continue;
        if (asks) {
          LookAtKeys(part);
        } else {
          block_.Lanes([&](int thread) {
            if (thread == 0) shared_.groups.AddByIndex(part, tile_keys);
          });
        }
      }
      block_.Lanes([&](int thread) {
        if (thread != 0) return;
        const auto add = [&](Range keys, Sight sight) {
          plan_.spans[at++] = {keys, static_cast<int32_t>(band), sight};
        };
        shared_.groups.End([&](Range keys, bool masked) {
          if (masked) {
            add(keys, Sight::kMasked);
          } else {
            keys_of.Cut(band, keys, add);
          }
        });
      });
    }
    block_.Lanes([&](int thread) {
      if (thread != 0) return;
      plan_.lists[list] = {static_cast<int32_t>(list * plan_.spans_of_block),
                           static_cast<int32_t>(at)};
    });
  }

  ROPE_DEVICE void LookAtDocuments(Range queries) {
    documents_ = Together<kThreads>(
        block_, shared_.documents,
        [&](int thread) {
          QueryDocuments own;
          for (int64_t i = queries.begin + thread; i < queries.end; i += kThreads) {
            own = own.And(QueryDocuments::Of(documents()[i]));
          }
          return own;
        },
        [](const QueryDocuments& a, const QueryDocuments& b) { return a.And(b); });
  }

  // Adds the keys of a range that mask and documents show to some query: each thread looks at a
  // tile.
  ROPE_DEVICE void LookAtKeys(Range keys) {
    const DocumentMask mask = call_.mask.document_mask;
    const int64_t tile_keys = call_.schedule.shape.keys;
    for (int64_t base = keys.begin; base < keys.end; base += kThreads * tile_keys) {
      block_.ForThreads([&](int thread) {
        const int64_t begin = base + thread * tile_keys;
        const int64_t end = std::min(begin + tile_keys, keys.end);
        auto& tile = shared_.tiles[thread];
        tile = {0, 0, 0};
        for (int64_t j = begin; j < end; ++j) {
          if (!plan_.Shows(row_, j)) continue;
          const bool by_id = documents() != nullptr;
          if (by_id && !documents_.Show(mask, documents()[j])) continue;
          const auto at = static_cast<int32_t>(j - begin);
          if (tile.end == 0) tile.first = at;
          tile.end = at + 1;
          if (!by_id || documents_.ShowToAll(mask, documents()[j])) ++tile.shown_to_all;
        }
      });
      block_.ForThreads([&](int thread) {
        if (thread != 0) return;
        for (int i = 0; i < kThreads && base + i * tile_keys < keys.end; ++i) {
          const auto& tile = shared_.tiles[i];
          if (tile.end == 0) continue;
          const int64_t begin = base + i * tile_keys;
          shared_.groups.Add({begin + tile.first, begin + tile.end}, tile.shown_to_all, tile_keys);
        }
      });
    }
  }

  Block& block_;
  SpanMemory<kThreads>& shared_;
  const PlanCall<T>& plan_;
  const Call<T>& call_;
  const int64_t row_, number_;  // of the batch, and of the row's blocks
  const int64_t past_, total_;
  ShownKeys shown_;
  QueryDocuments documents_;
  int64_t first_keys_end_ = 0;
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_PLAN_SPANS_H_
