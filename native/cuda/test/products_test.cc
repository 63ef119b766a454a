#include "products_test.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "check.h"
#include "emulation.h"

namespace rope::cuda::test {
namespace {

using rope::test::Expect;

constexpr int kColumns = 128;
constexpr int kDepth = 128;  // two squares

// Small whole numbers, whose products are exact.
float NumberOf(int matrix, int row, int column) {
  return static_cast<float>((row * 7 + column * 3 + row * column + matrix) % 9 - 4);
}

// One warpgroup that multiplies a (64 x 128) and b (128 x 128), both in shared memory and given
// by rows of 128 numbers: two squares side by side, then those of the next eight rows.
class Multiplication {
 public:
  Multiplication()
      : shared_((kRowsOfA + kRowsOfB) * kDepth / 2), block_(0, kWarpgroupThreads, 0, shared_) {}

  // The rows of b are those of the matrix if `transposed`, and else its columns.
  void Store(bool transposed) {
    for (int row = 0; row < kRowsOfA + kRowsOfB; ++row) {
      for (int chunk = 0; chunk < kDepth / kChunk; ++chunk) {
        uint32_t words[4];
        for (int i = 0; i < 4; ++i) {
          const auto number = [&](int c) {
            if (row < kRowsOfA) return FromFloat<Half>(NumberOf(1, row, c));
            return FromFloat<Half>(transposed ? NumberOf(2, row - kRowsOfA, c)
                                              : NumberOf(2, c, row - kRowsOfA));
          };
          words[i] = Pair(number(chunk * kChunk + 2 * i), number(chunk * kChunk + 2 * i + 1));
        }
        const int in_square = row % 8 * 128 + ((chunk % 8) ^ (row % 8)) * 16;
        block_.Store(row % kWarpgroupThreads, (row / 8 * 2 + chunk / 8) * 1024 + in_square, words);
      }
    }
  }
  void LoadA() {
    for (int t = 0; t < kWarpgroupThreads; ++t) {
      for (int k = 0; k < kDepth; k += 16) {
        for (int i = 0; i < 4; ++i) {
          const int row = t / 32 * 16 + t % 32 / 4 + i % 2 * 8, column = k + t % 4 * 2 + i / 2 * 8;
          a_[t][k / 16][i] = Pair(FromFloat<Half>(NumberOf(1, row, column)),
                                  FromFloat<Half>(NumberOf(1, row, column + 1)));
        }
      }
    }
  }
  void Multiply() {
    for (int k = 0; k < kDepth; k += 16) {
      const int step = k / 64 * 1024 + k % 64 * 2;
      block_.MultiplyShared<Half, kColumns>(
          0, [&](int t) { return d_[t]; }, Further(Matrix(0), step),
          Further(Matrix(kRowsOfA), step), k > 0);
    }
  }
  void MultiplyTransposed() {
    for (int k = 0; k < kDepth; k += 16) {
      block_.MultiplyRegisters<Half, kColumns>(
          0, [&](int t) { return d_[t]; }, [&](int t) { return a_[t][k / 16]; },
          Matrix(kRowsOfA + k));
    }
  }

  void ExpectProduct(const std::string& name) const {
    int wrong = 0;
    for (int t = 0; t < kWarpgroupThreads; ++t) {
      for (int i = 0; i < kColumns / 2; ++i) {
        const int row = t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8;
        const int column = i / 4 * 8 + t % 4 * 2 + i % 2;
        float sum = 0;
        for (int k = 0; k < kDepth; ++k) sum += NumberOf(1, row, k) * NumberOf(2, k, column);
        wrong += d_[t][i] != sum;
      }
    }
    Expect(wrong == 0, name + ": " + std::to_string(wrong) + " numbers are wrong");
  }

  EmulatedBlock& block() { return block_; }
  float& d(int thread) { return d_[thread][0]; }
  uint32_t& a(int thread) { return a_[thread][0][0]; }

 private:
  static constexpr int kRowsOfA = kWarpgroupRows, kRowsOfB = kColumns;

  uint64_t Matrix(int row) const {
    return DescriptorOf(block_.Address(row * kDepth * 2), 2 * kSquareBytes, kSquareBytes);
  }

  std::vector<float> shared_;
  EmulatedBlock block_;
  float d_[kWarpgroupThreads][kColumns / 2] = {};
  uint32_t a_[kWarpgroupThreads][kDepth / 16][4];
};

// Whether it ends its process as Watch::Fail does.
bool Fails(const std::function<void()>& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(1);
    body();
    _exit(0);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

// A multiplication step by step, of which one is left out or one is added.
struct Steps {
  bool shows = true, barrier = true, begins = true, ends = true, awaits = true;
  std::function<void(Multiplication&)> under_way = [](Multiplication&) {};
};

void Run(const Steps& steps, bool transposed) {
  Multiplication m;
  m.Store(transposed);
  m.LoadA();
  if (steps.shows) m.block().ShowToProducts();
  if (steps.barrier) m.block().Barrier();
  if (steps.begins) m.block().BeginProducts();
  if (transposed) {
    m.MultiplyTransposed();
  } else {
    m.Multiply();
  }
  if (steps.ends) m.block().EndProducts();
  steps.under_way(m);
  if (steps.awaits) m.block().AwaitProducts<0>();
  m.ExpectProduct(transposed ? "product of registers" : "product of shared memory");
}

}  // namespace

void TestProducts() {
  const uint32_t words[4] = {};
  for (const bool transposed : {false, true}) {
    Run({}, transposed);
    const auto expect_failure = [&](const char* what, const std::function<void(Steps&)>& change) {
      Steps steps;
      change(steps);
      Expect(Fails([&] { Run(steps, transposed); }), std::string("nobody misses ") + what);
    };
    expect_failure("ShowToProducts", [](Steps& s) { s.shows = false; });
    expect_failure("a barrier", [](Steps& s) { s.barrier = false; });
    expect_failure("BeginProducts", [](Steps& s) { s.begins = false; });
    expect_failure("EndProducts", [](Steps& s) { s.ends = false; });
    expect_failure("AwaitProducts", [](Steps& s) { s.awaits = false; });
    expect_failure("a barrier before a write", [&](Steps& s) {
      s.under_way = [&](Multiplication& m) {
        m.block().AwaitProducts<0>();
        m.block().Store(0, 65 * 256, words);
      };
    });
    expect_failure("a wait before a write", [&](Steps& s) {
      s.under_way = [&](Multiplication& m) {
        m.block().Barrier();
        m.block().Store(0, 65 * 256, words);
      };
    });
    expect_failure("a wait before a copy", [&](Steps& s) {
      s.under_way = [&](Multiplication& m) {
        m.block().Barrier();
        m.block().CopyAsync(0, 65 * 256, words, true);
      };
    });
    expect_failure("a wait before a result is changed",
                   [](Steps& s) { s.under_way = [](Multiplication& m) { m.d(5) = 1.0f; }; });
    expect_failure("BeginProducts after a step", [&](Steps& s) {
      s.under_way = [&](Multiplication& m) {
        m.block().Lanes([](int) {});
        m.Multiply();
      };
    });
  }
  Steps steps;
  steps.under_way = [](Multiplication& m) { m.a(7) ^= 1; };
  Expect(Fails([&] { Run(steps, true); }), "nobody misses a wait before an operand is changed");
  steps.under_way = [](Multiplication& m) {
    Expect(m.d(5) != m.d(5), "the result of a product is there before it is awaited");
  };
  Run(steps, false);
}

}  // namespace rope::cuda::test
