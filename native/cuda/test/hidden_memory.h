// Memory of a device that the host must not read.
#ifndef ROPE_CUDA_TEST_HIDDEN_MEMORY_H_
#define ROPE_CUDA_TEST_HIDDEN_MEMORY_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace rope::cuda::test {

// Numbers that can be read while they are shown; at any other time reading them ends the process.
class HiddenMemory {
 public:
  HiddenMemory() {
    void* memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    memory_ = static_cast<char*>(memory);
  }
  ~HiddenMemory() { munmap(memory_, kBytes); }
  HiddenMemory(const HiddenMemory&) = delete;
  HiddenMemory& operator=(const HiddenMemory&) = delete;

  // Takes a copy of some numbers; null stays null. Before the memory is first hidden.
  template <typename V>
  const V* Take(const V* numbers, size_t count) {
    if (numbers == nullptr) return nullptr;
    V* const copy = reinterpret_cast<V*>(memory_ + used_);
    used_ += (count * sizeof(V) + kAlignment - 1) / kAlignment * kAlignment;
    if (used_ > kBytes) std::abort();
    std::memcpy(copy, numbers, count * sizeof(V));
    return copy;
  }
  void Hide() { mprotect(memory_, kBytes, PROT_NONE); }
  void Show() { mprotect(memory_, kBytes, PROT_READ | PROT_WRITE); }

 private:
  static constexpr size_t kBytes = size_t{1} << 26, kAlignment = 64;
  char* memory_ = nullptr;
  size_t used_ = 0;
};

}  // namespace rope::cuda::test

#endif  // ROPE_CUDA_TEST_HIDDEN_MEMORY_H_
