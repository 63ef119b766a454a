// The attention kernel's interface: plain values in, plain values out. Nothing
// here knows ONNX Runtime, so that the kernel can be tested without it.
#ifndef ROPE_ATTENTION_H_
#define ROPE_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "band.h"
#include "distances.h"
#include "document_mask.h"
#include "hwy/base.h"  // the 16-bit types
#include "max_position.h"
#include "ring_rows.h"
#include "rows.h"
#include "temperature.h"

namespace rope {

using Float16 = hwy::float16_t;
using BFloat16 = hwy::bfloat16_t;

// What the node's attributes say; the same for every run.
struct AttentionParams {
  int64_t num_heads = 0;
  int64_t kv_num_heads = 0;
  float scale = 0;                 // on the content score; 0 means 1/sqrt(head_size)
  std::vector<float> frequencies;  // radians per position, one per channel pair
  float gain = 1;                  // on the rotated channels of query and key
  bool interleaved = false;        // pairs (2x, 2x + 1) instead of (x, x + rotary_dim / 2)
  int64_t rotary_offset = 0;       // first rotated channel of a head
  bool exact_angles = false;       // false rounds the angle to float32, as exporters do
  // The axis of each channel pair, where a token has several positions; empty: it has one, as
  // bands, temperature and raw caches need it.
  std::vector<int64_t> position_axes;
  // On the channels of a head behind the rotation, head_size of them; empty: all 1. Those of keys
  // are for a rotated cache: with a raw one they belong to the queries.
  std::vector<float> query_factors, key_factors;
  bool raw_cache = false;  // keys are stored as they come, and rotated when read
  bool ring = false;       // caches of fixed capacity are rings, see Ring
  // Products read rotated queries and keys rounded to T. With T float and many query rows, all that
  // is multiplied is rounded to bfloat16 where the CPU multiplies that.
  bool fast = false;
  bool causal = true;
  bool cross = false;             // keys are those of another text, as many as that has
  int64_t window = 0;             // 0 means none
  int64_t first_keys = 0;         // so many first keys stay visible outside the window:
  bool first_keys_shown = false;  // of each row's keys that the mask shows; false: of all keys
  float softcap = 0;              // on the score; 0 means none
  // Biases on the score by distance, see Distances; empty means none.
  std::vector<float> distance_slopes;
  std::vector<int64_t> distance_starts;
  std::vector<float> distance_biases;
  bool distance_shown = false;  // distances count only keys that the mask shows
  DocumentMask document_mask = DocumentMask::kIntra;
  bool document_restart = false;       // positions start anew in each document
  int64_t document_start = 0;          // the first position of documents, 0 in document 0
  std::vector<Band> bands = {Band{}};  // at least one, the first starting at 0
  Temperature temperature;

  int64_t rotary_dim() const { return 2 * static_cast<int64_t>(frequencies.size()); }
  int64_t group() const { return num_heads / kv_num_heads; }
  bool has_distances() const { return !distance_slopes.empty() || !distance_starts.empty(); }
  // Whether the positions of a row's real tokens must follow one another.
  bool positions_follow() const { return bands.size() > 1 || raw_cache || bands[0].chunk > 0; }
  Distances distances() const {
    return {distance_slopes.empty() ? nullptr : distance_slopes.data(), distance_starts.data(),
            distance_biases.data(), static_cast<int64_t>(distance_starts.size()), num_heads};
  }
};

// The tensors of one run but for its caches. Every shape has been checked.
template <typename T>
struct AttentionCall {
  int64_t batch = 0;
  int64_t length = 0;    // new tokens
  int64_t new_keys = 0;  // rows of key and value: length, but for cross
  int64_t max_past = 0;  // cached tokens: of every row, or of the longest if row_past is given
  const int32_t* row_past = nullptr;  // [batch]: cached tokens of each row
  int64_t head_size = 0;
  int64_t v_head_size = 0;

  Rows<const T> query, key, value;
  Rows<T> output;
  int64_t present_rows = 0;  // of each head, at least max_total
  int64_t total_length = 0;  // what the caller says of the longest row; 0: nothing
  Ring ring;                 // with one, max_past and row_past may be more than its capacity

  const int64_t* positions = nullptr;  // [axes, batch or 1, length]; null means past + place
  int64_t positions_batch_stride = 0;  // 0 when all rows share one
  int64_t position_axes = 1;           // more only with AttentionParams::position_axes
  int64_t positions_axis_stride = 0;
  const int64_t* mask = nullptr;  // [batch or 1, max_total or more]; null shows every key
  int64_t mask_batch_stride = 0;
  int64_t mask_width = 0;              // with a ring: columns, and keys behind them are shown
  const int64_t* documents = nullptr;  // [batch or 1, max_total or more]; null means no ids
  int64_t documents_batch_stride = 0;
  // Of the narrowest mask, bias or row of document ids, where the rows' lengths are not known.
  int64_t columns = INT64_MAX;

  // Added to the scores; -inf hides a key.
  Bias<T> bias;                  // after the softcap
  Bias<T> bias_before_softcap;   // before it
  const T* sinks = nullptr;      // [num_heads]: one more logit in the softmax's denominator
  float* log_sum_exp = nullptr;  // [batch, num_heads, length]; absent when nobody asked for it

  // Cached tokens of a row, which is also the index of its first new token.
  int64_t past(int64_t batch) const { return row_past == nullptr ? max_past : row_past[batch]; }
  // Keys of a row, cached and new.
  int64_t total(int64_t batch) const { return past(batch) + new_keys; }
  int64_t max_total() const { return max_past + new_keys; }
  // Whether the mask shows the key at an index.
  bool Shows(int64_t batch, int64_t index) const {
    if (mask == nullptr || (ring.rows > 0 && index >= mask_width)) return true;
    return mask[batch * mask_batch_stride + index] != 0;
  }
};

// The tensors of one run, with caches of type C.
template <typename T, typename C = T>
struct AttentionArgs : AttentionCall<T> {
  Rows<const C> past_key, past_value;  // absent when max_past is 0
  // Absent when nobody asked for them. One that has past's memory and strides is
  // appended to in place; otherwise the cached tokens are copied and the rows
  // after the last token become zero.
  Rows<C> present_key, present_value;
  // A number of a cache of int8 is its integer times the scale of its row, which is the one
  // number of a row here. Absent for other types.
  Rows<const float> past_key_scale, past_value_scale;
  Rows<float> present_key_scale, present_value_scale;
};

// What the kernel asks of its host. Callbacks given to ParallelFor never throw.
class Host {
 public:
  virtual ~Host() = default;
  // Calls fn(data, i) for each i < count, on any thread, and returns when all are done.
  virtual void ParallelFor(size_t count, void (*fn)(void*, size_t), void* data) = 0;
  // Memory for this run, or null. Called from any thread.
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Free(void* memory) = 0;
};

// Computes one run. False means that the host gave no memory; the outputs are
// then undefined. The result does not depend on the host's number of threads.
bool RunAttention(const AttentionParams& params, const AttentionArgs<float>& args, Host& host);
bool RunAttention(const AttentionParams& params, const AttentionArgs<Float16>& args, Host& host);
bool RunAttention(const AttentionParams& params, const AttentionArgs<BFloat16>& args, Host& host);
// With caches of another type than the other tensors'.
bool RunAttention(const AttentionParams& params, const AttentionArgs<float, Float16>& args,
                  Host& host);
bool RunAttention(const AttentionParams& params, const AttentionArgs<float, BFloat16>& args,
                  Host& host);
bool RunAttention(const AttentionParams& params, const AttentionArgs<float, int8_t>& args,
                  Host& host);
bool RunAttention(const AttentionParams& params, const AttentionArgs<Float16, int8_t>& args,
                  Host& host);
bool RunAttention(const AttentionParams& params, const AttentionArgs<BFloat16, int8_t>& args,
                  Host& host);

}  // namespace rope

#endif  // ROPE_ATTENTION_H_
