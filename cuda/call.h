// One run as the kernels read it: a plain value that is copied to the device.
#ifndef ROPE_CUDA_CALL_H_
#define ROPE_CUDA_CALL_H_

#include <cstdint>

#include "band.h"
#include "document_mask.h"
#include "rows.h"
#include "visible.h"

namespace rope::cuda {

// How a block of the attention kernel is cut.
struct TileShape {
  int rows = 0;      // query rows of the block
  int keys = 0;      // of a tile
  int channels = 0;  // of a head, at most
  int threads = 0;
  bool tensor = false;  // products on tensor cores
  bool rests = false;   // also of what 16 bits do not hold

  constexpr bool operator==(const TileShape& o) const {
    return rows == o.rows && keys == o.keys && channels == o.channels && threads == o.threads &&
           tensor == o.tensor && rests == o.rests;
  }
};

// Which of the keys that a block visits its queries see.
enum class Sight : int32_t {
  kAll,      // every query sees every one of them, and they are whole tiles
  kByIndex,  // causality, windows and bands hide some
  kMasked,   // padding or documents hide some as well
};

// Keys that a block visits in a band.
struct Span {
  Range keys;
  int32_t band = 0;
  Sight sight = Sight::kAll;
};

template <typename T>
struct Call {
  int64_t batch = 0, length = 0, max_past = 0;
  int64_t head_size = 0, v_head_size = 0;
  int64_t num_heads = 0, kv_num_heads = 0;
  const int32_t* row_past = nullptr;  // [batch]; null: max_past each

  Rows<const T> query, key, value, past_key, past_value;
  Rows<T> output, present_key, present_value;  // presents may be absent
  int64_t present_rows = 0;
  bool move_keys = false, move_values = false;  // present is not past's own memory

  // Where the attention finds keys and values: cached ones by index, those of this
  // call by place, or, where that is absent, among the cached ones.
  Rows<const T> cached_key, cached_value;
  Rows<T> new_key;
  Rows<T> new_key_rest;  // what rounding took from the keys of this call; absent: nothing
  Rows<const T> new_value;

  // Rotation. A table row is `pairs` cosines, then as many sines, times the gain.
  int64_t pairs = 0, rotary_offset = 0;
  bool interleaved = false, exact_angles = false, raw_cache = false, fast = false;
  bool rests = true;  // products read what 16 bits do not hold of queries and weights
  float gain = 1;
  const float* frequencies = nullptr;  // [pairs]
  const Band* bands = nullptr;         // [band_count]
  int64_t band_count = 1;
  const Band* table_bands = nullptr;  // [table_count]: where each table has the query
  const int32_t* table_of = nullptr;  // [band_count]; table 0 also turns keys
  int64_t table_count = 1, table_rows = 0, table_batch_stride = 0;
  float* tables = nullptr;          // [table_count, table_rows, 2 * pairs]
  const Band* map_bands = nullptr;  // [map_count]: where each map has a raw key
  const int32_t* map_of = nullptr;  // [band_count]
  int64_t map_count = 1, map_rows = 0, map_batch_stride = 0;
  float* key_tables = nullptr;          // [map_count, map_rows, 2 * pairs], raw caches only
  const int64_t* positions = nullptr;   // [table_rows]
  const int64_t* shifts = nullptr;      // [batch]: position - index
  const float* temperatures = nullptr;  // [batch, length]; absent: 1

  // Mask and scores.
  bool causal = true;
  int64_t window = 0, first_keys = 0;
  const int64_t* first_keys_ends = nullptr;  // [batch]; null: first_keys each
  const uint8_t* shown = nullptr;            // by key; 0 hides; absent: all are shown
  int64_t shown_batch_stride = 0;
  const int64_t* documents = nullptr;  // by key; absent: no documents
  int64_t documents_batch_stride = 0;
  DocumentMask document_mask = DocumentMask::kIntra;
  Bias<T> bias, bias_before_softcap;
  const float* sinks = nullptr;  // [num_heads]
  float scale = 1, softcap = 0;
  float* log_sum_exp = nullptr;  // [batch, num_heads, length]

  // Schedule: for each block of `shape.rows` query rows of a batch row the spans of
  // keys to visit, spans[first_span[batch * blocks + block]] and on, band by band.
  TileShape shape;
  int64_t blocks = 0, splits = 1;
  const Span* spans = nullptr;
  const int32_t* first_span = nullptr;  // [batch * blocks + 1]
  float* partials = nullptr;            // [units, splits, partial_rows, v_head_size + 2]
  int64_t partial_rows = 0;

  constexpr int64_t group() const { return num_heads / kv_num_heads; }
  constexpr int64_t past(int64_t b) const { return row_past == nullptr ? max_past : row_past[b]; }
  constexpr int64_t total(int64_t b) const { return past(b) + length; }
  constexpr int64_t first_keys_end(int64_t b) const {
    return first_keys_ends == nullptr ? first_keys : first_keys_ends[b];
  }
  constexpr int64_t units() const { return batch * kv_num_heads * blocks; }
  // Rows of the cache kernel: all of present's, or only those of this call.
  constexpr bool moves() const { return move_keys || move_values; }
  constexpr int64_t cache_rows() const { return moves() ? present_rows : length; }
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_CALL_H_
