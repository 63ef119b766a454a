// All that a run needs on the device beside its tensors, in one piece of memory
// and one copy.
#ifndef ROPE_CUDA_UPLOAD_H_
#define ROPE_CUDA_UPLOAD_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <vector>

namespace rope::cuda {

class Upload {
 public:
  // Puts values on the device; `where` becomes their address when Send is called.
  template <typename V, typename To>
  void Add(const std::vector<V>& values, To*& where) {
    static_assert(std::is_same_v<std::remove_const_t<To>, V>);
    const size_t at = Aligned(bytes_.size(), 16);
    bytes_.resize(at + values.size() * sizeof(V));
    if (!values.empty()) std::memcpy(bytes_.data() + at, values.data(), values.size() * sizeof(V));
    settle_.push_back(
        [at, &where](char* base, size_t) { where = reinterpret_cast<To*>(base + at); });
  }

  // Memory that the kernels write, likewise.
  template <typename V>
  void Reserve(int64_t count, V*& where) {
    const size_t at = reserved_;
    reserved_ += Aligned(static_cast<size_t>(count) * sizeof(V), kAlignment);
    settle_.push_back([at, &where](char* base, size_t added) {
      where = reinterpret_cast<V*>(base + added + at);
    });
  }

  // Makes another pointer, which only reads, that of memory reserved before.
  template <typename V>
  void Share(V*& reserved, const V*& where) {
    settle_.push_back([&](char*, size_t) { where = reserved; });
  }

  // False: the device has no memory.
  template <typename Device>
  bool Send(Device& device) {
    const size_t added = Aligned(bytes_.size(), kAlignment);
    auto* base = static_cast<char*>(device.Allocate(added + reserved_));
    if (base == nullptr) return false;
    device.Upload(base, bytes_.data(), bytes_.size());
    for (const auto& settle : settle_) settle(base, added);
    return true;
  }

 private:
  // What the kernels write begins where device allocations do.
  static constexpr size_t kAlignment = 256;

  static size_t Aligned(size_t bytes, size_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
  }

  std::vector<char> bytes_;
  size_t reserved_ = 0;
  std::vector<std::function<void(char*, size_t)>> settle_;
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_UPLOAD_H_
