#include "rotary_run.h"

#include <vector>

#include "upload.h"

namespace rope::cuda {
namespace {

// Positions of all rows of angles, axis by axis.
std::vector<int64_t> PositionsOf(const RotaryPositions& positions, int64_t rows, int64_t length) {
  std::vector<int64_t> list;
  for (int64_t axis = 0; axis < positions.axes; ++axis) {
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t batch = row / length;
      const int64_t place = row % length;
      list.push_back(positions.given == nullptr ? positions.At(batch, place)
                                                : positions.AtAxis(batch, place, axis));
    }
  }
  return list;
}

}  // namespace

template <typename T>
bool RunRotaryOnDevice(const RotaryParams& params, const RotaryArgs<T>& args,
                       RotaryDevice<Element<T>>& device) {
  using E = Element<T>;
  RotaryCall<E> call;
  const RotaryTensor<T>* tensors[] = {&args.query, &args.key};
  for (int i = 0; i < 2; ++i) {
    const auto& from = tensors[i]->from;
    const auto& to = tensors[i]->to;
    call.heads[i] = tensors[i]->heads;
    call.from[i] = {reinterpret_cast<const E*>(from.data), from.batch_stride, from.head_stride,
                    from.row_stride};
    call.to[i] = {reinterpret_cast<E*>(to.data), to.batch_stride, to.head_stride, to.row_stride};
  }
  call.batch = args.batch;
  call.length = args.length;
  call.head_size = args.head_size;
  if (args.batch * args.length * call.all_heads() == 0) return true;
  const bool shared = args.positions.shared();
  call.rows = shared ? args.length : args.batch * args.length;
  call.row_batch_stride = shared ? 0 : args.length;
  call.inverse = params.inverse;
  call.rotation.pairs = static_cast<int64_t>(params.frequencies.size());
  call.rotation.offset = params.rotary_offset;
  call.rotation.interleaved = params.interleaved;
  call.rotation.exact_angles = params.exact_angles;
  call.rotation.gain = params.gain;
  Upload upload;
  upload.Add(params.frequencies, call.rotation.frequencies);
  if (!params.position_axes.empty()) upload.Add(params.position_axes, call.rotation.axes);
  upload.Add(PositionsOf(args.positions, call.rows, args.length), call.positions);
  upload.Reserve(call.rows * 2 * call.rotation.pairs, call.angles);
  if (!upload.Send(device)) return false;
  device.Launch(RotaryStep::kAngles, RotaryAngleKernel<E>::Blocks(call), call);
  device.Launch(RotaryStep::kTurn, RotaryKernel<E>::Blocks(call), call);
  return true;
}

template bool RunRotaryOnDevice(const RotaryParams&, const RotaryArgs<float>&,
                                RotaryDevice<float>&);
template bool RunRotaryOnDevice(const RotaryParams&, const RotaryArgs<Float16>&,
                                RotaryDevice<Half>&);
template bool RunRotaryOnDevice(const RotaryParams&, const RotaryArgs<BFloat16>&,
                                RotaryDevice<BFloat>&);

}  // namespace rope::cuda
