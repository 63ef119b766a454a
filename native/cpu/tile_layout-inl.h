// Where a task's parts stand in its working memory.
#if defined(ROPE_TILE_LAYOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_TILE_LAYOUT_INL_H_
#undef ROPE_TILE_LAYOUT_INL_H_
#else
#define ROPE_TILE_LAYOUT_INL_H_
#endif

#include "divide.h"
#include "key_angles-inl.h"
#include "modifiers-inl.h"
#include "plan.h"
#include "product-inl.h"
#include "raw_keys-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

// Raw keys that are rotated before they are packed, a multiple of kAngleKeys and kPanel.
inline constexpr int64_t kRotatedKeys = 64;
static_assert(kRotatedKeys % kAngleKeys == 0 && kRotatedKeys % kPanel == 0, "panels are whole");

// Offsets in floats.
struct TileLayout {
  size_t query_columns, v_columns;  // head_size and v_head_size in whole vectors
  size_t keys_of_map;               // packed keys of a map, see KeyAngles
  size_t queries, sums, maxima, totals, keys, rotated, raw_keys, values, scores, band_scores, shown,
      row_shown, biases, ids, end;

  template <typename T>
  TileLayout(const AttentionParams& params, const AttentionCall<T>& args,
             const KeyAngles& key_angles, size_t rows, bool scores_first)
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
    keys = take(scores_first ? 0 : keys_of_map * (params.raw_cache ? key_angles.maps() : 1));
    rotated = take(
        params.raw_cache && !scores_first ? static_cast<size_t>(kRotatedKeys * args.head_size) : 0);
    raw_keys = take(
        params.raw_cache ? RawKeys<T>::Floats(key_angles, static_cast<size_t>(args.head_size)) : 0);
    values = take(kKeys * v_columns);
    scores = take((scores_first ? rows : kBlockRows) * kKeys);
    band_scores = take(kBlockRows * kKeys);
    shown = take(kKeys);
    row_shown = take(kBlockRows * kKeys);
    biases = take(ScoreModifiers<T>::kBuffers * kKeys);
    ids = take(rows * sizeof(int64_t) / sizeof(float));
    end = next;
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_TILE_LAYOUT_INL_H_
