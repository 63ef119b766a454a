// RunRotary by the emulated kernels, in place of the CPU's, as emulated_attention.cc does it.
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "emulation.h"
#include "rotary_run.h"

namespace rope {
namespace {

template <typename T>
class EmulatedRotary : public cuda::RotaryDevice<T> {
 public:
  EmulatedRotary(Host& host, int order) : host_(host), order_(order) {}
  ~EmulatedRotary() override {
    if (memory_ != nullptr) host_.Free(memory_);
  }
  EmulatedRotary(const EmulatedRotary&) = delete;
  EmulatedRotary& operator=(const EmulatedRotary&) = delete;

  void* Allocate(size_t bytes) override {
    memory_ = host_.Allocate(bytes);
    if (memory_ != nullptr) std::memset(memory_, 0xFF, bytes);  // NaN, so that leftovers show
    return memory_;
  }
  void Upload(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }

  void Launch(cuda::RotaryStep step, int64_t blocks, const cuda::RotaryCall<T>& call) override {
    cuda::WithKernel<T>(step, [&](auto k) {
      using K = decltype(k);
      std::vector<float> shared;
      for (int64_t i = 0; i < blocks; ++i) {
        cuda::test::EmulatedBlock block(cuda::test::InOrder(order_, i, blocks), K::kThreads, order_,
                                        shared);
        K::Run(block, call);
      }
    });
  }

 private:
  Host& host_;
  const int order_;
  void* memory_ = nullptr;
};

template <typename T>
bool Emulate(const RotaryParams& params, const RotaryArgs<T>& args, Host& host) {
  static std::atomic<int> runs{0};
  EmulatedRotary<cuda::Element<T>> device(host, runs++ % 3);
  return cuda::RunRotaryOnDevice(params, args, device);
}

}  // namespace

bool RunRotary(const RotaryParams& params, const RotaryArgs<float>& args, Host& host) {
  return Emulate(params, args, host);
}
bool RunRotary(const RotaryParams& params, const RotaryArgs<Float16>& args, Host& host) {
  return Emulate(params, args, host);
}
bool RunRotary(const RotaryParams& params, const RotaryArgs<BFloat16>& args, Host& host) {
  return Emulate(params, args, host);
}

}  // namespace rope
