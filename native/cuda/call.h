// One run as the kernels read it: a plain value that is copied to the device.
#ifndef ROPE_CUDA_CALL_H_
#define ROPE_CUDA_CALL_H_

#include <cstdint>

#include "band.h"
#include "distances.h"
#include "document_mask.h"
#include "ring_rows.h"
#include "rows.h"
#include "visible.h"

namespace rope::cuda {

// How a block of the attention kernel is cut.
struct TileShape {
  int rows = 0;      // query rows of the block
  int keys = 0;      // of a tile
  int channels = 0;  // of a head, at most
  int threads = 0;
  bool tensor = false;      // products on tensor cores
  bool residuals = false;   // also of the residuals, which 16 bits do not hold
  bool warpgroups = false;  // by warpgroups of sm_90a
  bool ahead = false;       // keys of the next tile are copied while one is multiplied

  constexpr bool operator==(const TileShape& o) const {
    return rows == o.rows && keys == o.keys && channels == o.channels && threads == o.threads &&
           tensor == o.tensor && residuals == o.residuals && warpgroups == o.warpgroups &&
           ahead == o.ahead;
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

// What the numbers of the caches are: the call's type T, or another one.
enum class CacheKind : int32_t {
  kSame,
  kHalf,    // beside float32
  kBFloat,  // beside float32
  kInt8,    // times the scale of their row
};

// Keys or values of a cache: rows of numbers of its kind and, of int8, the scale of each row.
struct CachedTensor {
  Rows<const void> numbers;
  Rows<const float> scales;
};
struct PresentTensor {
  Rows<void> numbers;  // may be absent
  Rows<float> scales;
  bool moves = false, moves_scales = false;  // is not past's own memory
};

struct Caches {
  CacheKind kind = CacheKind::kSame;
  CachedTensor past_key, past_value;
  PresentTensor present_key, present_value;

  // Whether cached rows move from past to present.
  constexpr bool move() const {
    return present_key.moves || present_key.moves_scales || present_value.moves ||
           present_value.moves_scales;
  }
};

// How queries and keys are rotated.
struct Rotation {
  int64_t pairs = 0;   // of channels; 0: nothing is rotated
  int64_t offset = 0;  // the first rotated channel of a head
  bool interleaved = false, exact_angles = false;
  float gain = 1;
  const float* frequencies = nullptr;  // [pairs]
  const int64_t* axes = nullptr;       // [pairs]: which position turns it; null: a token has one
  // [head_size, filled up to whole chunks]: on the channels behind the rotation; null: all 1.
  const float* query_factors = nullptr;
  const float* key_factors = nullptr;
};

// Tables of angles. A row is `pairs` cosines, then as many sines, times the gain.
struct AngleTables {
  const Band* bands = nullptr;       // [count]: where each table has a token
  const int32_t* of_band = nullptr;  // [band_count]: which table a band uses
  int64_t count = 1;
  int64_t rows = 0;          // of each table
  int64_t batch_stride = 0;  // in rows; 0: one for the whole batch
  float* values = nullptr;   // [count, rows, 2 * pairs]

  constexpr int64_t all_rows() const { return count * rows; }
};

// Two tables of angles of keys that add up (key_angles.h): of positions that are kKeyStep apart,
// and of those between them. A row is `pairs` cosines, then as many sines.
inline constexpr int64_t kKeyStep = 64;
struct KeyTables {
  const Band* bands = nullptr;       // [count]: where each map has a token
  const int32_t* of_band = nullptr;  // [band_count]: which map a band uses
  int64_t count = 1;
  int64_t rows = 0;        // of the first table, for each map and row of the batch
  int64_t batch_rows = 1;  // rows of the batch that have their own; 1: all share
  float* values =
      nullptr;  // [count, batch_rows, rows, 2 * pairs], then [count, kKeyStep, 2 * pairs]

  constexpr int64_t first_rows() const { return count * batch_rows * rows; }
  constexpr int64_t all_rows() const { return rows == 0 ? 0 : first_rows() + count * kKeyStep; }
};

// Which keys a query sees.
struct Mask {
  bool causal = true;
  int64_t window = 0, first_keys = 0;
  const int64_t* first_keys_ends = nullptr;  // [batch]; null: first_keys each
  const uint8_t* shown = nullptr;            // by key; 0 hides; absent: all are shown
  int64_t shown_batch_stride = 0;
  const int64_t* documents = nullptr;  // by key; absent: no documents
  int64_t documents_batch_stride = 0;
  DocumentMask document_mask = DocumentMask::kIntra;

  constexpr int64_t first_keys_end(int64_t b) const {
    return first_keys_ends == nullptr ? first_keys : first_keys_ends[b];
  }
};

// How a score follows from a product.
enum class ScoreKind : int32_t {
  kScaled,  // times a positive scale
  kSloped,  // the same, and a slope times the distance by index
  kAny,
};

// What makes a score of a product, and what joins the softmax.
template <typename T>
struct ScoreModifiers {
  float scale = 1, softcap = 0;
  Bias<T> bias, bias_before_softcap;
  const float* sinks = nullptr;         // [num_heads]
  const float* temperatures = nullptr;  // [batch, length]: on the query; absent: 1
  Distances distances;                  // biases by distance
  ScoreKind kind = ScoreKind::kAny;
  // By index: the shown keys before, which distances count; absent: they count all keys.
  const int32_t* shown_before = nullptr;
  int64_t shown_before_stride = 0;  // of a batch row
};

// The spans [first, end).
struct SpanList {
  int32_t first = 0, end = 0;
};

// For each block of `shape.rows` query rows of a batch row the spans of keys to visit, band by
// band: those of lists[batch * batch_stride + block].
struct Schedule {
  TileShape shape;
  int64_t blocks = 0;        // of each batch row and key-value head
  int64_t batch_stride = 0;  // `blocks`, or 0: all batch rows visit the same keys
  int64_t splits = 1;        // of a block's tiles, which are computed apart and merged
  const Span* spans = nullptr;
  const SpanList* lists = nullptr;  // [batch or 1, blocks]
  float* partials = nullptr;        // [units, splits, partial_rows, partial_width]
  int64_t partial_rows = 0;
};

template <typename T>
struct Call {
  int64_t batch = 0, length = 0, max_past = 0;
  int64_t new_keys = 0;  // see AttentionArgs
  int64_t head_size = 0, v_head_size = 0;
  int64_t num_heads = 0, kv_num_heads = 0;
  const int32_t* row_past = nullptr;   // [batch]; null: max_past each
  const int64_t* positions = nullptr;  // [axes, query_angles.rows]
  const int64_t* shifts = nullptr;     // [batch]: position - index
  const Band* bands = nullptr;         // [band_count]
  int64_t band_count = 1;
  // [batch]: rows whose numbers cannot be (plan_kernel.h), of which the output is NaN and nothing
  // is cached; null: none.
  const uint8_t* refused = nullptr;

  Rows<const T> query, key, value;
  Rows<T> output;
  Caches caches;
  int64_t present_rows = 0;
  Ring ring;                     // of the caches, if they are one
  float* log_sum_exp = nullptr;  // [batch, num_heads, length]; may be absent

  // Where the attention finds keys and values: cached ones by index, in a ring in the index's row,
  // those of this call by place, or, where that is absent, among the cached ones.
  CachedTensor cached_key, cached_value;
  Rows<T> new_key;
  Rows<T> new_key_residual;  // what rounding took from the keys of this call; absent: nothing
  Rows<T> rotated_key, rotated_key_residual;  // of a raw cache, for raw_keys_kernel.h; or absent
  Rows<const T> new_value;
  bool raw_cache = false;  // keys are stored as they come
  bool all_new = false;    // new_key and new_key_residual have every key of a row, by index
  // Whether rows that have the tensors' type are copied to shared memory as they stand.
  bool copies_keys = false, copies_values = false;
  bool fast = false;      // products read rotated numbers rounded to T
  bool residuals = true;  // products read what 16 bits do not hold of queries and weights

  Rotation rotation;
  AngleTables query_angles;  // table 0 also rotates the keys of this call
  KeyTables key_angles;      // with rows for raw caches only
  Mask mask;
  ScoreModifiers<T> score;
  Schedule schedule;

  constexpr int64_t group() const { return num_heads / kv_num_heads; }
  constexpr int64_t past(int64_t b) const { return row_past == nullptr ? max_past : row_past[b]; }
  constexpr int64_t total(int64_t b) const { return past(b) + new_keys; }
  // The index of the first key that stands in new_key.
  constexpr int64_t first_new_key(int64_t b) const { return all_new ? 0 : past(b); }
  constexpr bool refuses(int64_t b) const { return refused != nullptr && refused[b] != 0; }
  constexpr int64_t units() const { return batch * kv_num_heads * schedule.blocks; }
  // Floats of a row that is computed in splits: its sums, its maximum and its total.
  constexpr int64_t partial_width() const { return v_head_size + 2; }
  // Rows of the cache kernel: all of present's, or only those of this call.
  constexpr int64_t cache_rows() const { return caches.move() ? present_rows : new_keys; }
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_CALL_H_
