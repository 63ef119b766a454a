// RunAttention by the emulated kernels, in place of the CPU's: whatever tests
// that one, or is built on it, then tests these.
#include <atomic>
#include <vector>

#include "emulation.h"
#include "hidden_memory.h"

namespace rope {
namespace {

// Makes of a call one whose numbers lie on the device.
template <typename T, typename C>
class OnDevice {
 public:
  OnDevice(const AttentionParams& params, const AttentionArgs<T, C>& args) : args_(args) {
    const int64_t columns = args.max_total();
    const auto rows = [&](int64_t stride, int64_t row) {
      return static_cast<size_t>((stride == 0 ? 0 : (args.batch - 1) * stride) + row);
    };
    args_.mask = memory_.Take(args.mask, rows(args.mask_batch_stride, columns));
    args_.documents = memory_.Take(args.documents, rows(args.documents_batch_stride, columns));
    args_.positions = memory_.Take(
        args.positions, static_cast<size_t>((args.position_axes - 1) * args.positions_axis_stride) +
                            rows(args.positions_batch_stride, args.length));
    if (args.past_key.data != nullptr && !params.cross) {
      for (int64_t b = 0; b < args.batch; ++b) {
        lengths_.push_back(static_cast<int32_t>(args.past(b)));
      }
      args_.row_past = memory_.Take(lengths_.data(), lengths_.size());
      args_.max_past = args.present_rows - args.new_keys;
    }
    if (args.mask != nullptr || args.documents != nullptr || args.bias.data != nullptr ||
        args.bias_before_softcap.data != nullptr) {
      numbers_.columns = columns;
    }
  }

  static bool Takes(const AttentionParams& params, const AttentionArgs<T, C>& args) {
    return args.ring.rows == 0 && !(params.document_restart && args.documents != nullptr);
  }

  bool Run(const AttentionParams& params, cuda::test::EmulatedDevice<cuda::Element<T>>& device) {
    device.Hide(memory_);
    return cuda::RunOnDevice(params, args_, device, &numbers_);
  }

 private:
  AttentionArgs<T, C> args_;
  std::vector<int32_t> lengths_;
  cuda::DeviceNumbers numbers_;
  cuda::test::HiddenMemory memory_;
};

template <typename T, typename C>
bool Emulate(const AttentionParams& params, const AttentionArgs<T, C>& args, Host& host) {
  static std::atomic<int> runs{0};
  cuda::test::EmulatedDevice<cuda::Element<T>> device(host, runs++ % 3);
  if (cuda::test::g_device_numbers && OnDevice<T, C>::Takes(params, args)) {
    return OnDevice<T, C>(params, args).Run(params, device);
  }
  return cuda::RunOnDevice(params, args, device);
}

}  // namespace

#define ROPE_RUN_ATTENTION(T, C)                                                                  \
  bool RunAttention(const AttentionParams& params, const AttentionArgs<T, C>& args, Host& host) { \
    return Emulate(params, args, host);                                                           \
  }
ROPE_RUN_ATTENTION(float, float)
ROPE_RUN_ATTENTION(float, Float16)
ROPE_RUN_ATTENTION(float, BFloat16)
ROPE_RUN_ATTENTION(float, int8_t)
ROPE_RUN_ATTENTION(Float16, Float16)
ROPE_RUN_ATTENTION(Float16, int8_t)
ROPE_RUN_ATTENTION(BFloat16, BFloat16)
ROPE_RUN_ATTENTION(BFloat16, int8_t)
#undef ROPE_RUN_ATTENTION

}  // namespace rope
