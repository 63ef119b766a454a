// One task: a block of queries against a range of keys, tile by tile.
#if defined(ROPE_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_TILE_INL_H_
#undef ROPE_TILE_INL_H_
#else
#define ROPE_TILE_INL_H_
#endif

#include <algorithm>
#include <cstring>
#include <vector>

#include "cache-inl.h"
#include "modifiers-inl.h"
#include "plan.h"
#include "positions.h"
#include "raw_keys-inl.h"
#include "softmax-inl.h"
#include "tile_data-inl.h"
#include "tile_layout-inl.h"
#include "tile_mask-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

// What all tasks of one run read. C is the element type of its caches.
template <typename T, typename C>
struct Run {
  const AttentionParams& params;
  const AttentionArgs<T, C>& args;
  const AngleTables& tables;
  const Positions<T>& positions;
  const KeyAngles& key_angles;
  const DocumentRuns& documents;
  const FirstKeys& first_keys;
  const DistanceRun& distances;
  CachedRows<C, float> keys{};
  CachedRows<C, T> values{};
  float scale = 1;            // never negative: the softmax needs that
  bool negate = false;        // the node's scale is negative, so queries are negated instead
  bool in_place = false;      // few rows: keys and values are read where they stand
  bool modify = false;        // scores are more than products times the scale
  bool pairs = false;         // products read pairs of bfloat16
  bool scores_first = false;  // a tile's scores are made for all heads before its softmax
  bool copy = false;          // tasks copy their own past keys and values to present

  // The factor that makes scores of the numbers which the softmax reads: the scale, unless
  // ScoreModifiers has applied it already.
  float ScoreOfProduct() const { return modify ? 1.0f : scale; }
};

// The running softmax of a task's rows, and the steps that carry it on.
template <typename T, typename C>
class TileAttention {
 public:
  TileAttention(const Run<T, C>& run, const Task& task, const TileLayout& layout, float* memory)
      : run_(run),
        task_(task),
        past_(run.args.past(task.batch)),
        total_(run.args.total(task.batch)),
        shift_(run.positions.Shift(task.batch)),
        layout_(layout),
        head_rows_(task.rows_of_head()),
        rows_(task.rows()),
        queries_(memory + layout.queries),
        sums_(memory + layout.sums),
        maxima_(memory + layout.maxima),
        totals_(memory + layout.totals),
        data_(static_cast<size_t>(run.args.head_size), static_cast<size_t>(run.args.v_head_size),
              run.pairs, memory + layout.keys, memory + layout.values),
        keys_(memory + layout.keys),
        rotated_(memory + layout.rotated),
        raw_keys_(run.params, run.key_angles, static_cast<size_t>(run.args.head_size),
                  memory + layout.raw_keys),
        scores_(memory + layout.scores),
        band_scores_(memory + layout.band_scores),
        row_shown_(memory + layout.row_shown),
        mask_(run.params, run.args, run.documents, run.first_keys, task, memory + layout.shown,
              reinterpret_cast<int64_t*>(memory + layout.ids)),
        modifiers_(run.params, run.args, run.distances, run.scale, memory + layout.biases,
                   kTileKeys) {
    packed_.resize(run.key_angles.maps());
  }

  void Compute() {
    PackQueries();
    std::fill(sums_, sums_ + rows_ * layout_.v_columns, 0.0f);
    std::fill(maxima_, maxima_ + rows_, kNegativeInfinity);
    std::fill(totals_, totals_ + rows_, 0.0f);
    const Range keys = task_.keys.Intersect({0, total_});
    int64_t copied = keys.begin;
    const auto copy_to = [&](int64_t end) {
      if (run_.copy) CopyPast({copied, std::min(end, past_)});
      copied = end;
    };
    const int64_t splits[] = {run_.keys.Split(run_.args, task_.batch),
                              run_.values.Split(run_.args, task_.batch), mask_.Split(),
                              run_.args.ring.Split(task_.batch)};
    mask_.ForEachSpan(keys, [&](Range span) {
      for (Range tile = span; !tile.empty(); tile = {tile.end, span.end}) {
        tile.end = std::min(tile.begin + kTileKeys, span.end);
        // The keys of a tile stand one behind the other in one tensor, and are all first keys or
        // none of them is.
        for (const int64_t split : splits) {
          if (tile.begin < split) tile.end = std::min(tile.end, split);
        }
        copy_to(tile.end);
        ComputeTile(tile);
      }
    });
    copy_to(keys.end);
  }

  size_t rows() const { return rows_; }
  const float* sums(size_t row) const { return sums_ + row * layout_.v_columns; }
  // Of the products; times Run::ScoreOfProduct it is a score.
  float maximum(size_t row) const { return maxima_[row]; }
  float total(size_t row) const { return totals_[row]; }

 private:
  // The index of a row's query among all keys.
  int64_t IndexOf(size_t row) const { return past_ + task_.PlaceOf(row); }

  void PackQueries() {
    const AttentionCall<T>& args = run_.args;
    const size_t size = static_cast<size_t>(args.head_size);
    float* out = queries_;
    for (size_t band = 0; band < run_.params.bands.size(); ++band) {
      for (size_t r = 0; r < rows_; ++r) {
        // Heads of a token stand far from those of the next, so the CPU does not fetch them itself.
        constexpr size_t kRowsAhead = 16;
        if (band == 0 && r + kRowsAhead < rows_) {
          const size_t later = r + kRowsAhead;
          const T* query = args.query.At(task_.batch, task_.HeadOf(later), task_.PlaceOf(later));
          for (size_t x = 0; x < size; x += 64 / sizeof(T)) FetchToL2(query + x);
        }
        const int64_t place = task_.PlaceOf(r);
        const float* table =
            run_.tables.rotates() ? run_.tables.QueryRow(band, task_.batch, place) : nullptr;
        RotateHead(run_.params, args.query.At(task_.batch, task_.HeadOf(r), place), table, size,
                   out);
        MultiplyChannels(run_.params.query_factors, out);
        if (run_.params.fast) RoundTo<T>(out, size);
        if (run_.params.temperature.slope > 0) {
          const double factor = run_.params.temperature.At(run_.positions.At(task_.batch, place));
          for (size_t x = 0; x < size; ++x) out[x] *= static_cast<float>(factor);
        }
        for (size_t x = 0; x < size && run_.negate; ++x) out[x] = -out[x];
        std::fill(out + size, out + layout_.query_columns, 0.0f);
        if (run_.pairs) MakePairs(out, 0, layout_.query_columns);
        out += layout_.query_columns;
      }
    }
  }

  void ComputeTile(Range tile) {
    if (!mask_.Begin(tile)) return;
    tile_ = tile;
    std::fill(packed_.begin(), packed_.end(), false);
    if (run_.scores_first) ScoreRawKeys(tile);
    ForEachHead([&](size_t begin, size_t end) {
      data_.Begin(static_cast<size_t>(tile.size()), run_.in_place);
      if (!run_.params.raw_cache) {
        run_.keys.At(run_.args, task_.batch, kv_head_, tile.begin,
                     [&](const auto* keys, size_t stride, const float* scales) {
                       data_.TakeKeys(keys, stride, scales);
                     });
      }
      run_.values.At(run_.args, task_.batch, kv_head_, tile.begin,
                     [&](const auto* values, size_t stride, const float* scales) {
                       data_.TakeValues(values, stride, scales);
                     });
      for (size_t r = begin; r < end; r += kBlockRows) {
        ComputeRows(tile, r, std::min(kBlockRows, end - r));
      }
    });
  }

  // Calls body(begin, end) for the rows of each key-value head.
  template <typename Body>
  void ForEachHead(const Body& body) {
    for (size_t begin = 0; begin < rows_; begin += head_rows_) {
      kv_head_ = task_.kv_heads.begin + static_cast<int64_t>(begin / head_rows_);
      body(begin, begin + head_rows_);
    }
  }

  // The scores of all rows with a tile's raw keys: of a few keys at a time, so that their angles
  // stay in L1 for all heads.
  void ScoreRawKeys(Range tile) {
    for (Range some{tile.begin, 0}; some.begin < tile.end; some.begin = some.end) {
      some.end = std::min(tile.end, some.begin + kAngleKeys);
      raw_keys_.Begin(task_.batch, some);
      ForEachHead([&](size_t begin, size_t end) {
        for (size_t r = begin; r < end; r += kBlockRows) {
          Score(tile, {some.begin - tile.begin, some.end - tile.begin}, r,
                std::min(kBlockRows, end - r), ScoresOf(r));
        }
      });
    }
  }

  // Where the scores of a block of rows stand.
  float* ScoresOf(size_t first) const {
    return run_.scores_first ? scores_ + first * kTileKeys : scores_;
  }

  // A register block of rows against one tile.
  void ComputeRows(Range tile, size_t first, size_t rows) {
    RowMask masks[kBlockRows];
    Range columns{};
    for (size_t r = 0; r < rows; ++r) {
      masks[r] = mask_.Row(IndexOf(first + r), row_shown_ + r * kTileKeys);
      columns = columns.Hull(masks[r].visible);
    }
    if (columns.empty()) return;
    float* const block = ScoresOf(first);
    if (!run_.scores_first) Score(tile, columns, first, rows, block);

    const size_t begin = static_cast<size_t>(columns.begin) / kLanes * kLanes;
    const size_t end = PaddedColumns(static_cast<size_t>(columns.end));
    float largest[kBlockRows];
    float corrections[kBlockRows];
    bool all_visible = true;
    for (size_t r = 0; r < rows; ++r) {
      float* scores = block + r * kTileKeys;
      if (run_.modify) {
        modifiers_.Apply(task_.batch, task_.HeadOf(first + r), task_.PlaceOf(first + r), tile,
                         begin, end, scores, masks[r], row_shown_ + r * kTileKeys);
      }
      all_visible = all_visible && masks[r].shown == nullptr && masks[r].visible == columns;
      largest[r] = LargestVisible(scores, begin, end, masks[r]);
    }
    // Now that all maxima are known, no row waits for its own.
    for (size_t r = 0; r < rows; ++r) {
      const auto softmax = [&](auto pairs) HWY_ATTR {
        return SoftmaxRow<decltype(pairs)::value>(block + r * kTileKeys, begin, end,
                                                  run_.ScoreOfProduct() * kLog2OfE, largest[r],
                                                  maxima_[first + r], totals_[first + r]);
      };
      if constexpr (kPairable<T, C>) {
        corrections[r] =
            data_.WantsPairs() ? softmax(std::true_type()) : softmax(std::false_type());
      } else {
        corrections[r] = softmax(std::false_type());
      }
    }
    data_.ScaleWeights(rows, static_cast<size_t>(columns.begin), static_cast<size_t>(columns.end),
                       block, kTileKeys);
    float* sums = sums_ + first * layout_.v_columns;
    if (all_visible || data_.ValuesAreFinite()) {
      data_.Accumulate(rows, block, kTileKeys, static_cast<size_t>(columns.begin),
                       static_cast<size_t>(columns.end), corrections, sums, layout_.v_columns);
      return;
    }
    for (size_t r = 0; r < rows; ++r) {
      AccumulateVisible(block + r * kTileKeys, masks[r], corrections[r],
                        sums + r * layout_.v_columns);
    }
  }

  // scores = queries · keys for the columns, each by the band of its distance.
  void Score(Range tile, Range columns, size_t first, size_t rows, float* scores) {
    const size_t bands = run_.params.bands.size();
    if (bands == 1) return ScoreBand(columns, 0, first, rows, scores);
    for (size_t b = 0; b < bands; ++b) {
      const Range any{BandKeysOf(b, first).begin, BandKeysOf(b, first + rows - 1).end};
      const Range band_columns = columns.Intersect({any.begin - tile.begin, any.end - tile.begin});
      if (band_columns.empty()) continue;
      if (band_columns == columns && AllInBand(tile, columns, b, first, rows)) {
        return ScoreBand(columns, b, first, rows, scores);
      }
      ScoreBand(band_columns, b, first, rows, band_scores_);
      for (size_t r = 0; r < rows; ++r) {
        const Range keys = BandKeysOf(b, first + r);
        const Range own = columns.Intersect({keys.begin - tile.begin, keys.end - tile.begin});
        if (own.empty()) continue;
        const size_t at = r * static_cast<size_t>(kTileKeys) + static_cast<size_t>(own.begin);
        memcpy(scores + at, band_scores_ + at, static_cast<size_t>(own.size()) * sizeof(float));
      }
    }
  }

  Range BandKeysOf(size_t band, size_t row) const {
    return BandKeys(run_.params, band, IndexOf(row), shift_, total_);
  }

  // Rotates and packs the raw keys of the tile for a map, once for all of its bands.
  void PackKeysOf(size_t map) {
    data_.PackKeysInto(keys_ + map * layout_.keys_of_map);
    if (packed_[map]) return;
    const size_t size = static_cast<size_t>(run_.args.head_size);
    for (int64_t first = 0; first < tile_.size(); first += kRotatedKeys) {
      const int64_t last = std::min(tile_.size(), first + kRotatedKeys);
      for (int64_t j = first; j < last; j += kAngleKeys) {
        const Range some{tile_.begin + j, tile_.begin + std::min(last, j + kAngleKeys)};
        float* out = rotated_ + static_cast<size_t>(j - first) * size;
        raw_keys_.Begin(task_.batch, some);
        run_.keys.At(run_.args, task_.batch, kv_head_, some.begin,
                     [&](const auto* keys, size_t stride, const float* scales) {
                       raw_keys_.Rotate(map, some, keys, stride, scales, out);
                     });
      }
      data_.PackKeys(static_cast<size_t>(first), static_cast<size_t>(last - first), rotated_, size);
    }
    packed_[map] = true;
  }

  bool AllInBand(Range tile, Range columns, size_t b, size_t first, size_t rows) const {
    const Range keys{tile.begin + columns.begin, tile.begin + columns.end};
    const Range of_first = BandKeysOf(b, first);
    const Range of_last = BandKeysOf(b, first + rows - 1);
    return of_last.begin <= keys.begin && keys.end <= of_first.end;
  }

  void ScoreBand(Range columns, size_t band, size_t first, size_t rows, float* scores) {
    const float* queries = queries_ + (band * rows_ + first) * layout_.query_columns;
    const size_t begin = static_cast<size_t>(columns.begin);
    const size_t end = static_cast<size_t>(columns.end);
    if (run_.params.raw_cache) {
      const size_t map = run_.key_angles.MapOf(band);
      if (run_.scores_first) {
        const Range keys{tile_.begin + columns.begin, tile_.begin + columns.end};
        return run_.keys.At(run_.args, task_.batch, kv_head_, keys.begin,
                            [&](const auto* from, size_t stride, const float* scales) {
                              raw_keys_.Score(map, keys, from, stride, scales, rows, queries,
                                              layout_.query_columns, scores + begin, kTileKeys);
                            });
      }
      PackKeysOf(map);
    }
    data_.Score(rows, queries, layout_.query_columns, begin, end, scores, kTileKeys);
  }

  // Accumulate for one row, reading only the values of keys that it sees: a hidden key has
  // weight 0, but 0 times an infinite value or NaN is NaN.
  void AccumulateVisible(const float* weights, const RowMask& mask, float correction, float* sums) {
    data_.Accumulate(1, weights, 0, 0, 0, &correction, sums, 0);
    const float one = 1.0f;
    for (int64_t j = mask.visible.begin; j < mask.visible.end; ++j) {
      const size_t k = static_cast<size_t>(j);
      if (mask.shown != nullptr && mask.shown[k] == 0.0f) continue;
      data_.Accumulate(1, weights, 0, k, k + 1, &one, sums, 0);
    }
  }

  // This task's part of past -> present; nothing if past ends before it.
  void CopyPast(Range keys) {
    if (keys.empty()) return;
    for (int64_t kv_head = task_.kv_heads.begin; kv_head < task_.kv_heads.end; ++kv_head) {
      ForEachCache(run_.args, [&](int64_t channels, const auto& past, const auto& present) {
        CopyRows(kv_head, past, present, channels, keys);
      });
    }
  }

  template <typename E>
  void CopyRows(int64_t kv_head, const Rows<const E>& past, const Rows<E>& present,
                int64_t channels, Range keys) {
    if (present.data == nullptr) return;
    memcpy(present.At(task_.batch, kv_head, keys.begin), past.At(task_.batch, kv_head, keys.begin),
           static_cast<size_t>(keys.size() * channels) * sizeof(E));
  }

  const Run<T, C>& run_;
  const Task task_;
  // Of the task's batch row: its cached keys, all of its keys, and position - index of its tokens.
  const int64_t past_;
  const int64_t total_;
  const int64_t shift_;
  const TileLayout& layout_;
  const size_t head_rows_;  // of each key-value head
  const size_t rows_;
  float* const queries_;  // [bands][rows][query_columns], rotated
  float* const sums_;     // [rows][v_columns]
  float* const maxima_;   // [rows]: of the products, or scores if they are modified
  float* const totals_;   // [rows]: the softmax's denominator so far
  TileData<T, C> data_;
  float* const keys_;     // [maps][kTileKeys * head_size], packed
  float* const rotated_;  // [kRotatedKeys][head_size], raw keys before they are packed
  RawKeys<T> raw_keys_;
  Range tile_;
  int64_t kv_head_ = 0;
  std::vector<bool> packed_;  // by map: keys_ of this tile
  float* const scores_;       // [kBlockRows or rows][kTileKeys]
  float* const band_scores_;
  float* const row_shown_;  // [kBlockRows][kTileKeys]
  TileMask<T> mask_;
  ScoreModifiers<T> modifiers_;
};

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_TILE_INL_H_
