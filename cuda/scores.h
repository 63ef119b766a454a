// Where queries, keys and values of a task come from, which keys a query sees,
// and what becomes of a product before the softmax.
#ifndef ROPE_CUDA_SCORES_H_
#define ROPE_CUDA_SCORES_H_

#include <cmath>

#include "result.h"
#include "rotation.h"
#include "schedule.h"

namespace rope::cuda {

// The indices among all keys of a task's queries.
template <typename T>
ROPE_DEVICE Range IndicesOf(const Call<T>& call, const Task& task) {
  const Range places = PlacesOf(task.first_row, task.rows, call.group());
  const int64_t past = call.past(task.batch);
  return {past + places.begin, past + places.end};
}

// Keys at a band's distances from one query.
template <typename T>
ROPE_DEVICE Range BandKeysOf(const Call<T>& call, const Task& task, int64_t index, int64_t band,
                             int64_t total) {
  return BandKeys(call.bands, static_cast<size_t>(call.band_count), static_cast<size_t>(band),
                  index, call.shifts[task.batch], total);
}

// Whether some key of a tile is at a band's distances from some query.
template <typename T>
ROPE_DEVICE bool BandTouches(const Call<T>& call, int64_t band, Range indices, int64_t shift,
                             int64_t total, Range tile) {
  const auto keys = [&](int64_t index) {
    return BandKeys(call.bands, static_cast<size_t>(call.band_count), static_cast<size_t>(band),
                    index, shift, total);
  };
  const Range any{keys(indices.begin).begin, keys(indices.end - 1).end};
  return !any.Intersect(tile).empty();
}

// Channel c of the query of a task's row, turned for a band.
template <typename T>
ROPE_DEVICE float QueryChannel(const Call<T>& call, const Task& task, int64_t row, int64_t band,
                               int64_t c) {
  const int64_t r = task.first_row + row;
  const int64_t place = r / call.group();
  const T* query = call.query.At(task.batch, task.kv_head * call.group() + r % call.group(), place);
  float turned = Turned(call, TableRow(call, call.table_of[band], task.batch, place), c,
                        [&](int64_t x) { return ToFloat(query[x]); });
  if (call.fast) turned = RoundedTo<T>(turned);
  if (call.temperatures != nullptr) {
    turned *= call.temperatures[task.batch * call.length + place];
  }
  return turned;
}

// Channel c of a key as the map has it: raw keys are turned now.
template <typename T>
ROPE_DEVICE float KeyChannel(const Call<T>& call, const Task& task, int64_t key, int32_t map,
                             int64_t c) {
  const int64_t place = key - call.past(task.batch);
  const bool fresh = place >= 0 && call.new_key.data != nullptr;
  const float* now = fresh ? call.new_key.At(task.batch, task.kv_head, place) : nullptr;
  const T* cached = fresh ? nullptr : call.cached_key.At(task.batch, task.kv_head, key);
  const auto channel = [&](int64_t x) { return fresh ? now[x] : ToFloat(cached[x]); };
  if (!call.raw_cache) return channel(c);
  const float turned = Turned(call, KeyTableRow(call, map, task.batch, key), c, channel);
  return call.fast ? RoundedTo<T>(turned) : turned;
}

// Whether keys can be read a chunk at a time: they are not turned on the way.
template <typename T>
ROPE_DEVICE bool KeysComeInChunks(const Call<T>& call) {
  return !call.raw_cache && call.head_size % kChunk == 0;
}

// The channels of a key from c on.
template <typename T>
ROPE_DEVICE void KeyChunk(const Call<T>& call, const Task& task, int64_t key, int64_t c,
                          float* out) {
  const int64_t place = key - call.past(task.batch);
  if (place >= 0 && call.new_key.data != nullptr) {
    return CopyChunk<float>(call.new_key.At(task.batch, task.kv_head, place) + c, out);
  }
  alignas(16) T cached[kChunk];
  CopyChunk<T>(call.cached_key.At(task.batch, task.kv_head, key) + c, cached);
  ROPE_UNROLL
  for (int i = 0; i < kChunk; ++i) out[i] = ToFloat(cached[i]);
}

// Whether queries and keys are numbers of type T, as they stand in the tile.
template <typename T>
ROPE_DEVICE bool QueriesAreRounded(const Call<T>& call) {
  return call.fast && call.temperatures == nullptr;
}
template <typename T>
ROPE_DEVICE bool KeysAreRounded(const Call<T>& call, const Task& task, Range tile) {
  if (call.fast) return true;
  if (call.raw_cache) return call.pairs == 0;
  return call.new_key.data == nullptr || tile.end <= call.past(task.batch);
}

template <typename T>
ROPE_DEVICE const T* ValueRow(const Call<T>& call, const Task& task, int64_t key) {
  const int64_t place = key - call.past(task.batch);
  return place >= 0 && call.new_value.data != nullptr
             ? call.new_value.At(task.batch, task.kv_head, place)
             : call.cached_value.At(task.batch, task.kv_head, key);
}

// Which keys of a tile a query sees: by index, padding and document.
template <typename T>
class TileMask {
 public:
  ROPE_DEVICE TileMask(const Call<T>& call, const Task& task, Range indices, Range tile)
      : call_(call),
        geometry_(call.causal, call.window, call.first_keys, call.total(task.batch)),
        shown_(call.shown == nullptr ? nullptr : call.shown + task.batch * call.shown_batch_stride),
        ids_(call.documents == nullptr ? nullptr
                                       : call.documents + task.batch * call.documents_batch_stride),
        all_(shown_ == nullptr && ids_ == nullptr && geometry_.Sees(indices.begin, tile) &&
             geometry_.Sees(indices.end - 1, tile)) {}

  ROPE_DEVICE bool Shows(const RowState& row, int64_t key) const {
    if (row.index < 0) return false;
    if (all_) return true;
    return geometry_.Sees(row.index, {key, key + 1}) && (shown_ == nullptr || shown_[key] != 0) &&
           (ids_ == nullptr || DocumentShows(call_.document_mask, ids_[row.index], ids_[key]));
  }

 private:
  const Call<T>& call_;
  const Geometry geometry_;
  const uint8_t* const shown_;
  const int64_t* const ids_;
  const bool all_;  // every query sees every key of the tile
};

// Makes a product a score. False: a bias hides the key.
template <typename T>
ROPE_DEVICE bool Modify(const Call<T>& call, const Task& task, const RowState& row, int64_t key,
                        float& score) {
  score *= call.scale;
  const auto add = [&](const Bias<T>& bias) {
    if (bias.data == nullptr) return true;
    const float b = ToFloat(*bias.At(task.batch, row.head, row.place, key));
    score += b;
    return b != kNegativeInfinity;
  };
  if (!add(call.bias_before_softcap)) return false;
  if (call.softcap > 0) score = call.softcap * std::tanh(score / call.softcap);
  return add(call.bias);
}

}  // namespace rope::cuda

#endif  // ROPE_CUDA_SCORES_H_
