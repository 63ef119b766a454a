// Where queries, keys and values of a task come from, which keys a query sees,
// and what becomes of a product before the softmax.
#ifndef ROPE_CUDA_SCORES_H_
#define ROPE_CUDA_SCORES_H_

#include <algorithm>
#include <cmath>

#include "result.h"
#include "rotation.h"
#include "schedule.h"

namespace rope::cuda {

// Keys at a band's distances from one query.
template <typename T>
ROPE_DEVICE Range BandKeysOf(const Call<T>& call, const Task& task, int64_t index, int64_t band,
                             int64_t total) {
  return BandKeys(call.bands, static_cast<size_t>(call.band_count), static_cast<size_t>(band),
                  index, call.shifts[task.batch], total);
}

// What becomes of a chunk of the query at a place in the call once it is rotated.
template <typename T>
ROPE_DEVICE void FinishQuery(const Call<T>& call, const Task& task, int64_t place, int64_t c,
                             float* out) {
  MultiplyChunk(call.rotation.query_factors, c, out);
  const float temperature = call.score.temperatures == nullptr
                                ? 1.0f
                                : call.score.temperatures[task.batch * call.length + place];
  ROPE_UNROLL
  for (int i = 0; i < kChunk; ++i) {
    out[i] = (call.fast ? RoundedTo<T>(out[i]) : out[i]) * temperature;
  }
}

// The channels [c, c + kChunk) of the query of a task's row, rotated for a band;
// zeros behind the last row and channel.
template <typename T>
ROPE_DEVICE void QueryChunk(const Call<T>& call, const Task& task, int row, int64_t band, int64_t c,
                            float* out) {
  ROPE_UNROLL
  for (int i = 0; i < kChunk; ++i) out[i] = 0.0f;
  if (row >= task.rows || c >= call.head_size) return;
  const int64_t place = task.PlaceOf(call, row);
  const StoredRow<T> query{call.query.At(task.batch, task.HeadOf(call, row), place),
                           call.head_size};
  const TableAngles angles = QueryAngles(call, call.query_angles.of_band[band], task.batch, place);
  RotatedChunk(call, angles, c, query, out);
  FinishQuery(call, task, place, c, out);
}

// The channels [c, c + kChunk) of both halves of a head, of a query as above, where they are
// rotated with one another and all rows are aligned to chunks.
template <typename T>
ROPE_DEVICE void QueryHalves(const Call<T>& call, const Task& task, int row, int32_t table,
                             int64_t c, float* first, float* second) {
  const int there = std::min(row, task.rows - 1);  // another row, instead of a branch
  const int64_t place = task.PlaceOf(call, there);
  const T* query = call.query.At(task.batch, task.HeadOf(call, there), place);
  RotatedHalves<T>(call, QueryAngles(call, table, task.batch, place).row, c, query, first, second);
  FinishQuery(call, task, place, c, first);
  FinishQuery(call, task, place, c + call.rotation.pairs, second);
  if (row < task.rows) return;
  ROPE_UNROLL
  for (int i = 0; i < kChunk; ++i) first[i] = second[i] = 0.0f;
}

// The row where a key, or its value, stands: among the cached ones, or, if those of
// this call stand apart, among these.
template <typename T, typename New>
ROPE_DEVICE StoredRow<T> RowOf(const Call<T>& call, const Task& task, const CachedTensor& cached,
                               const Rows<New>& new_rows, int64_t first_new, int64_t key,
                               int64_t size) {
  const int64_t place = key - first_new;
  if (place >= 0 && new_rows.data != nullptr) {
    return {new_rows.At(task.batch, task.kv_head, place), size};
  }
  return CachedRow(call, cached, task.batch, task.kv_head, key, size);
}
template <typename T>
ROPE_DEVICE StoredRow<T> ValueRow(const Call<T>& call, const Task& task, int64_t key) {
  return RowOf(call, task, call.cached_value, call.new_value, call.past(task.batch), key,
               call.v_head_size);
}

// The channels [c, c + kChunk) of a key as the map has it: raw keys are rotated now. A kernel that
// meets none, since they were rotated before, says kRaw = false.
template <bool kRaw, typename T>
ROPE_DEVICE void KeyChunk(const Call<T>& call, const Task& task, int64_t key, int32_t map,
                          int64_t c, float* out) {
  const int64_t first_new = call.first_new_key(task.batch);
  const StoredRow<T> row =
      RowOf(call, task, call.cached_key, call.new_key, first_new, key, call.head_size);
  if (kRaw && call.raw_cache) {
    RotatedChunk(call, KeyAngles(call, map, task.batch, key), c, row, out);
    ROPE_UNROLL
    for (int i = 0; i < kChunk; ++i) out[i] = call.fast ? RoundedTo<T>(out[i]) : out[i];
    return;
  }
  row.Load(c, out);
  const int64_t place = key - first_new;
  if (place < 0 || call.new_key_residual.data == nullptr) return;
  float residuals[kChunk];
  LoadFloats<T>(call.new_key_residual.At(task.batch, task.kv_head, place), c, call.head_size,
                residuals);
  ROPE_UNROLL
  for (int i = 0; i < kChunk; ++i) out[i] += residuals[i];
}

// Columns of a tile: two ranges of them, one of first keys.
struct Columns {
  int first_begin = 0, first_end = 0;
  int begin = 0, end = 0;

  ROPE_DEVICE bool Has(int column) const {
    return (begin <= column && column < end) || (first_begin <= column && column < first_end);
  }
};

// Which keys of a tile a query sees: by index, padding and document.
template <typename T>
class TileMask {
 public:
  ROPE_DEVICE TileMask(const Call<T>& call, const Task& task, const Span& tile)
      : call_(call), task_(task), tile_(tile) {
    if (tile.sight != Sight::kMasked) return;
    const Mask& mask = call.mask;
    if (mask.shown != nullptr) shown_ = mask.shown + task.batch * mask.shown_batch_stride;
    if (mask.documents != nullptr) {
      documents_ = mask.documents + task.batch * mask.documents_batch_stride;
    }
  }

  // What the query at an index sees by index, the same for all keys of a band.
  ROPE_DEVICE Columns ColumnsOf(int64_t index) const {
    if (index < 0) return {};
    const int64_t total = call_.total(task_.batch);
    const int64_t first_keys = call_.mask.first_keys_end(task_.batch);
    const Geometry geometry(call_.mask.causal, call_.mask.window, first_keys, total);
    const Range keys = tile_.keys.Intersect(BandKeysOf(call_, task_, index, tile_.band, total));
    const Range first = geometry.Keys(index, keys.Intersect(geometry.FirstSection()));
    const Range others = geometry.Keys(index, keys.Intersect(geometry.SecondSection()));
    const auto column = [&](int64_t key) { return static_cast<int>(key - tile_.keys.begin); };
    return {column(first.begin), column(first.end), column(others.begin), column(others.end)};
  }

  // Whether the query at an index sees a column that it sees by index.
  ROPE_DEVICE bool Shows(int64_t index, int column) const {
    const int64_t key = tile_.keys.begin + column;
    return (shown_ == nullptr || shown_[key] != 0) &&
           (documents_ == nullptr ||
            DocumentShows(call_.mask.document_mask, documents_[index], documents_[key]));
  }

 private:
  const Call<T>& call_;
  const Task& task_;
  const Span& tile_;
  const uint8_t* shown_ = nullptr;
  const int64_t* documents_ = nullptr;
};

// What a row adds to the score of a key by its distance.
template <typename T>
ROPE_DEVICE float BiasByDistance(const Call<T>& call, const Task& task, const RowState& row,
                                 int64_t key) {
  int64_t distance = row.index - key;
  if (call.score.shown_before != nullptr) {
    const int32_t* before = call.score.shown_before + task.batch * call.score.shown_before_stride;
    distance = int64_t{before[row.index]} - before[key];
  }
  return call.score.distances.At(row.head, distance);
}

// Makes a product a score. False: a bias hides the key.
template <typename T>
ROPE_DEVICE bool Modify(const Call<T>& call, const Task& task, const RowState& row, int64_t key,
                        float& score) {
  score *= call.score.scale;
  const auto add = [&](const Bias<T>& bias) {
    if (bias.data == nullptr) return true;
    const float b = ToFloat(*bias.At(task.batch, row.head, row.place, key));
    score += b;
    return b != kNegativeInfinity;
  };
  if (!add(call.score.bias_before_softcap)) return false;
  if (call.score.softcap > 0) score = call.score.softcap * std::tanh(score / call.score.softcap);
  if (call.score.distances.any()) score += BiasByDistance(call, task, row, key);
  return add(call.score.bias);
}

}  // namespace rope::cuda

#endif  // ROPE_CUDA_SCORES_H_
