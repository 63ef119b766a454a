// One task: a block of queries against a range of keys, tile by tile.
#if defined(ROPE_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_TILE_INL_H_
#undef ROPE_TILE_INL_H_
#else
#define ROPE_TILE_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "cache-inl.h"
#include "plan.h"
#include "product-inl.h"
#include "rotation-inl.h"
#include "softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

// What all tasks of one run read.
struct Run {
  const AttentionParams& params;
  const AttentionArgs<float>& args;
  const AngleTables& tables;
  const Geometry geometry;
  const CachedRows keys;
  const CachedRows values;
  const float scale;  // positive: a negative scale stands as
  const bool negate;  // the negative of the queries
};

// Where a task's parts stand in its working memory, in floats.
struct TileLayout {
  size_t rows, head_size, v_columns;  // v_columns: v_head_size in whole vectors
  size_t queries, sums, maxima, totals, keys, values, scores, band_scores, shown, end;

  TileLayout(const AttentionParams& params, const AttentionArgs<float>& args, size_t rows_per_block)
      : rows(rows_per_block),
        head_size(static_cast<size_t>(args.head_size)),
        v_columns(PaddedColumns(static_cast<size_t>(args.v_head_size))) {
    size_t next = 0;
    const auto take = [&next](size_t floats) {
      const size_t at = next;
      next += (floats + kPanel - 1) / kPanel * kPanel;
      return at;
    };
    constexpr size_t kKeys = static_cast<size_t>(kTileKeys);
    queries = take(params.bands.size() * rows * head_size);
    sums = take(rows * v_columns);
    maxima = take(rows);
    totals = take(rows);
    keys = take(kKeys * head_size);
    values = take(kKeys * v_columns);
    scores = take(kBlockRows * kKeys);
    band_scores = take(kBlockRows * kKeys);
    shown = take(kKeys);
    end = next;
  }
};

// The running softmax of a task's rows, and the steps that carry it on.
class TileAttention {
 public:
  TileAttention(const Run& run, const Task& task, const TileLayout& layout, float* memory)
      : run_(run),
        task_(task),
        group_(run.params.group()),
        layout_(layout),
        rows_(static_cast<size_t>(task.queries.size() * group_)),
        queries_(memory + layout.queries),
        sums_(memory + layout.sums),
        maxima_(memory + layout.maxima),
        totals_(memory + layout.totals),
        keys_(memory + layout.keys),
        values_(memory + layout.values),
        scores_(memory + layout.scores),
        band_scores_(memory + layout.band_scores),
        shown_(memory + layout.shown) {}

  void Compute() {
    PackQueries();
    std::fill(sums_, sums_ + rows_ * layout_.v_columns, 0.0f);
    std::fill(maxima_, maxima_ + rows_, kNegativeInfinity);
    std::fill(totals_, totals_ + rows_, 0.0f);
    const Range seen =
        task_.keys.Intersect(run_.geometry.KeysOfAny(IndexOf(0), IndexOf(rows_ - 1)));
    for (int64_t begin = seen.begin; begin < seen.end; begin += kTileKeys) {
      ComputeTile({begin, std::min(begin + kTileKeys, seen.end)});
    }
  }

  size_t rows() const { return rows_; }
  const float* sums(size_t row) const { return sums_ + row * layout_.v_columns; }
  float maximum(size_t row) const { return maxima_[row]; }
  float total(size_t row) const { return totals_[row]; }

 private:
  // Index of a row's query among all keys.
  int64_t IndexOf(size_t row) const {
    return run_.args.past + task_.queries.begin + static_cast<int64_t>(row) / group_;
  }

  void PackQueries() {
    const AttentionArgs<float>& args = run_.args;
    float* out = queries_;
    for (size_t band = 0; band < run_.params.bands.size(); ++band) {
      for (size_t r = 0; r < rows_; ++r) {
        const int64_t place = task_.queries.begin + static_cast<int64_t>(r) / group_;
        const int64_t head = task_.kv_head * group_ + static_cast<int64_t>(r) % group_;
        const float* table =
            run_.tables.rotates() ? run_.tables.QueryRow(band, task_.batch, place) : nullptr;
        RotateHead(run_.params, args.query.At(task_.batch, head, place), table, layout_.head_size,
                   out);
        if (run_.negate) {
          for (size_t x = 0; x < layout_.head_size; ++x) out[x] = -out[x];
        }
        out += layout_.head_size;
      }
    }
  }

  // Sets shown_ for the tile's padding mask. Returns how many keys it shows.
  size_t LoadMask(Range tile) {
    const size_t count = static_cast<size_t>(tile.size());
    if (run_.args.mask == nullptr) return count;
    const int64_t* mask = run_.args.mask + task_.batch * run_.args.mask_batch_stride + tile.begin;
    size_t shown = 0;
    for (size_t j = 0; j < count; ++j) {
      shown_[j] = mask[j] != 0 ? 1.0f : 0.0f;
      shown += mask[j] != 0;
    }
    for (size_t j = count; j < PaddedColumns(count); ++j) shown_[j] = 0.0f;
    return shown;
  }

  void ComputeTile(Range tile) {
    const size_t count = static_cast<size_t>(tile.size());
    const size_t shown = LoadMask(tile);
    if (shown == 0) return;
    PackTransposed(
        count, layout_.head_size,
        [&](size_t j) {
          return run_.keys.At(task_.batch, task_.kv_head, tile.begin + static_cast<int64_t>(j));
        },
        keys_);
    const bool finite = PackRows(
        count, static_cast<size_t>(run_.args.v_head_size),
        [&](size_t j) {
          return run_.values.At(task_.batch, task_.kv_head, tile.begin + static_cast<int64_t>(j));
        },
        values_);
    for (size_t r = 0; r < rows_; r += kBlockRows) {
      const size_t rows = std::min(kBlockRows, rows_ - r);
      ComputeRows(tile, r, rows, shown < count ? shown_ : nullptr, finite);
    }
  }

  // A register block of rows against one tile.
  void ComputeRows(Range tile, size_t first, size_t rows, const float* shown, bool finite) {
    const int64_t first_index = IndexOf(first);
    const int64_t last_index = IndexOf(first + rows - 1);
    const Range seen = tile.Intersect(run_.geometry.KeysOfAny(first_index, last_index));
    if (seen.empty()) return;
    const Range columns{seen.begin - tile.begin, seen.end - tile.begin};
    Score(tile, columns, first, rows);

    const size_t begin = static_cast<size_t>(columns.begin) / kLanes * kLanes;
    const size_t end = PaddedColumns(static_cast<size_t>(columns.end));
    RowMask masks[kBlockRows];
    float corrections[kBlockRows];
    for (size_t r = 0; r < rows; ++r) {
      const Range keys = run_.geometry.Keys(IndexOf(first + r));
      masks[r].visible = Range{keys.begin - tile.begin, keys.end - tile.begin}.Intersect(
          {0, static_cast<int64_t>(tile.size())});
      masks[r].shown = shown;
      corrections[r] = SoftmaxRow(scores_ + r * kTileKeys, begin, end, run_.scale, masks[r],
                                  maxima_[first + r], totals_[first + r]);
    }
    if (finite) {
      Accumulate(tile, columns, first, rows, corrections);
    } else {
      for (size_t r = 0; r < rows; ++r) AccumulateSeen(tile, first, r, masks[r], corrections[r]);
    }
  }

  // scores_ = queries · keys for the columns, each by the band of its distance.
  void Score(Range tile, Range columns, size_t first, size_t rows) {
    const size_t bands = run_.params.bands.size();
    if (bands == 1) return ScoreBand(tile, columns, 0, first, rows, scores_);
    const int64_t total = run_.args.total();
    for (size_t b = 0; b < bands; ++b) {
      const Range any{BandKeys(run_.params, b, IndexOf(first), total).begin,
                      BandKeys(run_.params, b, IndexOf(first + rows - 1), total).end};
      const Range band_columns = columns.Intersect({any.begin - tile.begin, any.end - tile.begin});
      if (band_columns.empty()) continue;
      if (band_columns == columns && AllInBand(tile, columns, b, first, rows)) {
        return ScoreBand(tile, columns, b, first, rows, scores_);
      }
      ScoreBand(tile, band_columns, b, first, rows, band_scores_);
      for (size_t r = 0; r < rows; ++r) {
        const Range keys = BandKeys(run_.params, b, IndexOf(first + r), total);
        const Range own = columns.Intersect({keys.begin - tile.begin, keys.end - tile.begin});
        if (own.empty()) continue;
        const size_t at = r * static_cast<size_t>(kTileKeys) + static_cast<size_t>(own.begin);
        memcpy(scores_ + at, band_scores_ + at, static_cast<size_t>(own.size()) * sizeof(float));
      }
    }
  }

  bool AllInBand(Range tile, Range columns, size_t b, size_t first, size_t rows) const {
    const Range keys{tile.begin + columns.begin, tile.begin + columns.end};
    const int64_t total = run_.args.total();
    const Range of_first = BandKeys(run_.params, b, IndexOf(first), total);
    const Range of_last = BandKeys(run_.params, b, IndexOf(first + rows - 1), total);
    return of_last.begin <= keys.begin && keys.end <= of_first.end;
  }

  void ScoreBand(Range tile, Range columns, size_t band, size_t first, size_t rows, float* scores) {
    const size_t count = static_cast<size_t>(tile.size());
    const size_t size = layout_.head_size;
    const float* queries = queries_ + (band * rows_ + first) * size;
    // Products are summed up in pieces of this many channels, which about halves
    // the rounding error of one long sum.
    constexpr size_t kDepth = 32;
    static constexpr float ones[kBlockRows] = {1, 1, 1, 1, 1, 1};
    const size_t end = static_cast<size_t>(columns.end);
    size_t begin = static_cast<size_t>(columns.begin) / kLanes * kLanes;
    while (begin < end) {
      const size_t panel = begin / kPanel * kPanel;
      const size_t width = PanelVectors(panel, count) * kLanes;
      const size_t stop = std::min(panel + width, PaddedColumns(end));
      const float* keys = keys_ + panel * size + (begin - panel);
      for (size_t x = 0; x < size; x += kDepth) {
        BlockOf(rows, (stop - begin) / kLanes, queries + x, size, keys + x * width, width,
                std::min(kDepth, size - x), x == 0 ? nullptr : ones, scores + begin, kTileKeys);
      }
      begin = stop;
    }
  }

  // sums = sums * corrections + scores · values over the columns.
  void Accumulate(Range tile, Range columns, size_t first, size_t rows, const float* corrections) {
    const size_t count = static_cast<size_t>(tile.size());
    const size_t channels = static_cast<size_t>(run_.args.v_head_size);
    const size_t begin = static_cast<size_t>(columns.begin);
    for (size_t x = 0; x < channels; x += kPanel) {
      const size_t vectors = PanelVectors(x, channels);
      const size_t width = vectors * kLanes;
      BlockOf(rows, vectors, scores_ + begin, kTileKeys, values_ + count * x + begin * width, width,
              static_cast<size_t>(columns.size()), corrections,
              sums_ + first * layout_.v_columns + x, layout_.v_columns);
    }
  }

  // The same for one row, touching only keys that it sees: 0 times the infinity
  // or NaN of a hidden value would not be nothing.
  void AccumulateSeen(Range tile, size_t first, size_t row, const RowMask& mask, float correction) {
    const float* p = scores_ + row * static_cast<size_t>(kTileKeys);
    const size_t count = static_cast<size_t>(tile.size());
    const size_t channels = static_cast<size_t>(run_.args.v_head_size);
    for (size_t x = 0; x < channels; x += kPanel) {
      const size_t vectors = PanelVectors(x, channels);
      const size_t width = vectors * kLanes;
      float* sums = sums_ + (first + row) * layout_.v_columns + x;
      BlockOf(1, vectors, p, 0, values_, width, 0, &correction, sums, 0);
      const float one = 1.0f;
      for (int64_t j = mask.visible.begin; j < mask.visible.end; ++j) {
        const size_t k = static_cast<size_t>(j);
        if (mask.shown != nullptr && mask.shown[k] == 0.0f) continue;
        BlockOf(1, vectors, p + k, 0, values_ + count * x + k * width, width, 1, &one, sums, 0);
      }
    }
  }

  const Run& run_;
  const Task task_;
  const int64_t group_;
  const TileLayout& layout_;
  const size_t rows_;
  float* const queries_;  // [bands][rows][head_size], rotated
  float* const sums_;     // [rows][v_columns]
  float* const maxima_;   // [rows]
  float* const totals_;   // [rows]: the softmax's denominator so far
  float* const keys_;     // packed [head_size][tile]
  float* const values_;   // packed [tile][v_head_size]
  float* const scores_;   // [kBlockRows][kTileKeys]
  float* const band_scores_;
  float* const shown_;  // [kTileKeys]
};

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_TILE_INL_H_
