// The kernels on the host, one thread after the other between barriers. Threads
// and blocks run in several orders, so that a step that reads what another thread
// of the same step writes gives different results in different runs.
#ifndef ROPE_CUDA_TEST_EMULATION_H_
#define ROPE_CUDA_TEST_EMULATION_H_

#include <cmath>
#include <cstdint>
#include <cstring>
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

class EmulatedBlock {
 public:
  EmulatedBlock(int64_t index, int threads, int order, float* shared)
      : index_(index), threads_(threads), order_(order), shared_(shared) {}

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
    for (int i = 0; i < threads_; ++i) step(static_cast<int>(InOrder(order_, i, threads_)));
  }

  template <typename Step>
  bool AnyThread(const Step& step) {
    bool any = false;
    ForThreads([&](int thread) { any = step(thread) || any; });
    return any;
  }

  void Barrier() {}

  template <typename Step>
  void Lanes(const Step& step) {
    ForThreads(step);
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

  template <int kLanes, typename Value, typename Combine>
  void Reduce(const Value& value, const Combine& combine) {
    std::vector<float> before(static_cast<size_t>(threads_));
    for (int lane = 1; lane < kLanes; lane *= 2) {
      for (int t = 0; t < threads_; ++t) before[static_cast<size_t>(t)] = value(t);
      for (int t = 0; t < threads_; ++t) {
        value(t) = combine(before[static_cast<size_t>(t)], before[static_cast<size_t>(t ^ lane)]);
      }
    }
  }

 private:
  const int64_t index_;
  const int threads_;
  const int order_;
  float* const shared_;
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
    WithKernel<T>(kernel, call.shape, [&](auto k) {
      using K = decltype(k);
      for (int64_t i = 0; i < blocks; ++i) {
        std::vector<float> shared(static_cast<size_t>(K::SharedFloats(call)), std::nanf(""));
        EmulatedBlock block(InOrder(order_, i, blocks), K::kThreads, order_, shared.data());
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
