#ifndef ROPE_CUDA_TEST_DEVICE_NUMBERS_TEST_H_
#define ROPE_CUDA_TEST_DEVICE_NUMBERS_TEST_H_

#include <cstddef>

#include "run.h"

namespace rope::test {

// A device, emulated or real, that can repeat what a run launches.
class RepeatingDevice {
 public:
  virtual ~RepeatingDevice() = default;
  // Memory that host and device both read and write.
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Free(void* memory) = 0;
  // Runs once, and waits for it. False: no memory.
  virtual bool Run(const AttentionParams& params, const AttentionArgs<float>& args,
                   const cuda::DeviceNumbers* numbers) = 0;
  // The same, and keeps what is launched in place of what it kept before; Repeat launches it again
  // and waits for it.
  virtual bool Record(const AttentionParams& params, const AttentionArgs<float>& args,
                      const cuda::DeviceNumbers& numbers) = 0;
  virtual void Repeat() = 0;
};

// Runs whose positions, lengths, masks and document ids lie on the device: launches that are
// repeated with other numbers, as a CUDA graph repeats them, frequencies that depend on how far a
// call reaches, and numbers that cannot be.
void TestDeviceNumbers(RepeatingDevice& device);

}  // namespace rope::test

#endif  // ROPE_CUDA_TEST_DEVICE_NUMBERS_TEST_H_
