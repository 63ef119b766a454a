#include "run.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <vector>

#include "device_plan.h"
#include "host_plan.h"

namespace rope::cuda {
namespace {

template <typename To, typename From>
Rows<To> As(const Rows<From>& rows) {
  return {reinterpret_cast<To*>(rows.data), rows.batch_stride, rows.head_stride, rows.row_stride};
}

template <typename To, typename From>
Bias<To> As(const Bias<From>& bias) {
  return {reinterpret_cast<const To*>(bias.data), bias.batch_stride, bias.head_stride,
          bias.query_stride, bias.key_stride};
}

template <typename V>
bool InPlace(const Rows<const V>& past, const Rows<V>& present) {
  return past.data == present.data && past.batch_stride == present.batch_stride &&
         past.head_stride == present.head_stride;
}

// P is a plan (plan.h).
template <typename T, typename P>
class Run {
 public:
  using E = Element<T>;

  // `more` is what the plan needs beside the call.
  template <typename... More>
  Run(const AttentionParams& params, const AttentionCall<T>& args, const Caches& caches,
      Device<E>& device, const More&... more)
      : params_(params),
        caches_(caches),
        device_(device),
        plan_(params, args, device, call_, upload_, more...),
        args_(plan_.args()) {}

  bool operator()() {
    TakeTensors();
    TakeCaches();
    TakeRotation();
    TakeScore();
    TakeMask();
    plan_.TakeSchedule();
    TakeRawKeys();
    if (!upload_.Send(device_)) return false;
    for (const auto& stage : stage_) stage();
    TakeCopies();
    plan_.Launch();
    LaunchCache(in_ring() ? WithoutPresent(call_) : call_);
    const bool rotates = call_.rotated_key.data != nullptr;
    if (rotates) Launch(Kernel::kRawKeys, RawKeysKernel<E>::Blocks(call_), call_);
    Launch(Kernel::kAttention, call_.units() * call_.schedule.splits,
           rotates ? WithRotatedKeys(call_) : call_);
    if (call_.schedule.splits > 1) Launch(Kernel::kMerge, MergeKernel<E>::Blocks(call_), call_);
    if (in_ring() && keeps_cache()) LaunchCache(WithoutNewKeys(call_));
    return true;
  }

 private:
  bool in_ring() const { return args_.ring.rows > 0; }
  bool keeps_cache() const {
    return caches_.present_key.numbers.data != nullptr ||
           caches_.present_value.numbers.data != nullptr;
  }

  void Launch(Kernel kernel, int64_t blocks, const Call<E>& call) {
    if (blocks > 0) device_.Launch(kernel, blocks, call);
  }
  void LaunchCache(const Call<E>& call) {
    Launch(Kernel::kCache, CacheKernel<E>::Blocks(call), call);
  }

  // What the cache kernel does to a ring before the attention reads it, and what afterwards.
  static Call<E> WithoutPresent(Call<E> call) {
    call.caches.present_key = call.caches.present_value = {};
    return call;
  }
  static Call<E> WithoutNewKeys(Call<E> call) {
    call.new_key = call.new_key_residual = {};
    return call;
  }

  // Rotated keys of a raw cache are found as those of this call are.
  static Call<E> WithRotatedKeys(Call<E> call) {
    call.raw_cache = false;
    call.all_new = true;
    call.new_key = call.rotated_key;
    call.new_key_residual = call.rotated_key_residual;
    call.copies_keys = StandsInChunks(call.new_key, call.head_size) &&
                       StandsInChunks(call.new_key_residual, call.head_size);
    return call;
  }

  void TakeTensors() {
    call_.batch = args_.batch;
    call_.length = args_.length;
    call_.new_keys = args_.new_keys;
    call_.max_past = args_.max_past;
    call_.head_size = args_.head_size;
    call_.v_head_size = args_.v_head_size;
    call_.num_heads = params_.num_heads;
    call_.kv_num_heads = params_.kv_num_heads;
    call_.query = As<const E>(args_.query);
    call_.key = As<const E>(args_.key);
    call_.value = As<const E>(args_.value);
    call_.output = As<E>(args_.output);
    call_.present_rows = args_.present_rows;
    call_.ring = args_.ring;
    call_.log_sum_exp = args_.log_sum_exp;
    plan_.TakeRows();
  }

  // The attention reads present where there is one, and beside it what rounding takes from new keys
  // that are still to be multiplied: of those that present has in another type, all. Of a ring it
  // reads past, since new rows take the place of some that it needs.
  void TakeCaches() {
    Caches& caches = call_.caches;
    caches = caches_;
    TakeCache(caches.past_key, caches.present_key, call_.cached_key);
    TakeCache(caches.past_value, caches.present_value, call_.cached_value);
    const bool apart = caches.kind != CacheKind::kSame || in_ring();
    if (apart || caches.present_value.numbers.data == nullptr) call_.new_value = call_.value;
    const bool rounds = sizeof(T) != sizeof(float) && !params_.fast && !params_.raw_cache;
    if (apart || caches.present_key.numbers.data == nullptr) ReserveNewKeys(call_.new_key);
    if (rounds) ReserveNewKeys(call_.new_key_residual);
  }

  void TakeCache(CachedTensor& past, PresentTensor& present, CachedTensor& cached) {
    cached = past;
    if (present.numbers.data == nullptr) return;
    if (!in_ring()) cached = {Constant(present.numbers), Constant(present.scales)};
    present.moves = !InPlace(past.numbers, present.numbers);
    present.moves_scales = present.scales.data != nullptr && !InPlace(past.scales, present.scales);
    Stage(past.numbers, present.numbers, SizeOf(call_.caches.kind));
    Stage(past.scales, present.scales, sizeof(float));
  }

  // Bytes of a number of the caches.
  static constexpr size_t SizeOf(CacheKind kind) {
    if (kind == CacheKind::kSame) return sizeof(E);
    return kind == CacheKind::kInt8 ? sizeof(int8_t) : sizeof(Half);
  }

  // Rows of another type than the tensors' are not copied at all.
  void TakeCopies() {
    const auto stands = [&](const CachedTensor& cached, int64_t size) {
      return caches_.kind != CacheKind::kSame || StandsInChunks(cached.numbers, size);
    };
    call_.copies_keys = !params_.raw_cache && stands(call_.cached_key, args_.head_size) &&
                        StandsInChunks(call_.new_key, args_.head_size) &&
                        StandsInChunks(call_.new_key_residual, args_.head_size);
    call_.copies_values = stands(call_.cached_value, args_.v_head_size) &&
                          StandsInChunks(call_.new_value, args_.v_head_size);
  }

  // Where several blocks of queries read the keys of a raw cache, these are rotated once, if all
  // bands have them alike; for warpgroups always. It takes as much memory as they do.
  void TakeRawKeys() {
    if (!params_.raw_cache || call_.rotation.pairs == 0 || call_.key_angles.count > 1) return;
    if (call_.schedule.blocks <= 1 && !call_.schedule.shape.warpgroups) return;
    const int64_t rows = args_.max_total();
    ReserveKeys(rows, call_.rotated_key);
    if (sizeof(T) != sizeof(float) && !params_.fast) {
      ReserveKeys(rows, call_.rotated_key_residual);
    }
  }

  template <typename V>
  static Rows<const V> Constant(const Rows<V>& rows) {
    return {rows.data, rows.batch_stride, rows.head_stride, rows.row_stride};
  }

  void ReserveNewKeys(Rows<E>& rows) { ReserveKeys(args_.new_keys, rows); }
  void ReserveKeys(int64_t count, Rows<E>& rows) {
    const int64_t head = count * args_.head_size;
    rows = {nullptr, params_.kv_num_heads * head, head, args_.head_size};
    upload_.Reserve(args_.batch * params_.kv_num_heads * head, rows.data);
  }

  // A past whose memory present takes for longer rows would be overwritten while
  // it is read: it moves out of the way first.
  template <typename V>
  void Stage(Rows<const V>& past, const Rows<V>& present, size_t size) {
    if (past.data == nullptr || past.data != present.data || InPlace(past, present)) return;
    const size_t bytes = static_cast<size_t>(args_.batch * past.batch_stride) * size;
    char*& staged = staged_.emplace_back(nullptr);
    upload_.Reserve(static_cast<int64_t>(bytes), staged);
    stage_.push_back([this, &past, &staged, bytes] {
      device_.Copy(staged, past.data, bytes);
      past.data = reinterpret_cast<const V*>(staged);
    });
  }

  void TakeRotation() {
    Rotation& rotation = call_.rotation;
    rotation.pairs = static_cast<int64_t>(params_.frequencies.size());
    rotation.offset = params_.rotary_offset;
    rotation.interleaved = params_.interleaved;
    rotation.exact_angles = params_.exact_angles;
    rotation.gain = params_.gain;
    upload_.Add(params_.frequencies, rotation.frequencies);
    if (!params_.position_axes.empty()) upload_.Add(params_.position_axes, rotation.axes);
    AddFactors(params_.query_factors, rotation.query_factors);
    AddFactors(params_.key_factors, rotation.key_factors);
    call_.raw_cache = params_.raw_cache;
    call_.fast = params_.fast;
    call_.residuals = !params_.fast || params_.temperature.slope > 0;
    call_.band_count = static_cast<int64_t>(params_.bands.size());
    upload_.Add(params_.bands, call_.bands);

    std::vector<Band> tables = {Band{}};
    std::vector<Band> maps;
    std::vector<int32_t> table_of, map_of;
    for (const Band& band : params_.bands) {
      table_of.push_back(band.MovesQuery() ? static_cast<int32_t>(tables.size()) : 0);
      if (band.MovesQuery()) tables.push_back(band);
      size_t map = 0;
      while (map < maps.size() && !maps[map].SameKeys(band)) ++map;
      if (map == maps.size()) maps.push_back(band);
      map_of.push_back(params_.raw_cache ? static_cast<int32_t>(map) : 0);
    }
    call_.query_angles.count = static_cast<int64_t>(tables.size());
    call_.key_angles.count = static_cast<int64_t>(maps.size());
    upload_.Add(tables, call_.query_angles.bands);
    upload_.Add(table_of, call_.query_angles.of_band);
    upload_.Add(maps, call_.key_angles.bands);
    for (const Band& map : maps) {
      if (!params_.raw_cache) break;
      call_.key_angles.rows = std::max(call_.key_angles.rows, KeyRowsOf(map, args_.max_total()));
    }
    upload_.Add(map_of, call_.key_angles.of_band);
    plan_.TakePositions(tables);
  }

  void AddFactors(std::vector<float> factors, const float*& where) {
    if (factors.empty()) return;
    factors.resize(static_cast<size_t>(ChunksOf(args_.head_size) * kChunk), 1.0f);
    upload_.Add(factors, where);
  }

  void TakeMask() {
    Mask& mask = call_.mask;
    mask.causal = params_.causal;
    mask.window = params_.window;
    mask.first_keys = params_.first_keys;
    mask.document_mask = params_.document_mask;
  }

  void TakeScore() {
    call_.score.softcap = params_.softcap;
    call_.score.scale =
        params_.scale != 0.0f
            ? params_.scale
            : static_cast<float>(1.0 / std::sqrt(static_cast<double>(args_.head_size)));
    call_.score.bias = As<E>(args_.bias);
    call_.score.bias_before_softcap = As<E>(args_.bias_before_softcap);
    call_.score.kind = KindOfScore(TakeDistances());
    if (args_.sinks == nullptr) return;
    std::vector<float> sinks;
    for (int64_t h = 0; h < params_.num_heads; ++h) {
      sinks.push_back(hwy::ConvertScalarTo<float>(args_.sinks[h]));
    }
    upload_.Add(sinks, call_.score.sinks);
  }

  ScoreKind KindOfScore(bool counts_shown) const {
    const auto& score = call_.score;
    if (score.bias.data != nullptr || score.bias_before_softcap.data != nullptr ||
        score.softcap != 0.0f || !(score.scale > 0.0f)) {
      return ScoreKind::kAny;
    }
    if (!params_.has_distances()) return ScoreKind::kScaled;
    return params_.distance_slopes.empty() || !params_.distance_starts.empty() || counts_shown
               ? ScoreKind::kAny
               : ScoreKind::kSloped;
  }

  // Whether distances count the keys that a mask shows.
  bool TakeDistances() {
    if (!params_.has_distances()) return false;
    Distances& distances = call_.score.distances;
    distances.heads = params_.num_heads;
    distances.buckets = static_cast<int64_t>(params_.distance_starts.size());
    if (!params_.distance_slopes.empty()) upload_.Add(params_.distance_slopes, distances.slopes);
    if (distances.buckets > 0) {
      upload_.Add(params_.distance_starts, distances.starts);
      upload_.Add(params_.distance_biases, distances.biases);
    }
    return plan_.TakeShownBefore();
  }

  const AttentionParams& params_;
  const Caches& caches_;
  Device<E>& device_;
  Call<E> call_;
  Upload upload_;
  P plan_;
  const AttentionCall<T>& args_;
  std::deque<char*> staged_;  // where pasts are moved; elements stay where they are
  std::vector<std::function<void()>> stage_;
};

}  // namespace

template <typename T>
bool RunCall(const AttentionParams& params, const AttentionCall<T>& args, const Caches& caches,
             const DeviceNumbers* numbers, Device<Element<T>>& device) {
  if (args.batch == 0) return true;
  if (numbers != nullptr) return Run<T, DevicePlan<T>>(params, args, caches, device, *numbers)();
  return Run<T, HostPlan<T>>(params, args, caches, device)();
}

template bool RunCall<float>(const AttentionParams&, const AttentionCall<float>&, const Caches&,
                             const DeviceNumbers*, Device<float>&);
template bool RunCall<Float16>(const AttentionParams&, const AttentionCall<Float16>&, const Caches&,
                               const DeviceNumbers*, Device<Half>&);
template bool RunCall<BFloat16>(const AttentionParams&, const AttentionCall<BFloat16>&,
                                const Caches&, const DeviceNumbers*, Device<BFloat>&);

}  // namespace rope::cuda
