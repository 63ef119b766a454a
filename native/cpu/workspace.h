// Memory and threads of one run, on top of the host.
#ifndef ROPE_WORKSPACE_H_
#define ROPE_WORKSPACE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

#include "attention.h"

namespace rope {

inline constexpr size_t kAlignment = 64;  // a cache line, and the longest vector

// A run of floats from the host, aligned for vectors, freed at the end of scope.
class ScratchFloats {
 public:
  ScratchFloats(Host& host, size_t count) : host_(host) {
    if (count == 0) return;
    memory_ = host.Allocate(count * sizeof(float) + kAlignment);
    if (memory_ == nullptr) return;
    const auto address = reinterpret_cast<uintptr_t>(memory_);
    data_ = reinterpret_cast<float*>((address + kAlignment - 1) / kAlignment * kAlignment);
  }
  ~ScratchFloats() {
    if (memory_ != nullptr) host_.Free(memory_);
  }
  ScratchFloats(const ScratchFloats&) = delete;
  ScratchFloats& operator=(const ScratchFloats&) = delete;

  float* data() const { return data_; }

 private:
  Host& host_;
  void* memory_ = nullptr;
  float* data_ = nullptr;
};

// Working memory of tasks that run at the same time: as many blocks as there
// are threads, whose number no one tells us. Blocks are reused from task to task.
class WorkspacePool {
 public:
  WorkspacePool(Host& host, size_t floats_per_block) : host_(host), floats_(floats_per_block) {}
  ~WorkspacePool() {
    while (free_ != nullptr) {
      Block* next = free_->next;
      delete free_;
      free_ = next;
    }
  }
  WorkspacePool(const WorkspacePool&) = delete;
  WorkspacePool& operator=(const WorkspacePool&) = delete;

  struct Block {
    Block(Host& host, size_t floats) : floats(host, floats) {}
    ScratchFloats floats;
    Block* next = nullptr;
  };

  // A block for the length of one task; data() is null when memory ran out.
  class Lease {
   public:
    explicit Lease(WorkspacePool& pool) : pool_(pool), block_(pool.Take()) {}
    ~Lease() { pool_.Give(block_); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    float* data() const { return block_ == nullptr ? nullptr : block_->floats.data(); }

   private:
    WorkspacePool& pool_;
    Block* block_;
  };

  bool exhausted() const { return exhausted_.load(); }

 private:
  Block* Take() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (free_ != nullptr) {
        Block* block = free_;
        free_ = block->next;
        return block;
      }
    }
    Block* block = new (std::nothrow) Block(host_, floats_);
    if (block == nullptr || block->floats.data() == nullptr) {
      exhausted_ = true;
      delete block;
      return nullptr;
    }
    return block;
  }

  void Give(Block* block) {
    if (block == nullptr) return;
    std::lock_guard<std::mutex> lock(mutex_);
    block->next = free_;
    free_ = block;
  }

  Host& host_;
  const size_t floats_;
  std::mutex mutex_;
  Block* free_ = nullptr;
  std::atomic<bool> exhausted_{false};
};

// Runs body(i) for each i < count, on this thread if there is one or they are `small`.
template <typename Body>
void ForEach(Host& host, size_t count, const Body& body, bool small = false) {
  if (count == 1 || small) {
    for (size_t i = 0; i < count; ++i) body(i);
    return;
  }
  host.ParallelFor(
      count, [](void* data, size_t i) { (*static_cast<const Body*>(data))(i); },
      const_cast<Body*>(&body));
}

}  // namespace rope

#endif  // ROPE_WORKSPACE_H_
