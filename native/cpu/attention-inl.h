// One run: angle tables, cache, tasks, and the merge of split keys.
#if defined(ROPE_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_ATTENTION_INL_H_
#undef ROPE_ATTENTION_INL_H_
#else
#define ROPE_ATTENTION_INL_H_
#endif

#include <cmath>

#include "positions.h"
#include "ring.h"
#include "tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

// One query of one head.
struct QueryHead {
  int64_t batch, head, place;
};

template <typename T>
bool Hides(const Bias<T>& bias, const QueryHead& q, int64_t key) {
  return bias.data != nullptr &&
         ToFloat(*bias.At(q.batch, q.head, q.place, key)) == kNegativeInfinity;
}

// Whether a query sees any key at all.
template <typename T, typename C>
bool SeesAnyKey(const Run<T, C>& run, const QueryHead& q) {
  const AttentionCall<T>& args = run.args;
  const Geometry geometry(run.params, run.first_keys.End(q.batch), args.total(q.batch));
  const int64_t index = args.past(q.batch) + q.place;
  const int64_t* mask =
      args.mask == nullptr ? nullptr : args.mask + q.batch * args.mask_batch_stride;
  const int64_t* ids =
      args.documents == nullptr ? nullptr : args.documents + q.batch * args.documents_batch_stride;
  for (const Range section : {geometry.FirstSection(), geometry.SecondSection()}) {
    const Range keys = geometry.Keys(index, section);
    for (int64_t j = keys.begin; j < keys.end; ++j) {
      if ((mask == nullptr || mask[j] != 0) &&
          (ids == nullptr || DocumentShows(run.params.document_mask, ids[index], ids[j])) &&
          !Hides(args.bias, q, j) && !Hides(args.bias_before_softcap, q, j)) {
        return true;
      }
    }
  }
  return false;
}

// Writes a query's output and its log-sum-exp. `maximum` is its largest product,
// `sums` and `total` are what its weights relative to that add up to.
template <typename T, typename C>
void WriteRow(const Run<T, C>& run, const QueryHead& q, const float* sums, float maximum,
              float total) {
  const AttentionCall<T>& args = run.args;
  float factor = 0.0f;
  float log_sum_exp = kNegativeInfinity;
  if (total != 0.0f) {
    factor = 1.0f / total;
    const double score = static_cast<double>(run.ScoreOfProduct()) * static_cast<double>(maximum);
    log_sum_exp = static_cast<float>(score + static_cast<double>(std::log(total)));
    if (args.sinks != nullptr) {
      const double sink = static_cast<double>(ToFloat(args.sinks[q.head]));
      const double largest = std::max(score, sink);  // NaN if the maximum is
      const float weight = static_cast<float>(std::exp(score - largest));
      factor = weight / (total * weight + static_cast<float>(std::exp(sink - largest)));
    }
  } else if (SeesAnyKey(run, q)) {
    // Keys whose scores are all -inf, where softmax is 0 / 0.
    factor = log_sum_exp = std::numeric_limits<float>::quiet_NaN();
  }
  StoreScaled(sums, factor, static_cast<size_t>(args.v_head_size),
              args.output.At(q.batch, q.head, q.place));
  if (args.log_sum_exp != nullptr) {
    args.log_sum_exp[(q.batch * run.params.num_heads + q.head) * args.length + q.place] =
        log_sum_exp;
  }
}

// The query and head of a task's row.
inline QueryHead QueryOf(const Task& task, size_t row) {
  return {task.batch, task.HeadOf(row), task.PlaceOf(row)};
}

template <typename T, typename C>
void WriteOutput(const Run<T, C>& run, const Task& task, const TileAttention<T, C>& tile) {
  for (size_t r = 0; r < tile.rows(); ++r) {
    WriteRow(run, QueryOf(task, r), tile.sums(r), tile.maximum(r), tile.total(r));
  }
}

// Results of tasks that saw only part of the keys: of each row its sums, its maximum and its
// total, which is the softmax's denominator.
class Partials {
 public:
  Partials(Host& host, const Plan& plan, int64_t v_head_size)
      : rows_(static_cast<size_t>(plan.rows_per_block())),
        channels_(static_cast<size_t>(v_head_size)),
        width_(channels_ + static_cast<size_t>(kRowStatistics)),
        values_(host, plan.splits() > 1 ? plan.tasks() * rows_ * width_ : 0) {}

  bool ok(const Plan& plan) const { return plan.splits() == 1 || values_.data() != nullptr; }
  float* Sums(size_t task, size_t row) const {
    return values_.data() + (task * rows_ + row) * width_;
  }
  float& Maximum(size_t task, size_t row) const { return Sums(task, row)[channels_]; }
  float& Total(size_t task, size_t row) const { return Sums(task, row)[channels_ + 1]; }

 private:
  size_t rows_;
  size_t channels_;
  size_t width_;
  ScratchFloats values_;
};

template <typename T, typename C>
void WritePartial(const Partials& partials, const Task& task, const TileAttention<T, C>& tile,
                  size_t channels) {
  for (size_t r = 0; r < tile.rows(); ++r) {
    memcpy(partials.Sums(task.index, r), tile.sums(r), channels * sizeof(float));
    partials.Maximum(task.index, r) = tile.maximum(r);
    partials.Total(task.index, r) = tile.total(r);
  }
}

// Adds up the splits of one unit in the first one's place, always in the same order.
template <typename T, typename C>
void MergePartials(const Run<T, C>& run, const Plan& plan, const Partials& partials, size_t unit) {
  const size_t splits = static_cast<size_t>(plan.splits());
  const size_t channels = static_cast<size_t>(run.args.v_head_size);
  const Task task = plan.At(unit * splits);
  for (size_t r = 0; r < task.rows(); ++r) {
    float maximum = kNegativeInfinity;
    for (size_t s = 0; s < splits; ++s) {
      const float m = partials.Maximum(task.index + s, r);
      if (m > maximum || std::isnan(m)) maximum = m;
    }
    float* sums = partials.Sums(task.index, r);
    float total = 0.0f;
    for (size_t s = 0; s < splits; ++s) {
      const float* part = partials.Sums(task.index + s, r);
      const float part_total = partials.Total(task.index + s, r);
      if (part_total == 0.0f) continue;  // no key was visible: its sums are zeros
      const float weight =
          std::exp((partials.Maximum(task.index + s, r) - maximum) * run.ScoreOfProduct());
      total += part_total * weight;
      for (size_t x = 0; x < channels; ++x) {
        sums[x] = (s == 0 ? 0.0f : sums[x]) + part[x] * weight;
      }
    }
    WriteRow(run, QueryOf(task, r), sums, maximum, total);
  }
}

template <typename T, typename C>
bool ComputeAttention(const Run<T, C>& run, const Plan& plan, Host& host) {
  if (plan.tasks() == 0) return true;
  const TileLayout layout(run.params, run.args, run.key_angles,
                          static_cast<size_t>(plan.rows_per_block()), run.scores_first);
  const Partials partials(host, plan, run.args.v_head_size);
  if (!partials.ok(plan)) return false;
  WorkspacePool pool(host, layout.end);
  const auto compute = [&](size_t i) {
    const WorkspacePool::Lease memory(pool);
    if (memory.data() == nullptr) return;
    const Task task = plan.At(i);
    TileAttention<T, C> tile(run, task, layout, memory.data());
    tile.Compute();
    if (plan.splits() == 1) {
      WriteOutput(run, task, tile);
    } else {
      WritePartial(partials, task, tile, static_cast<size_t>(run.args.v_head_size));
    }
  };
  ForEach(host, plan.tasks(), compute, plan.small());
  if (pool.exhausted()) return false;
  if (plan.splits() > 1) {
    ForEach(host, plan.units(), [&](size_t unit) { MergePartials(run, plan, partials, unit); });
  }
  return true;
}

template <typename T, typename C>
bool RunOnTarget(const AttentionParams& params, AttentionArgs<T, C> args, Host& host) {
  if (args.batch == 0) return true;
  const RingCall<T> ring_call(params, args);
  const Positions<T> positions(params, args);
  AngleTables tables(params, host, args.batch, args.length, positions.shared());
  if (!tables.ok()) return false;
  tables.Fill(host, positions);

  std::vector<int64_t> shifts;
  for (int64_t b = 0; params.raw_cache && b < args.batch; ++b) shifts.push_back(positions.Shift(b));
  const KeyAngles key_angles(params, host, shifts, args.max_total());
  if (!key_angles.ok()) return false;

  // New keys are rotated into present_key, or into memory of this run when nobody asked for
  // present_key, or when it would round keys that this run still multiplies, by queries or by
  // factors, or that a cache of fewer bits rounds. A ring takes them when all is read.
  constexpr bool kSameType = std::is_same_v<T, C>;
  const bool ring = args.ring.rows > 0;
  const int64_t kv_heads = params.kv_num_heads;
  const bool keep_keys = args.present_key.data != nullptr;
  const bool keep_values = args.present_value.data != nullptr;
  const bool whole = params.key_factors.empty() && (params.fast || params.raw_cache);
  const bool own = ring || !keep_keys || !kSameType || !(kIsFloat<T> || whole);
  const int64_t head = args.new_keys * args.head_size;
  const int64_t all = args.batch * kv_heads * head;
  const ScratchFloats own_keys(host, own ? static_cast<size_t>(all) : 0);
  if (own && all != 0 && own_keys.data() == nullptr) return false;
  const Rows<float> rotated{own_keys.data(), kv_heads * head, head, args.head_size};
  const Plan plan(params, args);
  // With one query block each key belongs to one task, which copies it while it
  // reads it; a past that shares present's memory stays or has been moved by then.
  bool shared = false;
  ForEachCache(args, [&](int64_t, const auto& past, const auto& present) {
    shared = shared || (args.max_past > 0 && past.data == present.data);
  });
  const bool copy = plan.in_place() && !shared && args.max_past > 0 && !ring;
  ForEachCache(args, [&](int64_t channels, const auto& past, const auto& present) {
    if (!copy) CopyPast(args, kv_heads, channels, past, present, host);
    // Before new rows come: present may share past's memory without standing in its place.
    ClearUnused(args, kv_heads, channels, past, present, host);
  });
  AppendNew(params, args, tables, rotated, host);

  const Rows<const C> present_key = Const(args.present_key);
  const Rows<const C> present_value = Const(args.present_value);
  const float scale =
      params.scale != 0.0f
          ? params.scale
          : static_cast<float>(1.0 / std::sqrt(static_cast<double>(args.head_size)));
  const DocumentRuns documents(args);
  const FirstKeys first_keys(params, args);
  const DistanceRun distances(params, args);
  Run<T, C> run{params, args, tables, positions, key_angles, documents, first_keys, distances};
  const bool reads_present = !copy && !ring;
  run.keys.cached = keep_keys && reads_present ? present_key : args.past_key;
  run.keys.scales =
      keep_keys && reads_present ? Const(args.present_key_scale) : args.past_key_scale;
  if (!own) run.keys.appended = present_key;
  run.keys.new_rows = Const(rotated);
  run.keys.whole = !own && !copy;
  run.values.cached = keep_values && reads_present ? present_value : args.past_value;
  run.values.scales =
      keep_values && reads_present ? Const(args.present_value_scale) : args.past_value_scale;
  if (kSameType && !ring) run.values.appended = present_value;
  run.values.new_rows = args.value;
  run.values.whole = kSameType && keep_values && reads_present;
  run.scale = std::abs(scale);
  run.negate = scale < 0;
  run.in_place = plan.in_place();
  run.modify = ScoreModifiers<T>::Any(params, args);
  // Queries that are to be rounded before a temperature are not afterwards.
  run.pairs = kPairable<T, C> && params.fast && !plan.in_place() && args.head_size % 2 == 0 &&
              (kIsFloat<T> || params.temperature.slope <= 0);
  run.scores_first = plan.scores_first();
  run.copy = copy;
  if (!ComputeAttention(run, plan, host)) return false;
  if (ring) StoreInRing(params, args, Const(rotated), host);
  return true;
}

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_ATTENTION_INL_H_
