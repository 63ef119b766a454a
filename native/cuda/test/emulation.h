// The kernels on the host, one thread after the other between barriers. Threads
// and blocks run in several orders, so that a step that reads what another thread
// of the same step writes gives different results in different runs.
#ifndef ROPE_CUDA_TEST_EMULATION_H_
#define ROPE_CUDA_TEST_EMULATION_H_

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

#include "attention.h"
#include "emulated_products.h"
#include "hidden_memory.h"
#include "plan_kernel.h"
#include "run.h"
#include "watch.h"

namespace rope::cuda::test {

// An order of [0, count): 0 ascending, 1 descending, 2 the odd ones first.
constexpr int64_t InOrder(int order, int64_t i, int64_t count) {
  if (order == 0) return i;
  if (order == 1) return count - 1 - i;
  const int64_t odd = count / 2;
  return i < odd ? 2 * i + 1 : 2 * (i - odd);
}

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
        products_(watch_, shared),
        copies_(static_cast<size_t>(threads)) {}

  template <typename State>
  class PerThread {
   public:
    PerThread() : states_(kMostThreads) {
      // Registers hold anything: NaN shows it.
      std::memset(static_cast<void*>(states_.data()), 0xff, states_.size() * sizeof(State));
    }
    State& operator[](int thread) { return states_[static_cast<size_t>(thread)]; }

   private:
    static constexpr size_t kMostThreads = 256;
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
    products_.Touch();
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

  void ShowToProducts() { watch_.ShowToProducts(); }
  void BeginProducts() { products_.Begin(); }
  template <typename Step>
  void ForWarpgroups(const Step& step) {
    const int count = threads_ / kWarpgroupThreads;
    for (int i = 0; i < count; ++i) step(static_cast<int>(InOrder(order_, i, count)));
  }
  template <typename T, int kColumns, typename D>
  void MultiplyShared(int warpgroup, const D& d, uint64_t a, uint64_t b, bool adds) {
    products_.Start<T>(warpgroup, kColumns, d, {a}, nullptr, b, adds);
  }
  template <typename T, int kColumns, typename D, typename A>
  void MultiplyRegisters(int warpgroup, const D& d, const A& a, uint64_t b) {
    products_.Start<T>(warpgroup, kColumns, d, {}, a, b, true);
  }
  void EndProducts() { products_.EndGroup(); }
  template <int kLeft>
  void AwaitProducts() {
    products_.Await(kLeft);
  }
  template <int kCount, typename Number>
  static void Hold(Number*) {}
  static void Settle(float) {}
  static bool Uniform(bool same) { return same; }
  uint32_t Address(int place) const { return products_.Address(place); }

  template <int kLanes, int kCount, typename Values, typename Combine>
  void Reduce(const Values& values, const Combine& combine) {
    products_.Touch();
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
  EmulatedProducts products_;
  std::vector<Copies> copies_;
};

// Whether the emulated device multiplies by warpgroups where it can, as an sm_90a does.
inline bool g_warpgroups = true;

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

  // Shows some memory to kernels alone.
  void Hide(HiddenMemory& hidden) {
    hidden_ = &hidden;
    hidden.Hide();
  }

  void* Allocate(size_t bytes) override {
    memory_ = host_.Allocate(bytes);
    if (memory_ != nullptr) std::memset(memory_, 0xFF, bytes);  // NaN, so that leftovers show
    return memory_;
  }
  void Upload(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void Copy(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }

  bool HasWarpgroups() const override { return g_warpgroups; }
  // As on a GPU of 132 processors.
  int64_t BlocksAtOnce(const Call<T>& call) const override {
    return std::min(528, 132 * 256 / call.schedule.shape.threads);
  }
  void Launch(Kernel kernel, int64_t blocks, const Call<T>& call) override {
    WithKernel<T>(kernel, call.schedule.shape, [&](auto k) { Emulate<decltype(k)>(blocks, call); });
  }
  void LaunchPlan(int64_t blocks, const PlanCall<T>& plan) override {
    Emulate<PlanKernel<T>>(blocks, plan);
  }

 private:
  template <typename K, typename Given>
  void Emulate(int64_t blocks, const Given& given) const {
    if (hidden_ != nullptr) hidden_->Show();
    for (int64_t i = 0; i < blocks; ++i) {
      std::vector<float> shared(static_cast<size_t>(K::SharedFloats(given)), std::nanf(""));
      EmulatedBlock block(InOrder(order_, i, blocks), K::kThreads, order_, shared);
      K::Run(block, given);
    }
    if (hidden_ != nullptr) hidden_->Hide();
  }

  Host& host_;
  const int order_;
  void* memory_ = nullptr;
  HiddenMemory* hidden_ = nullptr;
};

}  // namespace rope::cuda::test

#endif  // ROPE_CUDA_TEST_EMULATION_H_
