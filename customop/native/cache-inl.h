// past + new -> present, and where the attention then finds keys and values.
#if defined(ROPE_CACHE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_CACHE_INL_H_
#undef ROPE_CACHE_INL_H_
#else
#define ROPE_CACHE_INL_H_
#endif

#include <cstring>

#include "angles.h"
#include "attention.h"
#include "rotation-inl.h"
#include "visible.h"
#include "workspace.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

// Rows 0 … count − 1 of keys or values: the first `split` from one tensor, the
// others from another.
struct CachedRows {
  Rows<const float> front;
  Rows<const float> back;
  int64_t split = 0;

  const float* At(int64_t batch, int64_t head, int64_t row) const {
    return row < split ? front.At(batch, head, row) : back.At(batch, head, row - split);
  }
  int64_t Stride(int64_t row) const { return row < split ? front.row_stride : back.row_stride; }
};

inline Rows<const float> Const(const Rows<float>& rows) {
  return {rows.data, rows.batch_stride, rows.head_stride, rows.row_stride};
}

// Copies the past rows of one tensor to its present form.
inline void CopyPast(const AttentionArgs<float>& args, int64_t heads, int64_t channels,
                     const Rows<const float>& past, const Rows<float>& present, Host& host) {
  if (args.past == 0 || present.data == nullptr) return;
  if (past.data == present.data) {
    // One buffer for both: rows of later heads move up, the last ones first.
    for (int64_t i = args.batch * heads - 1; i > 0; --i) {
      memmove(present.At(i / heads, i % heads, 0), past.At(i / heads, i % heads, 0),
              static_cast<size_t>(args.past * channels) * sizeof(float));
    }
    return;
  }
  constexpr int64_t kFloatsPerTask = 1 << 16;
  const int64_t rows_per_task = std::max<int64_t>(1, kFloatsPerTask / channels);
  const int64_t tasks_per_head = DivideUp(args.past, rows_per_task);
  ForEach(host, static_cast<size_t>(args.batch * heads * tasks_per_head), [&](size_t task) {
    const int64_t head = static_cast<int64_t>(task) / tasks_per_head;
    const int64_t begin = static_cast<int64_t>(task) % tasks_per_head * rows_per_task;
    const int64_t rows = std::min(rows_per_task, args.past - begin);
    memcpy(present.At(head / heads, head % heads, begin),
           past.At(head / heads, head % heads, begin),
           static_cast<size_t>(rows * channels) * sizeof(float));
  });
}

// Calls body(batch, head, row) for the new tokens of every key-value head.
template <typename Body>
void ForEachNewRow(const AttentionParams& params, const AttentionArgs<float>& args, Host& host,
                   const Body& body) {
  constexpr int64_t kFloatsPerTask = 1 << 14;
  const int64_t heads = params.kv_num_heads;
  const int64_t per_token = heads * std::max(args.head_size, args.v_head_size);
  const int64_t tokens = args.batch * args.length;
  const int64_t tokens_per_task = std::max<int64_t>(1, kFloatsPerTask / per_token);
  ForEach(host, static_cast<size_t>(DivideUp(tokens, tokens_per_task)), [&](size_t task) {
    const int64_t begin = static_cast<int64_t>(task) * tokens_per_task;
    const int64_t end = std::min(tokens, begin + tokens_per_task);
    for (int64_t t = begin; t < end; ++t) {
      for (int64_t head = 0; head < heads; ++head) body(t / args.length, head, t % args.length);
    }
  });
}

// Rotates the new keys into `rotated` (row 0 is the first new one) and, where
// present_value is wanted, copies the new values behind the past ones.
inline void AppendNew(const AttentionParams& params, const AttentionArgs<float>& args,
                      const AngleTables& tables, const Rows<float>& rotated, Host& host) {
  ForEachNewRow(params, args, host, [&](int64_t batch, int64_t head, int64_t row) {
    RotateHead(params, args.key.At(batch, head, row), tables.KeyRow(batch, row),
               static_cast<size_t>(args.head_size), rotated.At(batch, head, row));
    if (args.present_value.data != nullptr) {
      memcpy(args.present_value.At(batch, head, args.past + row), args.value.At(batch, head, row),
             static_cast<size_t>(args.v_head_size) * sizeof(float));
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_CACHE_INL_H_
