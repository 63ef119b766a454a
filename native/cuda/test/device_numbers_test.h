#ifndef ROPE_CUDA_TEST_DEVICE_NUMBERS_TEST_H_
#define ROPE_CUDA_TEST_DEVICE_NUMBERS_TEST_H_

namespace rope::test {

// Runs whose positions, lengths, masks and document ids lie on the device: launches that are
// repeated with other numbers, as a CUDA graph repeats them, frequencies that depend on how far a
// call reaches, and numbers that cannot be.
void TestDeviceNumbers();

}  // namespace rope::test

#endif  // ROPE_CUDA_TEST_DEVICE_NUMBERS_TEST_H_
