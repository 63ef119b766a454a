#include <algorithm>

#include "draw.h"
#include "spec.gen.h"

namespace rope::hostile {
namespace {

using Ints = std::vector<int64_t>;

// The sizes of a call, and what its node says of the order of tokens.
class AttentionDraw {
 public:
  explicit AttentionDraw(Random& random) : random_(random) {
    case_.op = spec::kRotaryAttention;
    case_.inputs.resize(spec::kInputCount);
    case_.outputs.resize(spec::kOutputCount);
  }

  Case Run() {
    DrawTypes();
    DrawSizes();
    DrawNode();
    DrawScores();
    DrawDistances();
    DrawCache();
    DrawTensors();
    DrawMask();
    DrawDocuments();
    DrawPositions();
    DrawBiases();
    DrawOutputs();
    Promise(case_);
    return std::move(case_);
  }

 private:
  Tensor& In(spec::RotaryAttentionInput i) { return case_.inputs[i]; }
  bool Sometimes(int64_t n) { return random_.OneIn(n); }

  void DrawTypes() {
    case_.element = random_.Of({kFloat, kFloat, kFloat16, kBFloat16});
    case_.cache = case_.element;
    if (Sometimes(4)) case_.cache = kInt8;
    if (case_.element == kFloat && Sometimes(4)) case_.cache = random_.Of({kFloat16, kBFloat16});
  }

  void DrawSizes() {
    kv_ = random_.Of<int64_t>({1, 1, 2, 3, 5});
    heads_ = kv_ * random_.Of<int64_t>({1, 1, 2, 3, 4, 7});
    size_ = random_.Of<int64_t>({1, 2, 3, 5, 8, 16, 17, 24, 32, 33, 48, 64, 64, 96, 128, 131});
    v_size_ = Sometimes(2) ? size_ : random_.Of<int64_t>({1, 2, 3, 7, 16, 20, 31, 40, 64, 97});
    batch_ = random_.Of<int64_t>({1, 1, 1, 2, 2, 3, 5});
    length_ = random_.Of<int64_t>({1, 1, 1, 2, 3, 4, 7, 9, 16, 17, 31, 67});
    past_ = random_.Of<int64_t>({0, 0, 1, 2, 5, 9, 31, 64, 101, 255, 256, 257, 530});
    if (Sometimes(60)) batch_ = 0;
    if (Sometimes(60)) length_ = 0;
    cross_ = case_.cache == case_.element && Sometimes(12);
    raw_ = !cross_ && Sometimes(4);
    cached_ = !cross_ && (case_.cache != case_.element || Sometimes(2));
    counted_ = cached_ && Sometimes(2);
    ring_ = counted_ && Sometimes(3);
    restart_ = !raw_ && !cross_ && !ring_ && Sometimes(12);
    axes_ = !raw_ && !restart_ && !cross_ && Sometimes(8) ? random_.Below(3) + 1 : 0;
    causal_ = !cross_ && (ring_ || !Sometimes(5));
    // Most cases are to cost a part of a millisecond.
    const int64_t most = Sometimes(12) ? 1000000 : 60000;
    while (batch_ * heads_ * std::max<int64_t>(1, length_) * (past_ + length_) * (size_ + v_size_) >
               most &&
           past_ + length_ > 1) {
      past_ /= 2, length_ = (length_ + 1) / 2;
      if (batch_ > 1) --batch_;
    }
    if (!cached_) past_ = 0;
    keys_ = cross_ ? random_.Of<int64_t>({0, 1, 2, 9, 40, 300}) : length_;
    total_ = past_ + keys_;
  }

  void DrawNode() {
    Case& c = case_;
    c.Set(spec::kAttrSpecVersion, int64_t{spec::kSpecVersion});
    c.Set(spec::kAttrNumHeads, heads_);
    c.Set(spec::kAttrKvNumHeads, kv_);
    if (!causal_) c.Set(spec::kAttrCausal, int64_t{0});
    if (cross_) c.Set(spec::kAttrCross, int64_t{1});
    if (raw_) c.Set(spec::kAttrCache, "raw");
    if (Sometimes(3)) c.Set(spec::kAttrPrecision, "fast");
    DrawRotation();
    if (!cross_ && (ring_ || Sometimes(3))) {
      window_ = random_.Of<int64_t>({1, 2, 5, 17, 100, INT64_MAX});
      if (ring_ && window_ > 100) window_ = 3;
      c.Set(spec::kAttrWindow, window_);
    }
    if (Sometimes(3)) {
      first_keys_ = random_.Of<int64_t>({1, 2, 4, 30, INT64_MAX});
      if (ring_ && first_keys_ > 30) first_keys_ = 3;
      c.Set(spec::kAttrFirstKeys, first_keys_);
      first_keys_shown_ = Sometimes(3);
      if (first_keys_shown_) c.Set(spec::kAttrFirstKeysShown, int64_t{1});
    }
    if (axes_ == 0 && !restart_ && !cross_ && causal_ && Sometimes(3)) DrawBands();
    if (axes_ == 0 && !cross_ && Sometimes(10)) {
      c.Set(spec::kAttrTemperature,
            std::vector<float>{random_.Between(0, 2), 0.1f, random_.Between(0, 2),
                               random_.Of({1.0f, 100.0f})});
    }
  }

  void DrawRotation() {
    Case& c = case_;
    const int64_t pairs = cross_ ? 0 : random_.Below(size_ / 2 + 1);
    if (pairs == 0) {
      axes_ = 0;
      if (Sometimes(9)) c.Set(spec::kAttrRotaryOffset, random_.Of<int64_t>({1, INT64_MAX}));
      return;
    }
    c.Set(spec::kAttrFrequencies, random_.Floats(pairs, 0, 1));
    if (Sometimes(3)) c.Set(spec::kAttrRotaryOffset, random_.Below(size_ - 2 * pairs + 1));
    if (Sometimes(3)) c.Set(spec::kAttrRotaryLayout, "interleaved");
    if (Sometimes(3)) c.Set(spec::kAttrExactAngles, int64_t{1});
    if (Sometimes(3)) c.Set(spec::kAttrGain, random_.Between(-2, 2));
    if (axes_ > 0) {
      Ints axes;
      for (int64_t i = 0; i < pairs; ++i) axes.push_back(random_.Below(axes_));
      c.Set(spec::kAttrPositionAxes, axes);
    }
    if (!Sometimes(8)) return;
    c.Set(spec::kAttrTrainedLength, random_.Of<int64_t>({1, 16, 4096, INT64_MAX}));
    const int64_t kind = random_.Below(pairs > 1 ? 3 : 2);
    if (kind == 0) c.Set(spec::kAttrDynamicLinear, int64_t{1});
    if (kind == 1) c.Set(spec::kAttrLongFrequencies, random_.Floats(pairs, 0, 1));
    if (kind == 2) c.Set(spec::kAttrDynamicNtk, random_.Between(1, 8));
  }

  void DrawBands() {
    Case& c = case_;
    Ints starts = {0};
    for (int64_t b = random_.Below(4); b > 0; --b) {
      starts.push_back(starts.back() + 1 + random_.Below(60));
    }
    if (Sometimes(9)) starts.push_back(INT64_MAX);
    const auto count = static_cast<int64_t>(starts.size());
    bands_ = count;
    c.Set(spec::kAttrBandStarts, starts);
    if (Sometimes(2)) c.Set(spec::kAttrBandQueryScales, random_.Floats(count, -1, 2));
    if (Sometimes(2)) c.Set(spec::kAttrBandQueryOffsets, random_.Floats(count, -999, 999));
    if (Sometimes(3)) c.Set(spec::kAttrBandQueryLimits, random_.Floats(count, 0, 99));
    if (!raw_) return;
    if (Sometimes(2)) c.Set(spec::kAttrBandKeyScales, random_.Floats(count, -1, 2));
    if (Sometimes(3)) {
      Ints groups;
      for (int64_t b = 0; b < count; ++b) {
        groups.push_back(random_.Of<int64_t>({1, 2, 7, 4096, INT64_MAX}));
      }
      c.Set(spec::kAttrBandGroups, groups);
    }
    if (Sometimes(3)) {
      chunk_ = random_.Of<int64_t>({1, 2, 16, 50, 1 << 20, INT64_MAX});
      c.Set(spec::kAttrBandChunk, chunk_);
    }
  }

  void DrawScores() {
    Case& c = case_;
    if (Sometimes(3)) c.Set(spec::kAttrScale, random_.Of({-1.0f, 0.1f, 1.0f, 1e-30f}));
    if (Sometimes(5)) c.Set(spec::kAttrSoftcap, random_.Of({0.5f, 30.0f, 1e-20f, 1e20f}));
    if (Sometimes(7)) c.Set(spec::kAttrQueryFactors, random_.Floats(size_, -2, 2));
    if (Sometimes(7)) c.Set(spec::kAttrKeyFactors, random_.Floats(size_, -2, 2));
  }

  void DrawDistances() {
    Case& c = case_;
    if (cross_ || !Sometimes(4)) return;
    const bool slopes = Sometimes(2);
    if (slopes) c.Set(spec::kAttrDistanceSlopes, random_.Floats(heads_, -1, 1));
    if (!slopes || Sometimes(3)) {
      Ints starts = {random_.Of<int64_t>({-40, 0, 3, INT64_MIN})};
      for (int64_t b = random_.Below(20); b > 0; --b) {
        starts.push_back(std::max<int64_t>(starts.back(), -90) + 1 + random_.Below(40));
      }
      if (Sometimes(6)) starts.push_back(random_.Of<int64_t>({int64_t{1} << 40, INT64_MAX}));
      c.Set(spec::kAttrDistanceStarts, starts);
      c.Set(spec::kAttrDistanceBiases,
            random_.Floats(static_cast<int64_t>(starts.size()) * heads_, -5, 5));
    }
    if (Sometimes(3)) c.Set(spec::kAttrDistanceShown, int64_t{1});
  }

  void DrawCache() {
    if (case_.cache != case_.element) {
      case_.Set(spec::kAttrCacheType, case_.cache == kInt8      ? "int8"
                                      : case_.cache == kFloat16 ? "float16"
                                                                : "bfloat16");
    }
    if (!counted_) return;
    capacity_ = past_ + length_ + random_.Of<int64_t>({0, 0, 1, 13});
    if (ring_) {
      case_.Set(spec::kAttrCacheRing, int64_t{1});
      capacity_ = first_keys_ + window_ + random_.Of<int64_t>({0, 0, 1, 5, 40});
    }
    Ints lengths;
    longest_ = 0;
    for (int64_t b = 0; b < batch_; ++b) {
      lengths.push_back(Sometimes(3) ? random_.Below(past_ + 1) : past_);
      if (ring_ && Sometimes(9)) lengths.back() += 3 * capacity_;
      longest_ = std::max(longest_, lengths.back());
    }
    lengths_ = lengths;
    In(spec::kCacheLength) = OfInts(kInt32, {batch_}, lengths);
    if (!ring_ && Sometimes(4)) {
      present_ = capacity_ + random_.Of<int64_t>({-1, 0, 1, 20});
      In(spec::kTotalLength) = OfInts(kInt32, {1}, {std::max<int64_t>(0, present_)});
    }
    total_ = longest_ + length_;
  }

  Ints Rows(int64_t heads, int64_t rows, int64_t size) {
    return Sometimes(2) ? Ints{batch_, rows, heads * size} : Ints{batch_, heads, rows, size};
  }

  void DrawTensors() {
    In(spec::kQuery) = DrawNumbers(random_, case_.element, Rows(heads_, length_, size_));
    In(spec::kKey) = DrawNumbers(random_, case_.element, Rows(kv_, keys_, size_));
    In(spec::kValue) = DrawNumbers(random_, case_.element, Rows(kv_, keys_, v_size_));
    if (!cached_) return;
    const int64_t rows = counted_ ? capacity_ : past_;
    In(spec::kPastKey) = DrawNumbers(random_, case_.cache, {batch_, kv_, rows, size_});
    In(spec::kPastValue) = DrawNumbers(random_, case_.cache, {batch_, kv_, rows, v_size_});
    if (case_.cache == kInt8) {
      In(spec::kPastKeyScale) = Scales(rows);
      In(spec::kPastValueScale) = Scales(rows);
    }
  }

  // Such that numbers of int8 become as small as the others.
  Tensor Scales(int64_t rows) {
    Tensor t = DrawNumbers(random_, kFloat, {batch_, kv_, rows, 1});
    for (size_t i = 0; i < t.bytes.size() / 4; ++i) t.bytes[4 * i + 3] = 0x3C;
    return t;
  }

  void DrawMask() {
    if (!Sometimes(2)) return;
    int64_t width = total_;
    if (counted_) width += random_.Below(4);
    if (ring_ && Sometimes(3)) width = random_.Below(total_ + 1);
    const int64_t rows = Sometimes(3) ? 1 : batch_;
    const int64_t kind = random_.Below(5);
    Ints mask;
    for (int64_t i = 0; i < rows * width; ++i) {
      const int64_t column = i % width;
      bool shown = true;
      if (kind == 0) shown = column >= total_ / 3;
      if (kind == 1) shown = random_.OneIn(2);
      if (kind == 2) shown = random_.OneIn(50);
      if (kind == 3) shown = column % 3 != 1 || column > 40;
      if (ring_ && first_keys_shown_ && column < first_keys_) shown = true;
      mask.push_back(shown ? random_.Of<int64_t>({1, 1, 1, 1, -1, INT64_MIN, 256}) : 0);
    }
    In(spec::kAttentionMask) = OfInts(kInt64, {rows, width}, mask);
  }

  // Whether the mask shows a key.
  bool Shows(int64_t batch, int64_t index) {
    const Tensor& mask = In(spec::kAttentionMask);
    if (!mask.present || index >= mask.shape[1]) return true;
    const int64_t row = mask.shape[0] == 1 ? 0 : batch;
    return NumberAt(kInt64, mask.bytes.data(), static_cast<size_t>(row * mask.shape[1] + index)) !=
           0;
  }

  int64_t PastOf(int64_t batch) const {
    return counted_ ? lengths_[static_cast<size_t>(batch)] : past_;
  }

  void DrawDocuments() {
    if (cross_ || !(restart_ || Sometimes(5))) return;
    if (restart_) case_.Set(spec::kAttrDocumentRestart, int64_t{1});
    if (restart_ && Sometimes(2)) {
      case_.Set(spec::kAttrDocumentStart, random_.Of<int64_t>({1, 1000, INT32_MAX}));
    }
    if (Sometimes(2)) case_.Set(spec::kAttrDocumentMask, "anchor");
    const int64_t width = total_ + (counted_ ? random_.Below(4) : 0);
    const int64_t rows = Sometimes(3) ? 1 : batch_;
    const int64_t change = random_.Of<int64_t>({1, 3, 40});
    Ints ids;
    int64_t id = 0;
    for (int64_t i = 0; i < rows * width; ++i) {
      if (random_.OneIn(change)) id = random_.Of<int64_t>({-1, 0, 1, 2, 3, INT64_MAX});
      ids.push_back(id);
    }
    In(spec::kDocumentIds) = OfInts(kInt64, {rows, width}, ids);
  }

  void DrawPositions() {
    if (cross_ || !(axes_ > 0 || Sometimes(2))) return;
    const int64_t rows = !counted_ && Sometimes(2) ? 1 : batch_;
    const bool by_index = raw_ || bands_ > 1 || chunk_ > 0;
    const int64_t first = random_.Of<int64_t>({0, past_, past_, 131071, 1 << 24, INT32_MAX - 100});
    Ints positions;
    for (int64_t i = 0; i < std::max<int64_t>(1, axes_) * rows * length_; ++i) {
      const int64_t row = i / std::max<int64_t>(1, length_) % std::max<int64_t>(1, rows);
      const int64_t place = i % length_;
      bool hidden = true;
      for (int64_t b = 0; b < batch_; ++b) {
        if (rows == 1 || b == row) hidden = hidden && !Shows(b, PastOf(b) + place);
      }
      int64_t p = first + place;
      if (!by_index && Sometimes(6)) p = random_.Below(INT32_MAX);
      if (hidden) p = random_.Of<int64_t>({-1, 0, INT64_MIN, INT64_MAX, int64_t{1} << 40});
      positions.push_back(p);
    }
    Ints shape = {rows, length_};
    if (axes_ > 0) shape.insert(shape.begin(), axes_);
    In(spec::kPositionIds) = OfInts(kInt64, shape, positions);
  }

  void DrawBiases() {
    if (ring_) return;
    for (const auto input : {spec::kAttentionBias, spec::kBiasBeforeSoftcap}) {
      if (!Sometimes(6)) continue;
      Ints shape = {batch_, heads_, length_, total_};
      for (int64_t& dim : shape) {
        if (Sometimes(3)) dim = 1;
      }
      shape.erase(shape.begin(), shape.begin() + (Sometimes(3) ? random_.Below(4) : 0));
      In(input) = DrawNumbers(random_, case_.element, shape);
      if (Sometimes(3)) HideSome(In(input));
    }
    if (Sometimes(6)) In(spec::kSinkLogits) = DrawNumbers(random_, case_.element, {heads_});
  }

  // Minus infinity hides a key.
  void HideSome(Tensor& t) {
    const size_t size = SizeOf(t.element);
    for (size_t at = 0; at < t.bytes.size(); at += size) {
      if (!Sometimes(3)) continue;
      std::fill_n(t.bytes.begin() + static_cast<int64_t>(at), size, uint8_t{0});
      t.bytes[at + size - 1] = t.element == kFloat16 ? 0xFC : 0xFF;
      if (t.element != kFloat16) t.bytes[at + size - 2] = 0x80;
    }
  }

  void DrawOutputs() {
    case_.outputs[spec::kOutput].wanted = true;
    case_.outputs[spec::kLogSumExp].wanted = Sometimes(2);
    const auto want = [&](int output, int scale, int input, int input_scale) {
      case_.outputs[static_cast<size_t>(output)].wanted = !Sometimes(5);
      const bool shared = cached_ && Sometimes(3);
      if (shared) case_.outputs[static_cast<size_t>(output)].same_as = input;
      if (case_.cache != kInt8) return;
      case_.outputs[static_cast<size_t>(scale)].wanted =
          case_.outputs[static_cast<size_t>(output)].wanted;
      if (shared) case_.outputs[static_cast<size_t>(scale)].same_as = input_scale;
    };
    want(spec::kPresentKey, spec::kPresentKeyScale, spec::kPastKey, spec::kPastKeyScale);
    want(spec::kPresentValue, spec::kPresentValueScale, spec::kPastValue, spec::kPastValueScale);
  }

  Random& random_;
  Case case_;
  int64_t kv_ = 1, heads_ = 1, size_ = 1, v_size_ = 1, batch_ = 1, length_ = 1, past_ = 0;
  int64_t keys_ = 1, total_ = 1, capacity_ = 0, present_ = 0, longest_ = 0;
  int64_t window_ = 0, first_keys_ = 0, axes_ = 0, bands_ = 1, chunk_ = 0;
  bool cross_ = false, raw_ = false, cached_ = false, counted_ = false, ring_ = false;
  bool restart_ = false, causal_ = true, first_keys_shown_ = false;
  Ints lengths_;
};

}  // namespace

Case DrawAttention(Random& random) { return AttentionDraw(random).Run(); }

}  // namespace rope::hostile
