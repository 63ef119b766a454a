#include "inputs.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "documents.h"
#include "hwy/base.h"
#include "refuse.h"

namespace rope {
namespace {

using spec::RotaryAttentionInput;

template <typename T, typename C>
class Checker {
 public:
  Checker(const AttentionParams& params, const Inputs& inputs, const std::string& node,
          Numbers numbers)
      : params_(params), inputs_(inputs), node_(node), reads_(numbers == Numbers::kOnHost) {}

  AttentionArgs<T, C> Run() {
    CheckSizes();
    CheckQuery();
    CheckKey();
    CheckValue();
    CheckRotary();
    CheckFactors();
    CheckPast();
    CheckMask();
    CheckDocuments();
    CheckPositions();
    args_.bias = CheckBias(spec::kAttentionBias);
    args_.bias_before_softcap = CheckBias(spec::kBiasBeforeSoftcap);
    CheckSinks();
    if (args_.columns < args_.new_keys) {
      Refuse("a mask, a bias or document_ids have ", args_.columns, " columns, but ",
             WithShape(spec::kQuery), " has ", args_.length, " new tokens");
    }
    return args_;
  }

 private:
  template <typename... Parts>
  [[noreturn]] void Refuse(const Parts&... parts) const {
    RefuseNode(node_, parts...);
  }

  static std::string Named(RotaryAttentionInput i) { return spec::kInputNames[i]; }
  std::string WithShape(RotaryAttentionInput i) const {
    return Named(i) + " " + ShapeText(inputs_[i].shape);
  }

  void Require(RotaryAttentionInput i) const {
    if (!inputs_[i].present) Refuse("input ", Named(i), " is missing");
  }

  void CheckSizes() const {
    for (int i = 0; i < spec::kInputCount; ++i) {
      const auto input = static_cast<RotaryAttentionInput>(i);
      if (IsCountable(inputs_[input].shape)) continue;
      Refuse(WithShape(input), " has no elements, but dimensions that are too large together");
    }
  }

  // [batch, length, heads * channels] or [batch, heads, length, channels].
  struct Heads {
    int64_t batch, length, channels;
    Rows<const T> rows;
  };

  Heads SplitHeads(RotaryAttentionInput i, int64_t heads, const char* heads_name) const {
    Require(i);
    const auto& shape = inputs_[i].shape;
    Heads result{};
    const std::string count = Text(heads_name, " ", heads);
    if (shape.size() == 3) {
      if (shape[2] % heads != 0) {
        Refuse(WithShape(i), ": the last dimension is not a multiple of ", count);
      }
      result = {shape[0], shape[1], shape[2] / heads, {}};
      result.rows = {inputs_[i].template As<T>(), shape[1] * shape[2], result.channels, shape[2]};
    } else if (shape.size() == 4) {
      if (shape[1] != heads) Refuse(WithShape(i), ": dimension 1 must be ", count);
      result = {shape[0], shape[2], shape[3], {}};
      result.rows = {inputs_[i].template As<T>(), shape[1] * shape[2] * shape[3],
                     shape[2] * shape[3], shape[3]};
    } else {
      Refuse(WithShape(i), " must have 3 or 4 dimensions");
    }
    if (result.channels == 0) Refuse(WithShape(i), ": heads have no channels");
    return result;
  }

  void CheckQuery() {
    const Heads query = SplitHeads(spec::kQuery, params_.num_heads, spec::kAttrNumHeads);
    args_.batch = query.batch;
    args_.length = query.length;
    args_.head_size = query.channels;
    args_.query = query.rows;
  }

  void CheckRows(RotaryAttentionInput i, const Heads& rows, RotaryAttentionInput with,
                 int64_t length) const {
    if (rows.batch != args_.batch || rows.length != length) {
      Refuse(WithShape(i), " has batch ", rows.batch, " and length ", rows.length, ", but ",
             WithShape(with), " has batch ", args_.batch, " and length ", length);
    }
  }

  void CheckKey() {
    const Heads key = SplitHeads(spec::kKey, params_.kv_num_heads, spec::kAttrKvNumHeads);
    args_.new_keys = params_.cross ? key.length : args_.length;
    CheckRows(spec::kKey, key, spec::kQuery, args_.new_keys);
    if (key.channels != args_.head_size) {
      Refuse(WithShape(spec::kKey), " has head size ", key.channels, ", but ",
             WithShape(spec::kQuery), " has head size ", args_.head_size);
    }
    args_.key = key.rows;
  }

  void CheckValue() {
    const Heads value = SplitHeads(spec::kValue, params_.kv_num_heads, spec::kAttrKvNumHeads);
    CheckRows(spec::kValue, value, params_.cross ? spec::kKey : spec::kQuery, args_.new_keys);
    args_.v_head_size = value.channels;
    args_.value = value.rows;
  }

  void CheckRotary() const {
    const int64_t room = args_.head_size - params_.rotary_offset;
    if (params_.rotary_dim() > 0 && params_.rotary_dim() > room) {
      Refuse(params_.frequencies.size(), " frequencies from channel ", params_.rotary_offset,
             " on rotate channels beyond the head size ", args_.head_size, " of ",
             WithShape(spec::kQuery));
    }
  }

  void CheckFactors() const {
    for (const auto& [name, factors] : {std::pair{spec::kAttrQueryFactors, &params_.query_factors},
                                        std::pair{spec::kAttrKeyFactors, &params_.key_factors}}) {
      if (factors->empty() || static_cast<int64_t>(factors->size()) == args_.head_size) continue;
      Refuse(name, " has ", factors->size(), " values, but ", WithShape(spec::kQuery),
             " has head size ", args_.head_size);
    }
  }

  void CheckPast() {
    const Tensor& key = inputs_[spec::kPastKey];
    const Tensor& value = inputs_[spec::kPastValue];
    if (key.present != value.present) Refuse("past_key and past_value must be given together");
    args_.present_rows = args_.new_keys;
    if (!key.present) return;
    if (key.shape.size() != 4) Refuse(WithShape(spec::kPastKey), " must have 4 dimensions");
    capacity_ = key.shape[2];
    args_.max_past = capacity_;
    args_.present_rows = capacity_ + args_.length;
    if (inputs_[spec::kCacheLength].present) CheckCapacity();
    args_.past_key = PastRows<C>(spec::kPastKey, args_.head_size, spec::kKey);
    args_.past_value = PastRows<C>(spec::kPastValue, args_.v_head_size, spec::kValue);
    if constexpr (std::is_same_v<C, int8_t>) {
      args_.past_key_scale = PastRows<float>(spec::kPastKeyScale, 1, spec::kPastKey);
      args_.past_value_scale = PastRows<float>(spec::kPastValueScale, 1, spec::kPastValue);
    }
  }

  // past_key and past_value are buffers, of which the first cache_length[b] rows
  // hold tokens.
  void CheckCapacity() {
    const Tensor& lengths = inputs_[spec::kCacheLength];
    if (lengths.shape != std::vector<int64_t>{args_.batch}) {
      Refuse(WithShape(spec::kCacheLength), " must be ", ShapeText({args_.batch}), " to fit ",
             WithShape(spec::kQuery));
    }
    args_.total_length = TotalLength();
    args_.present_rows = std::max(capacity_, args_.total_length);
    if (params_.ring) CheckRing();
    if (!reads_) return TakeRoom(lengths.As<int32_t>());
    args_.max_past = 0;
    const int32_t* row_past = lengths.As<int32_t>();
    bool uniform = true;
    for (int64_t b = 0; b < args_.batch; ++b) {
      CheckCacheLength(b, row_past[b]);
      args_.max_past = std::max<int64_t>(args_.max_past, row_past[b]);
      uniform = uniform && row_past[b] == row_past[0];
    }
    if (!uniform) args_.row_past = row_past;
  }

  // Lengths that cannot be read are at most what there is room for.
  void TakeRoom(const int32_t* lengths) {
    args_.row_past = lengths;
    args_.max_past = std::min(capacity_, args_.present_rows - args_.length);
    if (args_.max_past >= 0) return;
    Refuse(WithShape(spec::kPastKey), " has room for ", capacity_, " tokens, but ",
           WithShape(spec::kQuery), " has ", args_.length, " new ones");
  }

  // The rows behind the first keys hold a window.
  void CheckRing() {
    args_.ring.first = params_.first_keys;
    args_.ring.rows = capacity_ - params_.first_keys;
    if (args_.ring.rows >= params_.window) return;
    Refuse(WithShape(spec::kPastKey), " has room for ", capacity_, " tokens; a ring with ",
           params_.first_keys, " first keys and a window of ", params_.window, " needs ",
           static_cast<uint64_t>(params_.first_keys) + static_cast<uint64_t>(params_.window),
           " or more");
  }

  int64_t TotalLength() const {
    const Tensor& total = inputs_[spec::kTotalLength];
    if (!total.present) return 0;
    int64_t count = 1;
    for (const int64_t dim : total.shape) count *= dim;
    if (count != 1) Refuse(WithShape(spec::kTotalLength), " must have one element");
    const int32_t length = *total.As<int32_t>();
    if (length < 0) {
      Refuse(WithShape(spec::kTotalLength), " is ", length, "; it must not be negative");
    }
    return length;
  }

  void CheckCacheLength(int64_t batch, int64_t past) const {
    const std::string given = Text(WithShape(spec::kCacheLength), " has ", past, " in row ", batch);
    if (past < 0) Refuse(given, "; it must not be negative");
    if (params_.ring) {
      if (past <= INT32_MAX - args_.length) return;
      Refuse(given, ", which with the ", args_.length, " new tokens of ", WithShape(spec::kQuery),
             " is more than ", INT32_MAX);
    }
    if (past > capacity_) {
      Refuse(given, ", but ", WithShape(spec::kPastKey), " has room for ", capacity_, " tokens");
    }
    if (past + args_.length > args_.present_rows) {
      Refuse(given, ", which with the ", args_.length, " new tokens of ", WithShape(spec::kQuery),
             " makes ", past + args_.length, ", but ",
             args_.present_rows > capacity_ ? Named(spec::kTotalLength) + " asks for"
                                            : WithShape(spec::kPastKey) + " has",
             " room for ", args_.present_rows, " tokens; give a larger cache or fewer tokens");
    }
  }

  template <typename E>
  Rows<const E> PastRows(RotaryAttentionInput i, int64_t channels,
                         RotaryAttentionInput with) const {
    const std::vector<int64_t> wanted = {args_.batch, params_.kv_num_heads, capacity_, channels};
    if (inputs_[i].shape != wanted) {
      Refuse(WithShape(i), " must be ", ShapeText(wanted), " to fit ", WithShape(with),
             (i == spec::kPastValue ? " and " + WithShape(spec::kPastKey) : ""));
    }
    return {inputs_[i].template As<E>(), params_.kv_num_heads * capacity_ * channels,
            capacity_ * channels, channels};
  }

  // How many keys there are, in words.
  const char* KeysText() const { return params_.cross ? "length of key" : "past + length"; }

  // Checks [batch or 1, columns] and gives the stride from row to row.
  int64_t RowStride(RotaryAttentionInput i, int64_t columns, const std::string& meaning) const {
    const auto& shape = inputs_[i].shape;
    if (shape.size() != 2 || (shape[0] != args_.batch && shape[0] != 1) || shape[1] != columns) {
      Refuse(WithShape(i), " must be ", ShapeText({args_.batch, columns}), " or ",
             ShapeText({1, columns}), " (", meaning, ") to fit ", WithShape(spec::kQuery),
             (inputs_[spec::kPastKey].present ? " and " + WithShape(spec::kPastKey) : ""));
    }
    return shape[0] == 1 ? 0 : columns;
  }

  // The same for one column per key: exactly so many, or with cache_length any
  // number that serves the longest row.
  int64_t KeyStride(RotaryAttentionInput i) {
    if (!inputs_[spec::kCacheLength].present) {
      return RowStride(i, args_.max_total(), KeysText());
    }
    const auto& shape = inputs_[i].shape;
    const bool any_width = !reads_ || (params_.ring && i == spec::kAttentionMask);
    if (!reads_ && shape.size() == 2) args_.columns = std::min(args_.columns, shape[1]);
    if (shape.size() == 2 && (any_width || shape[1] >= args_.max_total())) {
      return RowStride(i, shape[1], "any");
    }
    Refuse(WithShape(i), " must be ", ShapeText({args_.batch, args_.max_total()}),
           " or wider (the largest cache_length ", args_.max_past, " + length ", args_.length,
           ") to fit ", WithShape(spec::kQuery));
  }

  void CheckMask() {
    const Tensor& mask = inputs_[spec::kAttentionMask];
    if (!mask.present) return;
    args_.mask_batch_stride = KeyStride(spec::kAttentionMask);
    args_.mask = mask.As<int64_t>();
    if (!params_.ring) return;
    args_.mask_width = mask.shape[1];
    if (params_.first_keys_shown) CheckFirstKeys();
  }

  // A ring keeps the tokens at the first indices, so these must be the first ones that are shown.
  void CheckFirstKeys() const {
    for (int64_t b = 0; b < args_.batch; ++b) {
      for (int64_t j = 0; j < std::min(params_.first_keys, args_.total(b)); ++j) {
        if (args_.Shows(b, j)) continue;
        Refuse(At(spec::kAttentionMask, b, j, 0), "; a ring keeps the first ", params_.first_keys,
               " tokens of a row, which must not be padding");
      }
    }
  }

  // Tokens that the mask hides may have any id.
  void CheckDocuments() {
    const Tensor& tensor = inputs_[spec::kDocumentIds];
    if (!tensor.present) return;
    args_.documents_batch_stride = KeyStride(spec::kDocumentIds);
    args_.documents = tensor.As<int64_t>();
    if (!reads_) return;
    for (int64_t b = 0; b < args_.batch; ++b) {
      const int64_t* ids = args_.documents + b * args_.documents_batch_stride;
      for (int64_t j = 0; j < args_.total(b); ++j) {
        if (ids[j] >= kReader || !args_.Shows(b, j)) continue;
        Refuse(At(spec::kDocumentIds, b, j, ids[j]),
               "; ids are -1 (reader), 0 (anchor) or more (documents)");
      }
    }
  }

  // Dimensions from the last one on are 1 or what the scores have.
  Bias<T> CheckBias(RotaryAttentionInput i) {
    const Tensor& tensor = inputs_[i];
    if (!tensor.present) return {};
    const std::vector<int64_t> wanted = {args_.batch, params_.num_heads, args_.length,
                                         args_.max_total()};
    const bool any_width = inputs_[spec::kCacheLength].present;
    const size_t rank = tensor.shape.size();
    bool fits = rank <= wanted.size();
    int64_t strides[4] = {};
    int64_t stride = 1;
    for (size_t d = 0; d < rank && fits; ++d) {
      const size_t at = wanted.size() - 1 - d;
      const int64_t size = tensor.shape[rank - 1 - d];
      fits = size == 1 || size == wanted[at] ||
             (d == 0 && any_width && (size > wanted[at] || !reads_));
      if (d == 0 && size != 1 && !reads_) args_.columns = std::min(args_.columns, size);
      strides[at] = size == 1 ? 0 : stride;
      stride *= size;
    }
    if (!fits) {
      Refuse(WithShape(i), " does not broadcast to ", ShapeText(wanted),
             " (batch, num_heads, length, ",
             any_width ? "largest cache_length + length or more" : KeysText(), ") of ",
             WithShape(spec::kQuery),
             (inputs_[spec::kPastKey].present ? " and " + WithShape(spec::kPastKey) : ""));
    }
    return {tensor.As<T>(), strides[0], strides[1], strides[2], strides[3]};
  }

  void CheckSinks() {
    const Tensor& tensor = inputs_[spec::kSinkLogits];
    if (!tensor.present) return;
    if (tensor.shape != std::vector<int64_t>{params_.num_heads}) {
      Refuse(WithShape(spec::kSinkLogits), " must be ", ShapeText({params_.num_heads}),
             ", one for each of the num_heads of ", WithShape(spec::kQuery));
    }
    args_.sinks = tensor.As<T>();
    for (int64_t h = 0; h < params_.num_heads; ++h) {
      const float sink = hwy::ConvertScalarTo<float>(args_.sinks[h]);
      if (std::isnan(sink) || sink == INFINITY) {
        Refuse(WithShape(spec::kSinkLogits), " has ", sink, " for head ", h,
               "; a sink is a finite number or -inf");
      }
    }
  }

  void CheckPositions() {
    const Tensor& positions = inputs_[spec::kPositionIds];
    if (!positions.present) return;
    if (params_.position_axes.empty()) {
      args_.positions_batch_stride = RowStride(spec::kPositionIds, args_.length, "length");
    } else {
      TakeAxes();
    }
    args_.positions = positions.As<int64_t>();
    if (!reads_) return;
    for (int64_t axis = 0; axis < args_.position_axes; ++axis) {
      for (int64_t b = 0; b < args_.batch; ++b) CheckPositionsOfRow(axis, b);
    }
  }

  // [axes, batch or 1, length], with as many axes as pairs ask for or more.
  void TakeAxes() {
    const auto& shape = inputs_[spec::kPositionIds].shape;
    const int64_t last =
        *std::max_element(params_.position_axes.begin(), params_.position_axes.end());
    if (shape.size() != 3 || (shape[1] != args_.batch && shape[1] != 1) ||
        shape[2] != args_.length) {
      Refuse(WithShape(spec::kPositionIds), " must be ",
             ShapeText({last + 1, args_.batch, args_.length}),
             " (axes, batch or 1, length) to fit ", spec::kAttrPositionAxes, " and ",
             WithShape(spec::kQuery));
    }
    if (shape[0] <= last) {
      Refuse(WithShape(spec::kPositionIds), " has ", shape[0], " axes, but ",
             spec::kAttrPositionAxes, " asks for axis ", last);
    }
    args_.position_axes = shape[0];
    args_.positions_axis_stride = shape[1] * shape[2];
    args_.positions_batch_stride = shape[1] == 1 ? 0 : shape[2];
  }

  // Tokens that the mask hides, and those of documents whose positions restart,
  // may stand anywhere.
  void CheckPositionsOfRow(int64_t axis, int64_t batch) const {
    const int64_t* positions =
        args_.positions + axis * args_.positions_axis_stride + batch * args_.positions_batch_stride;
    const int64_t* ids = params_.document_restart ? args_.documents : nullptr;
    if (ids != nullptr) ids += batch * args_.documents_batch_stride + args_.past(batch);
    int64_t first = -1;
    for (int64_t place = 0; place < args_.length; ++place) {
      if (!args_.Shows(batch, args_.past(batch) + place)) continue;
      if (ids != nullptr && ids[place] != kReader) continue;
      const int64_t p = positions[place];
      if (p < 0 || p > kMaxPosition) {
        Refuse(At(spec::kPositionIds, batch, place, p),
               params_.position_axes.empty() ? "" : Text(" on axis ", axis),
               "; positions must be between 0 and ", kMaxPosition);
      }
      if (first < 0) first = place;
      if (params_.positions_follow() && p - place != positions[first] - first) {
        Refuse(At(spec::kPositionIds, batch, place, p), ", but ", positions[first] + place - first,
               " would follow from position ", positions[first], " at place ", first,
               "; with more than one band or a raw cache the positions of a row's real tokens must "
               "be consecutive");
      }
    }
  }

  std::string At(RotaryAttentionInput i, int64_t batch, int64_t place, int64_t value) const {
    return Text(WithShape(i), " has ", value, " in row ", batch, " at place ", place);
  }

  const AttentionParams& params_;
  const Inputs& inputs_;
  const std::string& node_;
  const bool reads_;  // the host can read numbers
  AttentionArgs<T, C> args_;
  int64_t capacity_ = 0;  // rows of past_key and past_value
};

}  // namespace

template <typename T, typename C>
AttentionArgs<T, C> CheckInputs(const AttentionParams& params, const Inputs& inputs,
                                const std::string& node, Numbers numbers) {
  return Checker<T, C>(params, inputs, node, numbers).Run();
}

#define ROPE_CHECK_INPUTS(T, C)                                                         \
  template AttentionArgs<T, C> CheckInputs<T, C>(const AttentionParams&, const Inputs&, \
                                                 const std::string&, Numbers)
ROPE_CHECK_INPUTS(float, float);
ROPE_CHECK_INPUTS(float, Float16);
ROPE_CHECK_INPUTS(float, BFloat16);
ROPE_CHECK_INPUTS(float, int8_t);
ROPE_CHECK_INPUTS(Float16, Float16);
ROPE_CHECK_INPUTS(Float16, int8_t);
ROPE_CHECK_INPUTS(BFloat16, BFloat16);
ROPE_CHECK_INPUTS(BFloat16, int8_t);
#undef ROPE_CHECK_INPUTS

}  // namespace rope
