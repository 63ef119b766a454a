// The emulated device as one that repeats what a run launches.
#ifndef ROPE_CUDA_TEST_RECORDER_H_
#define ROPE_CUDA_TEST_RECORDER_H_

#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "device_numbers_test.h"
#include "emulation.h"
#include "fixture.h"

namespace rope::test {

// Keeps what a run asks of the device, and asks it again.
class Recorder : public cuda::test::EmulatedDevice<float> {
 public:
  using EmulatedDevice::EmulatedDevice;

  void Upload(void* to, const void* from, size_t bytes) override {
    const auto* begin = static_cast<const char*>(from);
    Do([this, to, content = std::vector<char>(begin, begin + bytes)] {
      EmulatedDevice::Upload(to, content.data(), content.size());
    });
  }
  void Copy(void* to, const void* from, size_t bytes) override {
    Do([=] { EmulatedDevice::Copy(to, from, bytes); });
  }
  void Launch(cuda::Kernel kernel, int64_t blocks, const cuda::Call<float>& call) override {
    Do([=] { EmulatedDevice::Launch(kernel, blocks, call); });
  }
  void LaunchPlan(int64_t blocks, const cuda::PlanCall<float>& plan) override {
    Do([=] { EmulatedDevice::LaunchPlan(blocks, plan); });
  }

  void Repeat() const {
    for (const auto& step : steps_) step();
  }

 private:
  void Do(std::function<void()> step) {
    step();
    steps_.push_back(std::move(step));
  }

  std::vector<std::function<void()>> steps_;
};

class EmulatedRepeatingDevice : public RepeatingDevice {
 public:
  void* Allocate(size_t bytes) override { return std::malloc(bytes); }
  void Free(void* memory) override { std::free(memory); }
  bool Run(const AttentionParams& params, const AttentionArgs<float>& args,
           const cuda::DeviceNumbers* numbers) override {
    cuda::test::EmulatedDevice<float> device(host_, 0);
    return cuda::RunOnDevice(params, args, device, numbers);
  }
  bool Record(const AttentionParams& params, const AttentionArgs<float>& args,
              const cuda::DeviceNumbers& numbers) override {
    recorder_ = std::make_unique<Recorder>(host_, 0);
    return cuda::RunOnDevice(params, args, *recorder_, &numbers);
  }
  void Repeat() override { recorder_->Repeat(); }

 private:
  TestHost host_{1};
  std::unique_ptr<Recorder> recorder_;
};

}  // namespace rope::test

#endif  // ROPE_CUDA_TEST_RECORDER_H_
