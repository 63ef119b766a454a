// The kernels on the host, one thread after the other between barriers. Threads
// and blocks run in several orders, so that a step that reads what another thread
// of the same step writes gives different results in different runs.
#ifndef ROPE_CUDA_TEST_EMULATION_H_
#define ROPE_CUDA_TEST_EMULATION_H_

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

#include "attention.h"
#include "run.h"

namespace rope::cuda::test {

// An order of [0, count): 0 ascending, 1 descending, 2 the odd ones first.
constexpr int64_t InOrder(int order, int64_t i, int64_t count) {
  if (order == 0) return i;
  if (order == 1) return count - 1 - i;
  const int64_t odd = count / 2;
  return i < odd ? 2 * i + 1 : 2 * (i - odd);
}

// Watches for what a GPU would do in any order: 16 bytes of shared memory that are
// written while others may still read or write them, or read before a barrier
// has shown what was written.
class Watch {
 public:
  explicit Watch(size_t bytes) : pieces_(bytes / 16 + 1) {}

  [[noreturn]] static void Fail(const char* what) {
    std::fprintf(stderr, "emulated block: %s\n", what);
    std::abort();
  }

  void Barrier() { ++now_; }

  void Write(int thread, int place, bool copies) {
    Piece& piece = At(place);
    if (piece.copies) Fail("writes where a copy is on its way");
    if (piece.written == now_ && piece.writer != thread) Fail("two threads write in one step");
    if (piece.read == now_ && piece.reader != thread / 32) Fail("writes what is still read");
    piece.written = now_;
    piece.writer = thread;
    piece.copies = copies;
  }
  void Arrive(int thread, int place) {
    At(place) = {now_, thread, At(place).read, At(place).reader, false};
  }
  void Read(int warp, int place) {
    Piece& piece = At(place);
    if (piece.copies) Fail("reads what is on its way");
    if (piece.written == now_) Fail("reads what no barrier has shown");
    // Two warps read: whoever writes is another one.
    piece.reader = piece.read == now_ && piece.reader != warp ? -1 : warp;
    piece.read = now_;
  }

 private:
  struct Piece {
    int64_t written = -1;
    int writer = -1;
    int64_t read = -1;
    int reader = -1;  // the warp; -1: several
    bool copies = false;
  };
  Piece& At(int place) {
    if (place % 16 != 0) Fail("16 bytes that are not aligned");
    return pieces_.at(static_cast<size_t>(place / 16));
  }

  int64_t now_ = 0;
  std::vector<Piece> pieces_;
};

// Steps in which some thread said yes, which are those that meet non-finite numbers.
inline std::atomic<int64_t> g_non_finite_steps{0};

class EmulatedBlock {
 public:
  EmulatedBlock(int64_t index, int threads, int order, std::vector<float>& shared)
      : index_(index),
        threads_(threads),
        order_(order),
        shared_(shared.data()),
        watch_(shared.size() * sizeof(float)),
        copies_(static_cast<size_t>(threads)) {}

  template <typename State>
  class PerThread {
   public:
    PerThread() : states_(kMostThreads) {}
    State& operator[](int thread) { return states_[static_cast<size_t>(thread)]; }

   private:
    static constexpr size_t kMostThreads = 128;
    std::vector<State> states_;
  };

  int64_t index() const { return index_; }
  float* shared() const { return shared_; }

  template <typename Step>
  void ForThreads(const Step& step) {
    Lanes(step);
    Barrier();
  }

  template <typename Step>
  bool AnyThread(const Step& step) {
    bool any = false;
    ForThreads([&](int thread) { any = step(thread) || any; });
    g_non_finite_steps += any;
    return any;
  }

  void Barrier() { watch_.Barrier(); }

  template <typename Step>
  void Lanes(const Step& step) {
    for (int i = 0; i < threads_; ++i) step(static_cast<int>(InOrder(order_, i, threads_)));
  }

  // Copies are made when their thread awaits them, or at once: a reader that does
  // not wait finds something else in one of the orders.
  void CopyAsync(int thread, int place, const void* from, bool there) {
    watch_.Write(thread, place, true);
    Copy copy{place, there ? from : nullptr};
    if (order_ == 2) copy.Make(shared_);
    copies_[static_cast<size_t>(thread)].groups.back().push_back(copy);
  }
  void EndCopies() {
    for (Copies& copies : copies_) copies.groups.emplace_back();
  }
  template <int kLeft>
  void AwaitCopies() {
    for (int thread = 0; thread < threads_; ++thread) {
      auto& groups = copies_[static_cast<size_t>(thread)].groups;
      while (groups.size() > kLeft + 1) {
        for (const Copy& copy : groups.front()) {
          if (order_ != 2) copy.Make(shared_);
          watch_.Arrive(thread, copy.place);
        }
        groups.pop_front();
      }
    }
  }
  void Store(int thread, int place, const uint32_t* words) {
    watch_.Write(thread, place, false);
    std::memcpy(reinterpret_cast<char*>(shared_) + place, words, 16);
  }

  template <bool kTransposed, typename Place, typename Out>
  void LoadMatrices(const Place& place, const Out& out) {
    for (int warp = 0; warp < threads_; warp += 32) {
      for (int matrix = 0; matrix < 4; ++matrix) {
        uint16_t numbers[8][8];
        uint32_t banks = 0;
        for (int row = 0; row < 8; ++row) {
          const int at = place(warp + matrix * 8 + row);
          watch_.Read(warp / 32, at);
          banks |= 1u << at / 16 % 8;
          std::memcpy(numbers[row], reinterpret_cast<const char*>(shared_) + at, 16);
        }
        if (banks != 0xff) Watch::Fail("the rows of a matrix share banks");
        for (int t = 0; t < 32; ++t) {
          const int near = t / 4, far = t % 4 * 2;
          const uint32_t low = kTransposed ? numbers[far][near] : numbers[near][far];
          const uint32_t high = kTransposed ? numbers[far + 1][near] : numbers[near][far + 1];
          out(warp + t)[matrix] = low | high << 16;
        }
      }
    }
  }

  // Operands as PTX lays them out for mma.m16n8k16: pairs, the first number in the
  // low half. Thread t of a warp has of a the rows t / 4 and + 8 and the pairs of
  // columns from 2 (t % 4) and + 8, of b those rows of column t / 4, and of c the
  // rows t / 4 and + 8 of columns 2 (t % 4) and + 1.
  template <typename T, typename C, typename A, typename B>
  void Mma(const C& c, const A& a, const B& b) {
    const auto number = [](uint32_t pair, int i) {
      return ToFloat(T{static_cast<uint16_t>(i == 0 ? pair : pair >> 16)});
    };
    for (int warp = 0; warp < threads_; warp += 32) {
      float rows[16][16], columns[16][8];
      for (int t = 0; t < 32; ++t) {
        for (int i = 0; i < 2; ++i) {
          const int at = t % 4 * 2 + i;
          rows[t / 4][at] = number(a(warp + t, 0), i);
          rows[t / 4 + 8][at] = number(a(warp + t, 1), i);
          rows[t / 4][at + 8] = number(a(warp + t, 2), i);
          rows[t / 4 + 8][at + 8] = number(a(warp + t, 3), i);
          columns[at][t / 4] = number(b(warp + t, 0), i);
          columns[at + 8][t / 4] = number(b(warp + t, 1), i);
        }
      }
      for (int t = 0; t < 32; ++t) {
        for (int i = 0; i < 4; ++i) {
          float sum = 0.0f;
          for (int k = 0; k < 16; ++k) {
            sum += rows[t / 4 + i / 2 * 8][k] * columns[k][t % 4 * 2 + i % 2];
          }
          c(warp + t, i) += sum;
        }
      }
    }
  }

  template <int kLanes, int kCount, typename Values, typename Combine>
  void Reduce(const Values& values, const Combine& combine) {
    std::vector<float> before(static_cast<size_t>(threads_));
    for (int i = 0; i < kCount; ++i) {
      for (int lane = 1; lane < kLanes; lane *= 2) {
        for (int t = 0; t < threads_; ++t) before[static_cast<size_t>(t)] = values(t)[i];
        for (int t = 0; t < threads_; ++t) {
          values(t)[i] =
              combine(before[static_cast<size_t>(t)], before[static_cast<size_t>(t ^ lane)]);
        }
      }
    }
  }

 private:
  struct Copy {
    int place;
    const void* from;  // null: zeros

    void Make(float* shared) const {
      char* to = reinterpret_cast<char*>(shared) + place;
      if (from == nullptr) {
        std::memset(to, 0, 16);
      } else {
        std::memcpy(to, from, 16);
      }
    }
  };
  struct Copies {
    std::deque<std::vector<Copy>> groups{1};  // the last one is not closed
  };

  const int64_t index_;
  const int threads_;
  const int order_;
  float* const shared_;
  Watch watch_;
  std::vector<Copies> copies_;
};

// A device whose memory is the kernel test's host's.
template <typename T>
class EmulatedDevice : public Device<T> {
 public:
  EmulatedDevice(Host& host, int order) : host_(host), order_(order) {}
  ~EmulatedDevice() override {
    if (memory_ != nullptr) host_.Free(memory_);
  }
  EmulatedDevice(const EmulatedDevice&) = delete;
  EmulatedDevice& operator=(const EmulatedDevice&) = delete;

  void* Allocate(size_t bytes) override {
    memory_ = host_.Allocate(bytes);
    if (memory_ != nullptr) std::memset(memory_, 0xFF, bytes);  // NaN, so that leftovers show
    return memory_;
  }
  void Upload(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void Copy(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }

  void Launch(Kernel kernel, int64_t blocks, const Call<T>& call) override {
    WithKernel<T>(kernel, call.schedule.shape, [&](auto k) {
      using K = decltype(k);
      for (int64_t i = 0; i < blocks; ++i) {
        std::vector<float> shared(static_cast<size_t>(K::SharedFloats(call)), std::nanf(""));
        EmulatedBlock block(InOrder(order_, i, blocks), K::kThreads, order_, shared);
        K::Run(block, call);
      }
    });
  }

 private:
  Host& host_;
  const int order_;
  void* memory_ = nullptr;
};

}  // namespace rope::cuda::test

#endif  // ROPE_CUDA_TEST_EMULATION_H_
