#include "rotary_inputs.h"

#include <algorithm>

#include "attribute_values.h"
#include "refuse.h"

namespace rope {
namespace {

using spec::rotary::RotaryInput;
namespace names = spec::rotary;

TensorFormat ReadFormat(const NodeInfo& node) {
  const std::string format =
      node.GetString(names::kAttrTensorFormat).value_or(names::kDefaultTensorFormat);
  if (format == "bshd") return TensorFormat::kBshd;
  if (format == "sbhd") return TensorFormat::kSbhd;
  if (format == "bhsd") return TensorFormat::kBhsd;
  if (format == "thd") return TensorFormat::kThd;
  node.RefuseAttribute(names::kAttrTensorFormat, " is '", format,
                       "'; it must be 'bshd', 'sbhd', 'bhsd' or 'thd'");
}

std::vector<int64_t> ReadAxes(const NodeInfo& node, size_t pairs) {
  const auto axes = node.GetInts(names::kAttrPositionAxes).value_or(std::vector<int64_t>{});
  if (axes.empty()) return axes;
  if (axes.size() != pairs) {
    node.RefuseAttribute(names::kAttrPositionAxes, " has ", axes.size(), " values, ",
                         names::kAttrFrequencies, " has ", pairs);
  }
  CheckAxes(node, axes);
  if (!node.HasInput(names::kPositionIds)) {
    node.RefuseAttribute(names::kAttrPositionAxes, " needs input position_ids");
  }
  return axes;
}

// What says positions, once and not twice.
void CheckSources(const NodeInfo& node, TensorFormat format) {
  const bool given = node.HasInput(names::kPositionIds);
  const bool bounds = node.HasInput(names::kCuSeqlens);
  if (given && (bounds || node.HasInput(names::kSeqlenOffsets))) {
    node.Refuse("position_ids says all positions; it goes without cu_seqlens and seqlen_offsets");
  }
  if (format == TensorFormat::kThd && !given && !bounds) {
    node.RefuseAttribute(names::kAttrTensorFormat, " 'thd' needs input cu_seqlens or position_ids");
  }
  if (format != TensorFormat::kThd && bounds) {
    node.Refuse(
        "cu_seqlens needs tensor_format 'thd'; other formats have a dimension of sequences");
  }
}

template <typename T>
class Checker {
 public:
  Checker(const RotaryParams& params, RotaryInputs& inputs, const std::string& node)
      : params_(params), inputs_(inputs), node_(node) {}

  RotaryArgs<T> Run() {
    CheckSizes();
    CheckQuery();
    CheckKey();
    CheckPositions();
    CheckBounds();
    CheckOffsets();
    TakeReach();
    return args_;
  }

 private:
  template <typename... Parts>
  [[noreturn]] void Refuse(const Parts&... parts) const {
    RefuseNode(node_, parts...);
  }
  std::string WithShape(RotaryInput i) const {
    return names::kInputNames[i] + (" " + ShapeText(inputs_[i].shape));
  }
  std::string At(RotaryInput i, size_t place, int64_t value) const {
    return Text(WithShape(i), " has ", value, " at place ", place);
  }

  void CheckSizes() const {
    for (int i = 0; i < names::kInputCount; ++i) {
      const auto input = static_cast<RotaryInput>(i);
      if (IsCountable(inputs_[input].shape)) continue;
      Refuse(WithShape(input), " has no elements, but dimensions that are too large together");
    }
  }

  bool packed() const { return params_.format == TensorFormat::kThd; }
  size_t batch_dim() const { return params_.format == TensorFormat::kSbhd ? 1 : 0; }
  size_t head_dim() const { return packed() || params_.format == TensorFormat::kBhsd ? 1 : 2; }
  size_t length_dim() const {
    if (packed() || params_.format == TensorFormat::kSbhd) return 0;
    return params_.format == TensorFormat::kBhsd ? 2 : 1;
  }

  RotaryTensor<T> Heads(RotaryInput i) const {
    if (!inputs_[i].present) Refuse("input ", names::kInputNames[i], " is missing");
    const auto& shape = inputs_[i].shape;
    const size_t rank = packed() ? 3 : 4;
    if (shape.size() != rank) {
      Refuse(WithShape(i), " must have ", rank, " dimensions, as its tensor_format has");
    }
    RotaryTensor<T> tensor;
    tensor.heads = shape[head_dim()];
    tensor.from = RowsOf(params_.format, inputs_[i].template As<T>(), shape);
    return tensor;
  }

  void CheckQuery() {
    args_.query = Heads(names::kQuery);
    const auto& shape = inputs_[names::kQuery].shape;
    args_.batch = packed() ? 1 : shape[batch_dim()];
    args_.length = shape[length_dim()];
    args_.head_size = shape.back();
    if (params_.rotary_dim() > args_.head_size - params_.rotary_offset) {
      Refuse(params_.frequencies.size(), " frequencies from channel ", params_.rotary_offset,
             " on rotate channels beyond the head size ", args_.head_size, " of ",
             WithShape(names::kQuery));
    }
  }

  void CheckKey() {
    if (!inputs_[names::kKey].present) return;
    args_.key = Heads(names::kKey);
    auto wanted = inputs_[names::kQuery].shape;
    wanted[head_dim()] = args_.key.heads;
    if (inputs_[names::kKey].shape != wanted) {
      Refuse(WithShape(names::kKey), " must be ", ShapeText(wanted), " to fit ",
             WithShape(names::kQuery), ", whatever its number of heads");
    }
  }

  // [batch or 1, length], or [tokens]; with axes of positions, these in front.
  void CheckPositions() {
    const Tensor& tensor = inputs_[names::kPositionIds];
    if (!tensor.present) return;
    RotaryPositions& positions = args_.positions;
    const bool several = !params_.position_axes.empty();
    std::vector<int64_t> wanted;
    if (several) wanted.push_back(WantedAxes());
    if (!packed()) wanted.push_back(args_.batch);
    wanted.push_back(args_.length);
    auto shape = tensor.shape;
    const size_t batch = several ? 1 : 0;
    if (shape.size() == wanted.size()) {
      if (several && shape[0] > wanted[0]) wanted[0] = shape[0];
      if (!packed() && shape[batch] == 1) wanted[batch] = 1;
    }
    if (shape != wanted) {
      Refuse(WithShape(names::kPositionIds), " must be ", ShapeText(wanted), " to fit ",
             WithShape(names::kQuery),
             several ? Text(", with an axis for each that ", names::kAttrPositionAxes, " names")
                     : std::string());
    }
    positions.given = tensor.As<int64_t>();
    positions.axes = several ? shape[0] : 1;
    positions.given_axis_stride = packed() ? args_.length : shape[batch] * args_.length;
    positions.given_batch_stride = packed() || shape[batch] == 1 ? 0 : args_.length;
    const size_t count = static_cast<size_t>(positions.axes * positions.given_axis_stride);
    for (size_t i = 0; i < count; ++i) {
      const int64_t p = positions.given[i];
      if (p < -kMaxPosition || p > kMaxPosition) {
        Refuse(At(names::kPositionIds, i, p), "; positions go from ", -kMaxPosition, " to ",
               kMaxPosition);
      }
      inputs_.reach = std::max(inputs_.reach, p + 1);
    }
  }

  int64_t WantedAxes() const {
    return 1 + *std::max_element(params_.position_axes.begin(), params_.position_axes.end());
  }

  void CheckBounds() {
    const Tensor& tensor = inputs_[names::kCuSeqlens];
    if (!tensor.present) return;
    if (tensor.shape.size() != 1 || tensor.shape[0] < 1) {
      Refuse(WithShape(names::kCuSeqlens), " must have one dimension, sequences + 1");
    }
    RotaryPositions& positions = args_.positions;
    positions.bounds = tensor.As<int32_t>();
    positions.sequences = tensor.shape[0] - 1;
    const int32_t* bounds = positions.bounds;
    if (bounds[0] != 0) Refuse(At(names::kCuSeqlens, 0, bounds[0]), "; it must begin with 0");
    for (int64_t s = 1; s <= positions.sequences; ++s) {
      if (bounds[s] < bounds[s - 1]) {
        Refuse(At(names::kCuSeqlens, static_cast<size_t>(s), bounds[s]), " after ", bounds[s - 1],
               "; it must not descend");
      }
    }
    if (bounds[positions.sequences] != args_.length) {
      Refuse(WithShape(names::kCuSeqlens), " ends with ", bounds[positions.sequences], ", but ",
             WithShape(names::kQuery), " has ", args_.length, " tokens");
    }
  }

  // The tokens of a row, or of a packed sequence.
  int64_t LengthOf(int64_t sequence) const {
    const int32_t* bounds = args_.positions.bounds;
    return bounds == nullptr ? args_.length : bounds[sequence + 1] - bounds[sequence];
  }

  void CheckOffsets() {
    RotaryPositions& positions = args_.positions;
    if (positions.given != nullptr) return;
    const int64_t sequences = packed() ? positions.sequences : args_.batch;
    const Tensor& tensor = inputs_[names::kSeqlenOffsets];
    if (tensor.present) {
      const bool one = tensor.shape == std::vector<int64_t>{1};
      if (!one && tensor.shape != std::vector<int64_t>{sequences}) {
        Refuse(WithShape(names::kSeqlenOffsets), " must be ", ShapeText({sequences}),
               " or [1] to fit ", WithShape(packed() ? names::kCuSeqlens : names::kQuery));
      }
      positions.offsets = tensor.As<int32_t>();
      positions.offset_stride = one ? 0 : 1;
    }
    for (int64_t s = 0; s < sequences; ++s) {
      const int64_t offset =
          positions.offsets == nullptr ? 0 : positions.offsets[s * positions.offset_stride];
      const int64_t end = offset + LengthOf(s);
      if (offset < 0 || end > kMaxPosition) {
        Refuse(At(names::kSeqlenOffsets, static_cast<size_t>(s * positions.offset_stride), offset),
               "; positions go from 0 to ", kMaxPosition);
      }
      if (LengthOf(s) > 0) inputs_.reach = std::max(inputs_.reach, end);
    }
  }

  // What the caller says goes before what the positions say.
  void TakeReach() {
    const Tensor& tensor = inputs_[names::kMaxSeqlen];
    if (!tensor.present) return;
    int64_t count = 1;
    for (const int64_t dim : tensor.shape) count *= dim;
    if (count != 1) Refuse(WithShape(names::kMaxSeqlen), " must have one element");
    inputs_.reach = *tensor.As<int32_t>();
    if (inputs_.reach < 0) {
      Refuse(WithShape(names::kMaxSeqlen), " is ", inputs_.reach, "; it must not be negative");
    }
  }

  const RotaryParams& params_;
  RotaryInputs& inputs_;
  const std::string& node_;
  RotaryArgs<T> args_;
};

}  // namespace

RotaryParams ReadRotaryAttributes(const NodeInfo& node) {
  CheckSpecVersion(node);
  RotaryParams params;
  params.format = ReadFormat(node);
  params.frequencies = FiniteFloats(node, names::kAttrFrequencies);
  if (params.frequencies.empty()) {
    node.RefuseAttribute(names::kAttrFrequencies, " has no values; nothing would be rotated");
  }
  params.gain = FiniteFloat(node, names::kAttrGain, names::kDefaultGain);
  params.interleaved = Flag(node, names::kAttrInterleaved, names::kDefaultInterleaved);
  params.rotary_offset = NonNegative(node, names::kAttrRotaryOffset, names::kDefaultRotaryOffset);
  params.inverse = Flag(node, names::kAttrInverse, names::kDefaultInverse);
  params.exact_angles = Flag(node, names::kAttrExactAngles, names::kDefaultExactAngles);
  params.position_axes = ReadAxes(node, params.frequencies.size());
  CheckSources(node, params.format);
  if (node.HasInput(names::kKey) != node.HasOutput(names::kRotatedKey)) {
    node.Refuse("key and rotated_key must be given together");
  }
  return params;
}

template <typename T>
RotaryArgs<T> CheckRotaryInputs(const RotaryParams& params, RotaryInputs& inputs,
                                const std::string& node) {
  return Checker<T>(params, inputs, node).Run();
}

template RotaryArgs<float> CheckRotaryInputs(const RotaryParams&, RotaryInputs&,
                                             const std::string&);
template RotaryArgs<Float16> CheckRotaryInputs(const RotaryParams&, RotaryInputs&,
                                               const std::string&);
template RotaryArgs<BFloat16> CheckRotaryInputs(const RotaryParams&, RotaryInputs&,
                                                const std::string&);

}  // namespace rope
