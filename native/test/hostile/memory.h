// The memory of one tensor: nothing stands behind its last byte, so that AddressSanitizer sees who
// goes there, and what stands before the first is watched.
#ifndef ROPE_HOSTILE_MEMORY_H_
#define ROPE_HOSTILE_MEMORY_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

namespace rope::hostile {

class Memory {
 public:
  Memory(size_t bytes, size_t front, uint8_t fill)
      : front_(front),
        bytes_(bytes),
        // malloc(0) may give null; the op may not touch that either.
        block_(static_cast<uint8_t*>(std::malloc(front + bytes)), std::free) {
    std::fill_n(block_.get(), front, kFront);
    std::fill_n(data(), bytes, fill);
  }

  uint8_t* data() const { return block_.get() + front_; }
  size_t size() const { return bytes_; }
  size_t front() const { return front_; }
  std::vector<uint8_t> Copy() const { return {data(), data() + bytes_}; }
  bool FrontIsWhole() const {
    return std::all_of(block_.get(), block_.get() + front_, [](uint8_t b) { return b == kFront; });
  }

 private:
  static constexpr uint8_t kFront = 0x5B;

  size_t front_, bytes_;
  std::unique_ptr<uint8_t, void (*)(void*)> block_;
};

}  // namespace rope::hostile

#endif  // ROPE_HOSTILE_MEMORY_H_
