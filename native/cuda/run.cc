#include "run.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <vector>

#include "block_spans.h"
#include "divide.h"
#include "first_keys.h"
#include "padding.h"
#include "positions.h"
#include "ring.h"
#include "shown_before.h"
#include "upload.h"

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

// Angles that the host makes faster than a launch would.
constexpr int64_t kFewAngles = 256;

template <typename T>
class Run {
 public:
  using E = Element<T>;

  Run(const AttentionParams& params, const AttentionCall<T>& args, const Caches& caches,
      Device<E>& device)
      : params_(params),
        args_(args),
        ring_call_(params, args_),
        caches_(caches),
        device_(device),
        positions_(params, args_),
        padding_(args_.mask, args_.mask_batch_stride, args_.batch, args_.max_total()),
        first_keys_(params, args_) {}

  bool operator()() {
    TakeTensors();
    TakeCaches();
    TakeRotation();
    TakeScore();
    TakeSchedule();
    TakeMask();
    if (!upload_.Send(device_)) return false;
    for (const auto& stage : stage_) stage();
    TakeCopies();
    if (!MakesAngles()) Launch(Kernel::kAngles, AngleKernel<E>::Blocks(call_), call_);
    LaunchCache(in_ring() ? WithoutPresent(call_) : call_);
    Launch(Kernel::kAttention, call_.units() * call_.schedule.splits, call_);
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
    if (in_ring()) {
      upload_.Add(std::vector<int64_t>(args_.ring.turns, args_.ring.turns + args_.batch),
                  call_.ring.turns);
    }
    call_.log_sum_exp = args_.log_sum_exp;
    if (args_.row_past != nullptr) {
      upload_.Add(std::vector<int32_t>(args_.row_past, args_.row_past + args_.batch),
                  call_.row_past);
    }
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

  template <typename V>
  static Rows<const V> Constant(const Rows<V>& rows) {
    return {rows.data, rows.batch_stride, rows.head_stride, rows.row_stride};
  }

  void ReserveNewKeys(Rows<E>& rows) {
    const int64_t head = args_.new_keys * args_.head_size;
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
    upload_.Add(map_of, call_.key_angles.of_band);
    TakePositions(tables);
  }

  void AddFactors(std::vector<float> factors, const float*& where) {
    if (factors.empty()) return;
    factors.resize(static_cast<size_t>(ChunksOf(args_.head_size) * kChunk), 1.0f);
    upload_.Add(factors, where);
  }

  void TakePositions(const std::vector<Band>& tables) {
    const int64_t rows = positions_.shared() ? 1 : args_.batch;
    std::vector<int64_t> positions, shifts;
    std::vector<float> temperatures;
    for (int64_t b = 0; b < args_.batch; ++b) {
      shifts.push_back(positions_.Shift(b));
      for (int64_t place = 0; place < args_.length; ++place) {
        const int64_t p = positions_.At(b < rows ? b : 0, place);
        if (b < rows) positions.push_back(p);
        if (params_.temperature.slope > 0) {
          temperatures.push_back(static_cast<float>(params_.temperature.At(p)));
        }
      }
    }
    if (!params_.position_axes.empty()) positions = PositionsOfAxes(rows);
    call_.query_angles.rows = rows * args_.length;
    call_.query_angles.batch_stride = rows == 1 ? 0 : args_.length;
    upload_.Add(positions, call_.positions);
    upload_.Add(shifts, call_.shifts);
    if (!temperatures.empty()) upload_.Add(temperatures, call_.score.temperatures);
    if (MakesAngles()) return MakeAngles(positions, tables);
    ReserveAngles(call_.query_angles);
    if (!params_.raw_cache) return;
    const bool one = std::equal(shifts.begin() + 1, shifts.end(), shifts.begin());
    call_.key_angles.rows = args_.max_total() * (one ? 1 : args_.batch);
    call_.key_angles.batch_stride = one ? 0 : args_.max_total();
    ReserveAngles(call_.key_angles);
  }

  std::vector<int64_t> PositionsOfAxes(int64_t rows) const {
    std::vector<int64_t> positions;
    for (int64_t axis = 0; axis < args_.position_axes; ++axis) {
      for (int64_t i = 0; i < rows * args_.length; ++i) {
        positions.push_back(positions_.AtAxis(i / args_.length, i % args_.length, axis));
      }
    }
    return positions;
  }

  // Whether the host makes the angles, as it does those of a few tokens: a launch of its own would
  // take longer.
  bool MakesAngles() const {
    return !params_.raw_cache && call_.query_angles.all_rows() * call_.rotation.pairs <= kFewAngles;
  }

  void MakeAngles(const std::vector<int64_t>& positions, const std::vector<Band>& bands) {
    Rotation rotation = call_.rotation;
    rotation.frequencies = params_.frequencies.data();
    rotation.axes = params_.position_axes.empty() ? nullptr : params_.position_axes.data();
    AngleTables tables = call_.query_angles;
    tables.bands = bands.data();
    std::vector<float> values(static_cast<size_t>(tables.all_rows() * 2 * rotation.pairs));
    tables.values = values.data();
    for (int64_t row = 0; row < tables.all_rows(); ++row) {
      for (int64_t pair = 0; pair < rotation.pairs; ++pair) {
        FillQueryAngle(rotation, tables, positions.data(), row, pair);
      }
    }
    upload_.Add(values, call_.query_angles.values);
  }

  void ReserveAngles(AngleTables& tables) {
    upload_.Reserve(tables.all_rows() * 2 * call_.rotation.pairs, tables.values);
  }

  void TakeMask() {
    Mask& mask = call_.mask;
    mask.causal = params_.causal;
    mask.window = params_.window;
    mask.first_keys = params_.first_keys;
    if (!first_keys_.ends().empty()) upload_.Add(first_keys_.ends(), mask.first_keys_ends);
    mask.document_mask = params_.document_mask;
    if (!masked_) return;  // no block asks for a single key
    if (padding_.holes()) {
      mask.shown_batch_stride = padding_.batch_stride();
      upload_.Add(padding_.shown(), mask.shown);
    }
    if (args_.documents != nullptr) {
      const int64_t columns = args_.max_total();
      const int64_t rows = args_.documents_batch_stride == 0 ? 1 : args_.batch;
      std::vector<int64_t> ids;
      for (int64_t b = 0; b < rows; ++b) {
        const int64_t* row = args_.documents + b * args_.documents_batch_stride;
        ids.insert(ids.end(), row, row + columns);
      }
      mask.documents_batch_stride = rows == 1 ? 0 : columns;
      upload_.Add(ids, mask.documents);
    }
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
    const ShownBefore before(params_, args_, 0);
    if (before.counts().empty()) return false;
    call_.score.shown_before_stride = before.stride();
    upload_.Add(before.counts(), call_.score.shown_before);
    return true;
  }

  TileShape Shape(int64_t rows, int64_t channels) const {
    if (sizeof(E) != 2) return ShapeFor(rows, channels);
    // Scores that are made one by one are made in memory: warpgroups have no registers to spare.
    return call_.score.kind != ScoreKind::kAny && FitWarpgroups(rows, channels) &&
                   device_.HasWarpgroups()
               ? WarpgroupShapeFor(channels, call_.residuals)
               : TensorShapeFor(rows, channels, call_.residuals);
  }

  // Whether the queries of all batch rows see keys of the same indices.
  bool RowsVisitTheSame() const {
    for (int64_t b = 1; b < args_.batch; ++b) {
      if (args_.past(b) != args_.past(0) || first_keys_.End(b) != first_keys_.End(0) ||
          positions_.Shift(b) != positions_.Shift(0)) {
        return false;
      }
    }
    return padding_.SameRows() && (args_.documents == nullptr || args_.documents_batch_stride == 0);
  }

  // The spans of keys that each block of query rows visits, and into how many
  // splits they are cut. It follows from shapes and masks alone.
  void TakeSchedule() {
    constexpr int64_t kTilesPerSplit = 4;
    constexpr int64_t kMostSplits = 256;
    const int64_t rows = args_.length * params_.group();
    const int64_t channels = std::max(args_.head_size, args_.v_head_size);
    Schedule& schedule = call_.schedule;
    schedule.shape = Shape(rows, channels);
    schedule.blocks = DivideUp(rows, schedule.shape.rows);
    BlockSpans<T> block_spans(params_, args_, positions_, padding_, first_keys_,
                              schedule.shape.keys);
    std::vector<Span> spans;
    std::vector<int32_t> first;
    int64_t most_tiles = 0;
    const int64_t alike = RowsVisitTheSame() ? 1 : args_.batch;
    schedule.batch_stride = alike == 1 ? 0 : schedule.blocks;
    for (int64_t i = 0; i < alike * schedule.blocks; ++i) {
      first.push_back(static_cast<int32_t>(spans.size()));
      const int64_t first_row = i % schedule.blocks * schedule.shape.rows;
      const int64_t left = rows - first_row;
      const Range places =
          PlacesOf(first_row, std::min<int64_t>(schedule.shape.rows, left), params_.group());
      block_spans.Add(i / schedule.blocks, places, spans);
      int64_t tiles = 0;
      for (size_t s = static_cast<size_t>(first.back()); s < spans.size(); ++s) {
        tiles += DivideUp(spans[s].keys.size(), schedule.shape.keys);
      }
      most_tiles = std::max(most_tiles, tiles);
    }
    first.push_back(static_cast<int32_t>(spans.size()));
    masked_ = std::any_of(spans.begin(), spans.end(),
                          [](const Span& span) { return span.sight == Sight::kMasked; });
    upload_.Add(spans, schedule.spans);
    upload_.Add(first, schedule.first_span);
    if (call_.units() == 0) return;
    const int64_t most_splits = std::min(most_tiles / kTilesPerSplit, kMostSplits);
    if (most_splits <= 1) return;
    // Blocks that have to wait for others would begin when all of these end.
    schedule.splits =
        std::clamp<int64_t>(device_.BlocksAtOnce(call_) / call_.units(), 1, most_splits);
    if (schedule.splits == 1) return;
    schedule.partial_rows = std::min<int64_t>(rows, schedule.shape.rows);
    upload_.Reserve(call_.units() * schedule.splits * schedule.partial_rows * call_.partial_width(),
                    schedule.partials);
  }

  const AttentionParams& params_;
  AttentionCall<T> args_;  // of the tokens that are left, where caches are rings
  const RingCall<T> ring_call_;
  const Caches& caches_;
  Device<E>& device_;
  const Positions<T> positions_;
  const Padding padding_;
  const FirstKeys first_keys_;
  bool masked_ = false;  // padding or documents hide keys of some span
  Call<E> call_;
  Upload upload_;
  std::deque<char*> staged_;  // where pasts are moved; elements stay where they are
  std::vector<std::function<void()>> stage_;
};

}  // namespace

template <typename T>
bool RunCall(const AttentionParams& params, const AttentionCall<T>& args, const Caches& caches,
             Device<Element<T>>& device) {
  if (args.batch == 0) return true;
  return Run<T>(params, args, caches, device)();
}

template bool RunCall<float>(const AttentionParams&, const AttentionCall<float>&, const Caches&,
                             Device<float>&);
template bool RunCall<Float16>(const AttentionParams&, const AttentionCall<Float16>&, const Caches&,
                               Device<Half>&);
template bool RunCall<BFloat16>(const AttentionParams&, const AttentionCall<BFloat16>&,
                                const Caches&, Device<BFloat>&);

}  // namespace rope::cuda
