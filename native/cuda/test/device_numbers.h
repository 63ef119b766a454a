// Calls of the kernel tests with their positions, lengths, masks and document ids on the device.
#ifndef ROPE_CUDA_TEST_DEVICE_NUMBERS_H_
#define ROPE_CUDA_TEST_DEVICE_NUMBERS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention.h"

namespace rope::cuda::test {

// Whether every call that can have them there does.
inline bool g_device_numbers = false;

template <typename T, typename C>
bool TakesDeviceNumbers(const AttentionParams& params, const AttentionArgs<T, C>& args) {
  return args.ring.rows == 0 && !(params.document_restart && args.documents != nullptr);
}

// The call with the copies that take(numbers, count) makes; null stays null.
template <typename T, typename C, typename Take>
AttentionArgs<T, C> WithDeviceNumbers(const AttentionParams& params,
                                      const AttentionArgs<T, C>& args, const Take& take) {
  AttentionArgs<T, C> there = args;
  const int64_t columns = args.max_total();
  const auto rows = [&](int64_t stride, int64_t row) {
    return static_cast<size_t>((args.batch - 1) * stride + row);
  };
  there.mask = take(args.mask, rows(args.mask_batch_stride, columns));
  there.documents = take(args.documents, rows(args.documents_batch_stride, columns));
  there.positions = take(
      args.positions, static_cast<size_t>((args.position_axes - 1) * args.positions_axis_stride) +
                          rows(args.positions_batch_stride, args.length));
  if (args.past_key.data != nullptr && !params.cross) {
    std::vector<int32_t> lengths;
    for (int64_t b = 0; b < args.batch; ++b) lengths.push_back(static_cast<int32_t>(args.past(b)));
    there.row_past = take(static_cast<const int32_t*>(lengths.data()), lengths.size());
    there.max_past = args.present_rows - args.new_keys;
  }
  if (args.mask != nullptr || args.documents != nullptr || args.bias.data != nullptr ||
      args.bias_before_softcap.data != nullptr) {
    there.columns = columns;
  }
  return there;
}

}  // namespace rope::cuda::test

#endif  // ROPE_CUDA_TEST_DEVICE_NUMBERS_H_
