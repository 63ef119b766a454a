// past + new -> present, and where the attention then finds keys and values.
#if defined(ROPE_CACHE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_CACHE_INL_H_
#undef ROPE_CACHE_INL_H_
#else
#define ROPE_CACHE_INL_H_
#endif

#include <cstring>
#include <type_traits>

#include "angles-inl.h"
#include "attention.h"
#include "divide.h"
#include "element-inl.h"
#include "rotation-inl.h"
#include "visible.h"
#include "workspace.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

// Where the keys or values of a run stand: the cached ones in one tensor, those of this call in
// the same one, in another tensor, or in memory of the run.
template <typename C, typename New>
struct CachedRows {
  Rows<const C> cached;      // by index
  Rows<const float> scales;  // of those, in a cache of int8
  Rows<const C> appended;    // by index, if present
  Rows<const New> new_rows;  // by place in the call, if there is no `appended`
  bool whole = false;        // `cached` holds those of this call too

  // The end of the rows that stand in `cached`.
  template <typename T>
  int64_t Split(const AttentionCall<T>& args, int64_t batch) const {
    return whole ? args.total(batch) : args.past(batch);
  }

  // Calls take(first row, stride, scales) for the rows from `row` on to the split, the ring's split
  // or the end.
  template <typename T, typename Take>
  void At(const AttentionCall<T>& args, int64_t batch, int64_t head, int64_t row,
          const Take& take) const {
    if (row < Split(args, batch)) {
      const int64_t at = args.ring.Row(batch, row);
      const float* of_rows = scales.data == nullptr ? nullptr : scales.At(batch, head, at);
      take(cached.At(batch, head, at), static_cast<size_t>(cached.row_stride), of_rows);
    } else if (appended.data != nullptr) {
      take(appended.At(batch, head, row), static_cast<size_t>(appended.row_stride), nullptr);
    } else {
      take(new_rows.At(batch, head, row - args.past(batch)),
           static_cast<size_t>(new_rows.row_stride), nullptr);
    }
  }
};

template <typename T>
Rows<const T> Const(const Rows<T>& rows) {
  return {rows.data, rows.batch_stride, rows.head_stride, rows.row_stride};
}

// Whether present's rows stand where past's do, so that nothing needs to move.
template <typename T>
bool InPlace(const Rows<const T>& past, const Rows<T>& present) {
  return past.data == present.data && past.batch_stride == present.batch_stride &&
         past.head_stride == present.head_stride;
}

// Copies the cached rows of one tensor to its present form.
template <typename T, typename C>
void CopyPast(const AttentionCall<T>& args, int64_t heads, int64_t channels,
              const Rows<const C>& past, const Rows<C>& present, Host& host) {
  if (args.max_past == 0 || present.data == nullptr || InPlace(past, present)) return;
  const auto bytes = [&](int64_t rows) { return static_cast<size_t>(rows * channels) * sizeof(C); };
  if (past.data == present.data) {
    // One buffer, but present has more rows: later heads move up, the last ones first.
    for (int64_t i = args.batch * heads - 1; i > 0; --i) {
      memmove(present.At(i / heads, i % heads, 0), past.At(i / heads, i % heads, 0),
              bytes(args.past(i / heads)));
    }
    return;
  }
  constexpr int64_t kNumbersPerTask = 1 << 16;
  const int64_t rows_per_task = std::max<int64_t>(1, kNumbersPerTask / channels);
  const int64_t tasks_per_head = DivideUp(args.max_past, rows_per_task);
  ForEach(host, static_cast<size_t>(args.batch * heads * tasks_per_head), [&](size_t task) {
    const int64_t head = static_cast<int64_t>(task) / tasks_per_head;
    const int64_t begin = static_cast<int64_t>(task) % tasks_per_head * rows_per_task;
    const int64_t rows = std::min(rows_per_task, args.past(head / heads) - begin);
    if (rows <= 0) return;
    memcpy(present.At(head / heads, head % heads, begin),
           past.At(head / heads, head % heads, begin), bytes(rows));
  });
}

// Zeroes present's rows after each batch row's last token, unless they are past's.
template <typename T, typename C>
void ClearUnused(const AttentionCall<T>& args, int64_t heads, int64_t channels,
                 const Rows<const C>& past, const Rows<C>& present, Host& host) {
  if (present.data == nullptr || InPlace(past, present)) return;
  if (args.row_past == nullptr && args.present_rows == args.max_total()) return;
  ForEach(host, static_cast<size_t>(args.batch * heads), [&](size_t i) {
    const int64_t batch = static_cast<int64_t>(i) / heads;
    const int64_t total = std::min(args.total(batch), args.present_rows);  // a ring may be full
    memset(static_cast<void*>(present.At(batch, static_cast<int64_t>(i) % heads, total)), 0,
           static_cast<size_t>((args.present_rows - total) * channels) * sizeof(C));
  });
}

// Calls body(channels, past, present) for each tensor of the caches.
template <typename T, typename C, typename Body>
void ForEachCache(const AttentionArgs<T, C>& args, const Body& body) {
  body(args.head_size, args.past_key, args.present_key);
  body(args.v_head_size, args.past_value, args.present_value);
  if constexpr (kIsInt8<C>) {
    body(1, args.past_key_scale, args.present_key_scale);
    body(1, args.past_value_scale, args.present_value_scale);
  }
}

// Stores a row of the caches, if they are wanted.
template <typename From, typename C>
void StoreCached(const From* from, int64_t size, const Rows<C>& present, const Rows<float>& scales,
                 int64_t batch, int64_t head, int64_t row) {
  if (present.data == nullptr) return;
  StoreRow(from, static_cast<size_t>(size), present.At(batch, head, row),
           scales.data == nullptr ? nullptr : scales.At(batch, head, row));
}

// Calls body(batch, head, row) for the new tokens of every key-value head.
template <typename T, typename Body>
void ForEachNewRow(const AttentionParams& params, const AttentionCall<T>& args, Host& host,
                   const Body& body) {
  constexpr int64_t kFloatsPerTask = 1 << 14;
  const int64_t heads = params.kv_num_heads;
  const int64_t per_token = heads * std::max(args.head_size, args.v_head_size);
  const int64_t tokens = args.batch * args.new_keys;
  const int64_t tokens_per_task = std::max<int64_t>(1, kFloatsPerTask / per_token);
  ForEach(host, static_cast<size_t>(DivideUp(tokens, tokens_per_task)), [&](size_t task) {
    const int64_t begin = static_cast<int64_t>(task) * tokens_per_task;
    const int64_t end = std::min(tokens, begin + tokens_per_task);
    for (int64_t t = begin; t < end; ++t) {
      for (int64_t head = 0; head < heads; ++head) body(t / args.new_keys, head, t % args.new_keys);
    }
  });
}

// Puts the new keys, rotated unless the cache is raw, and the new values behind the past ones, as
// far as present_key and present_value are wanted. These keys are also left in `rotated` by their
// place in the call, if that is present, as it is where factors multiply keys of 16 bits. A ring
// needs `rotated`, and StoreInRing afterwards.
template <typename T, typename C>
void AppendNew(const AttentionParams& params, const AttentionArgs<T, C>& args,
               const AngleTables& tables, const Rows<float>& rotated, Host& host) {
  const size_t head_size = static_cast<size_t>(args.head_size);
  const bool stores = args.ring.rows == 0;
  ForEachNewRow(params, args, host, [&](int64_t batch, int64_t head, int64_t place) {
    const int64_t index = args.past(batch) + place;
    const T* key = args.key.At(batch, head, place);
    const float* table = tables.KeyRow(batch, place);
    const auto store_key = [&](const auto* row) {
      if (!stores) return;
      StoreCached(row, args.head_size, args.present_key, args.present_key_scale, batch, head,
                  index);
    };
    if (params.raw_cache) {
      if (rotated.data != nullptr) Convert(key, head_size, rotated.At(batch, head, place));
      store_key(key);
    } else if (rotated.data != nullptr) {
      float* row = rotated.At(batch, head, place);
      RotateHead(params, key, table, head_size, row);
      MultiplyChannels(params.key_factors, row);
      if (params.fast) RoundTo<T>(row, head_size);
      store_key(row);
    } else if constexpr (std::is_same_v<T, C>) {
      T* row = args.present_key.At(batch, head, index);
      RotateHead(params, key, table, head_size, row);
      if constexpr (kIsFloat<T>) MultiplyChannels(params.key_factors, row);
    }
    if (!stores) return;
    StoreCached(args.value.At(batch, head, place), args.v_head_size, args.present_value,
                args.present_value_scale, batch, head, index);
  });
}

// Gives the rows of the oldest tokens to those of this call, once the run has read them all.
template <typename T, typename C>
void StoreInRing(const AttentionParams& params, const AttentionArgs<T, C>& args,
                 const Rows<const float>& rotated, Host& host) {
  ForEachNewRow(params, args, host, [&](int64_t batch, int64_t head, int64_t place) {
    const int64_t index = args.past(batch) + place;
    if (!args.ring.Keeps(index, place, args.new_keys)) return;
    const int64_t row = args.ring.Row(batch, index);
    StoreCached(rotated.At(batch, head, place), args.head_size, args.present_key,
                args.present_key_scale, batch, head, row);
    StoreCached(args.value.At(batch, head, place), args.v_head_size, args.present_value,
                args.present_value_scale, batch, head, row);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_CACHE_INL_H_
