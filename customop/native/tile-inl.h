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
#include "rotation-inl.h"
#include "softmax-inl.h"
#include "tile_data-inl.h"
#include "tile_mask-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

// What all tasks of one run read.
template <typename T>
struct Run {
  const AttentionParams& params;
  const AttentionArgs<T>& args;
  const AngleTables& tables;
  const Positions<T>& positions;
  const RawKeyTables& raw_tables;
  const DocumentRuns& documents;
  const CachedRows<T, float> keys;
  const CachedRows<T, T> values;
  const float scale;    // positive: a negative scale stands as
  const bool negate;    // the negative of the queries
  const bool in_place;  // few rows: keys and values are read where they stand
  const bool modify;    // scores are more than products times the scale
  const bool pairs;     // products read pairs of bfloat16
  const bool copy;      // tasks copy their own past keys and values to present

  // What is left to make scores of what the softmax gets.
  float ScoreOfProduct() const { return modify ? 1.0f : scale; }
};

// Where a task's parts stand in its working memory, in floats.
struct TileLayout {
  size_t query_columns, v_columns;  // head_size and v_head_size in whole vectors
  size_t keys_of_map;               // packed keys as one of the bands' ways to place them has them
  size_t queries, sums, maxima, totals, keys, turned, values, scores, band_scores, shown, row_shown,
      biases, ids, end;

  template <typename T>
  TileLayout(const AttentionParams& params, const AttentionArgs<T>& args, size_t key_maps,
             size_t rows)
      : query_columns(PaddedColumns(static_cast<size_t>(args.head_size))),
        v_columns(PaddedColumns(static_cast<size_t>(args.v_head_size))) {
    size_t next = 0;
    const auto take = [&next](size_t floats) {
      const size_t at = next;
      next += RoundUp(floats, kPanel);
      return at;
    };
    constexpr size_t kKeys = static_cast<size_t>(kTileKeys);
    queries = take(params.bands.size() * rows * query_columns);
    sums = take(rows * v_columns);
    maxima = take(rows);
    totals = take(rows);
    keys_of_map = RoundUp(kKeys * static_cast<size_t>(args.head_size), kPanel);
    keys = take(keys_of_map * (params.raw_cache ? key_maps : 1));
    turned = take(params.raw_cache ? keys_of_map : 0);
    values = take(kKeys * v_columns);
    scores = take(kBlockRows * kKeys);
    band_scores = take(kBlockRows * kKeys);
    shown = take(kKeys);
    row_shown = take(kBlockRows * kKeys);
    biases = take(ScoreModifiers<T>::kBuffers * kKeys);
    ids = take(rows * sizeof(int64_t) / sizeof(float));
    end = next;
  }
};

// The running softmax of a task's rows, and the steps that carry it on.
template <typename T>
class TileAttention {
 public:
  TileAttention(const Run<T>& run, const Task& task, const TileLayout& layout, float* memory)
      : run_(run),
        task_(task),
        past_(run.args.past(task.batch)),
        total_(run.args.total(task.batch)),
        shift_(run.positions.Shift(task.batch)),
        group_(run.params.group()),
        layout_(layout),
        rows_(static_cast<size_t>(task.queries.size() * group_)),
        queries_(memory + layout.queries),
        sums_(memory + layout.sums),
        maxima_(memory + layout.maxima),
        totals_(memory + layout.totals),
        data_(static_cast<size_t>(run.args.head_size), static_cast<size_t>(run.args.v_head_size),
              run.pairs, memory + layout.keys, memory + layout.values),
        keys_(memory + layout.keys),
        turned_(memory + layout.turned),
        scores_(memory + layout.scores),
        band_scores_(memory + layout.band_scores),
        row_shown_(memory + layout.row_shown),
        mask_(run.params, run.args, run.documents, task, memory + layout.shown,
              reinterpret_cast<int64_t*>(memory + layout.ids)),
        modifiers_(run.params, run.args, run.scale, memory + layout.biases, kTileKeys) {
    packed_.resize(run.raw_tables.maps());
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
                              run_.values.Split(run_.args, task_.batch), mask_.Split()};
    mask_.ForEachSpan(keys, [&](Range span) {
      for (Range tile = span; !tile.empty(); tile = {tile.end, span.end}) {
        tile.end = std::min(tile.begin + kTileKeys, span.end);
        // Within a tile, keys stand in one tensor and one section.
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
  // Of the products; Run::ScoreOfProduct makes a score of it.
  float maximum(size_t row) const { return maxima_[row]; }
  float total(size_t row) const { return totals_[row]; }

 private:
  // A row's query by its place in the call and by its index among all keys.
  int64_t PlaceOf(size_t row) const {
    return task_.queries.begin + static_cast<int64_t>(row) / group_;
  }
  int64_t IndexOf(size_t row) const { return past_ + PlaceOf(row); }
  int64_t HeadOf(size_t row) const {
    return task_.kv_head * group_ + static_cast<int64_t>(row) % group_;
  }

  void PackQueries() {
    const AttentionArgs<T>& args = run_.args;
    const size_t size = static_cast<size_t>(args.head_size);
    float* out = queries_;
    for (size_t band = 0; band < run_.params.bands.size(); ++band) {
      for (size_t r = 0; r < rows_; ++r) {
        const int64_t place = PlaceOf(r);
        const float* table =
            run_.tables.rotates() ? run_.tables.QueryRow(band, task_.batch, place) : nullptr;
        RotateHead(run_.params, args.query.At(task_.batch, HeadOf(r), place), table, size, out);
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
    data_.Begin(static_cast<size_t>(tile.size()), run_.in_place);
    if (run_.params.raw_cache) {
      tile_ = tile;
      std::fill(packed_.begin(), packed_.end(), false);
    } else {
      run_.keys.At(run_.args, task_.batch, task_.kv_head, tile.begin,
                   [&](const auto* keys, size_t stride) { data_.TakeKeys(keys, stride); });
    }
    run_.values.At(run_.args, task_.batch, task_.kv_head, tile.begin,
                   [&](const T* values, size_t stride) { data_.TakeValues(values, stride); });
    for (size_t r = 0; r < rows_; r += kBlockRows) {
      const size_t rows = std::min(kBlockRows, rows_ - r);
      ComputeRows(tile, r, rows);
    }
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
    Score(tile, columns, first, rows);

    const size_t begin = static_cast<size_t>(columns.begin) / kLanes * kLanes;
    const size_t end = PaddedColumns(static_cast<size_t>(columns.end));
    float corrections[kBlockRows];
    bool all_seen = true;
    for (size_t r = 0; r < rows; ++r) {
      float* scores = scores_ + r * kTileKeys;
      if (run_.modify) {
        modifiers_.Apply(task_.batch, HeadOf(first + r), PlaceOf(first + r), tile, begin, end,
                         scores, masks[r], row_shown_ + r * kTileKeys);
      }
      all_seen = all_seen && masks[r].shown == nullptr && masks[r].visible == columns;
      corrections[r] = SoftmaxRow(scores, begin, end, run_.ScoreOfProduct() * kLog2OfE, masks[r],
                                  maxima_[first + r], totals_[first + r]);
    }
    for (size_t r = 0; r < rows && data_.WantsPairs(); ++r) {
      MakePairs(scores_ + r * kTileKeys, begin, end);
    }
    float* sums = sums_ + first * layout_.v_columns;
    if (all_seen || data_.ValuesAreFinite()) {
      data_.Accumulate(rows, scores_, kTileKeys, static_cast<size_t>(columns.begin),
                       static_cast<size_t>(columns.end), corrections, sums, layout_.v_columns);
      return;
    }
    for (size_t r = 0; r < rows; ++r) {
      AccumulateSeen(scores_ + r * kTileKeys, masks[r], corrections[r],
                     sums + r * layout_.v_columns);
    }
  }

  // scores_ = queries · keys for the columns, each by the band of its distance.
  void Score(Range tile, Range columns, size_t first, size_t rows) {
    const size_t bands = run_.params.bands.size();
    if (bands == 1) return ScoreBand(columns, 0, first, rows, scores_);
    for (size_t b = 0; b < bands; ++b) {
      const Range any{BandKeysOf(b, first).begin, BandKeysOf(b, first + rows - 1).end};
      const Range band_columns = columns.Intersect({any.begin - tile.begin, any.end - tile.begin});
      if (band_columns.empty()) continue;
      if (band_columns == columns && AllInBand(tile, columns, b, first, rows)) {
        return ScoreBand(columns, b, first, rows, scores_);
      }
      ScoreBand(band_columns, b, first, rows, band_scores_);
      for (size_t r = 0; r < rows; ++r) {
        const Range keys = BandKeysOf(b, first + r);
        const Range own = columns.Intersect({keys.begin - tile.begin, keys.end - tile.begin});
        if (own.empty()) continue;
        const size_t at = r * static_cast<size_t>(kTileKeys) + static_cast<size_t>(own.begin);
        memcpy(scores_ + at, band_scores_ + at, static_cast<size_t>(own.size()) * sizeof(float));
      }
    }
  }

  Range BandKeysOf(size_t band, size_t row) const {
    return BandKeys(run_.params, band, IndexOf(row), shift_, total_);
  }

  // Turns the raw keys of the tile to where a band has them, once for all bands
  // that have them there.
  void UseKeysOf(size_t band) {
    const size_t map = run_.raw_tables.MapOf(band);
    float* memory = keys_ + map * layout_.keys_of_map;
    data_.PackKeysInto(memory);
    const size_t size = static_cast<size_t>(run_.args.head_size);
    float* turned = run_.in_place ? memory : turned_;
    if (packed_[map] && !run_.in_place) return;
    if (!packed_[map]) {
      run_.keys.At(
          run_.args, task_.batch, task_.kv_head, tile_.begin, [&](const auto* keys, size_t stride) {
            for (int64_t j = 0; j < tile_.size(); ++j) {
              float* out = turned + static_cast<size_t>(j) * size;
              RotateHead(run_.params, keys + static_cast<size_t>(j) * stride,
                         run_.raw_tables.Row(map, task_.batch, tile_.begin + j), size, out);
              if (run_.params.fast) RoundTo<T>(out, size);
            }
          });
      packed_[map] = true;
    }
    data_.TakeKeys(turned, size);
  }

  bool AllInBand(Range tile, Range columns, size_t b, size_t first, size_t rows) const {
    const Range keys{tile.begin + columns.begin, tile.begin + columns.end};
    const Range of_first = BandKeysOf(b, first);
    const Range of_last = BandKeysOf(b, first + rows - 1);
    return of_last.begin <= keys.begin && keys.end <= of_first.end;
  }

  void ScoreBand(Range columns, size_t band, size_t first, size_t rows, float* scores) {
    if (run_.params.raw_cache) UseKeysOf(band);
    data_.Score(rows, queries_ + (band * rows_ + first) * layout_.query_columns,
                layout_.query_columns, static_cast<size_t>(columns.begin),
                static_cast<size_t>(columns.end), scores, kTileKeys);
  }

  // Accumulate for one row, touching only keys that it sees: 0 times the
  // infinity or NaN of a hidden value would not be nothing.
  void AccumulateSeen(const float* weights, const RowMask& mask, float correction, float* sums) {
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
    CopyRows(run_.args.past_key, run_.args.present_key, run_.args.head_size, keys);
    CopyRows(run_.args.past_value, run_.args.present_value, run_.args.v_head_size, keys);
  }

  void CopyRows(const Rows<const T>& past, const Rows<T>& present, int64_t channels, Range keys) {
    if (present.data == nullptr) return;
    memcpy(present.At(task_.batch, task_.kv_head, keys.begin),
           past.At(task_.batch, task_.kv_head, keys.begin),
           static_cast<size_t>(keys.size() * channels) * sizeof(T));
  }

  const Run<T>& run_;
  const Task task_;
  const int64_t past_;   // of the task's batch row,
  const int64_t total_;  // as these are
  const int64_t shift_;  // position - index of its tokens
  const int64_t group_;
  const TileLayout& layout_;
  const size_t rows_;
  float* const queries_;  // [bands][rows][query_columns], rotated
  float* const sums_;     // [rows][v_columns]
  float* const maxima_;   // [rows]: of the products, or scores if they are modified
  float* const totals_;   // [rows]: the softmax's denominator so far
  TileData<T> data_;
  float* const keys_;    // [ways to place keys][kTileKeys * head_size], packed
  float* const turned_;  // [kTileKeys][head_size], raw keys on the way there
  Range tile_;
  std::vector<bool> packed_;  // by way to place keys, of the tile
  float* const scores_;       // [kBlockRows][kTileKeys]
  float* const band_scores_;
  float* const row_shown_;  // [kBlockRows][kTileKeys]
  TileMask<T> mask_;
  ScoreModifiers<T> modifiers_;
};

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_TILE_INL_H_
