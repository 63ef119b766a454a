// Calls the op library with hostile and random input, on a stand-in of ONNX Runtime.
//
//   hostile_test LIBROPE_OPS FIRST_SEED CASES SECONDS [LIBONNXRUNTIME]
//
// Each case has a seed of its own, which is printed when it fails: that seed and 1 case repeat it,
// and 0 cases show it.
// With ONNX Runtime (empty: that of ONNXRUNTIME_SHARED_LIBRARY_PATH) each case is run there as
// well, and has to give the same.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "beside_runtime.h"
#include "draw.h"
#include "judge.h"
#include "runtime.h"
#include "stand_in.h"

// How sanitizers end the process: by a signal or a callback, which say the seed.
extern "C" {
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());
__attribute__((visibility("default"))) const char* __ubsan_default_options() {
  return "abort_on_error=1:print_stacktrace=1";
}
__attribute__((visibility("default"))) const char* __tsan_default_options() {
  return "halt_on_error=1";
}
}

namespace rope::hostile {
namespace {

uint64_t g_seed = 0;

void SaySeed() {
  std::fprintf(stderr, "hostile_test: in the case of seed %llu\n",
               static_cast<unsigned long long>(g_seed));
}

void OnSignal(int number) {
  SaySeed();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

struct Counts {
  int64_t cases = 0, computed = 0, refused_nodes = 0, refused_calls = 0, without_memory = 0;
  int64_t refused_by_runtime = 0, failures = 0;

  void Add(const Outcome& outcome) {
    ++cases;
    if (outcome.error.empty()) {
      ++computed;
    } else if (outcome.node_refused) {
      ++refused_nodes;
    } else if (outcome.error.find("out of memory") != std::string::npos) {
      ++without_memory;
    } else {
      ++refused_calls;
    }
  }
  double Percent(int64_t count) const {
    return 100 * static_cast<double>(count) / static_cast<double>(cases);
  }
};

// Runs a case twice on the stand-in. Bits depend neither on threads nor on what stood in memory
// before; but where memory ends, threads decide which task is left without.
std::string RunTwice(const Library& library, const Case& c, [[maybe_unused]] uint64_t seed,
                     Outcome& first) {
  first = library.Run(c, Order::kForward, 0xA5);
#ifdef __SANITIZE_THREAD__
  const Order order = Order::kTwoThreads;
#else
  const Order order = seed % 4 == 0 ? Order::kTwoThreads : Order::kBackward;
#endif
  const Outcome second = library.Run(c, order, 0x5A);
  std::string wrong = Judge(c, first);
  if (wrong.empty()) wrong = second.mistake;
  if (wrong.empty() && c.allocations < 0) wrong = Compare(first, second);
  return wrong;
}

// A case as a runtime takes it: with memory, and outputs of their own.
Case ForRuntime(uint64_t seed) {
  Case c = Draw(seed);
  c.allocations = -1;
  for (Output& o : c.outputs) o.same_as = -1;
  return c;
}

std::string RunCase(const Library& library, const LibraryCopy* beside, uint64_t seed,
                    Counts& counts) {
  const Case c = beside == nullptr ? Draw(seed) : ForRuntime(seed);
  Outcome outcome;
  std::string wrong = RunTwice(library, c, seed, outcome);
  const bool too_large = outcome.error.find("the host gives no") != std::string::npos;
  if (wrong.empty() && beside != nullptr && !too_large) {
    bool alone = false;
    wrong = BesideRuntime(c, outcome, beside->path(), alone);
    counts.refused_by_runtime += alone;
  }
  counts.Add(outcome);
  return wrong.empty() ? wrong : wrong + "\n" + Describe(c);
}

int Run(const std::string& path, uint64_t first, int64_t cases, double seconds,
        const char* runtime) {
  if (cases == 0) {
    std::printf("%s", Describe(Draw(first)).c_str());
    return 0;
  }
  const Library library(path);
  std::string error = library.error();
  if (error.empty() && runtime != nullptr) error = test::OpenRuntime(runtime);
  if (!error.empty()) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return 1;
  }
  const auto beside = runtime == nullptr ? nullptr : std::make_unique<LibraryCopy>(path);
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  Counts counts;
  while (counts.cases < cases && counts.failures < 2000 && spent() < seconds) {
    g_seed = first + static_cast<uint64_t>(counts.cases);
    const std::string wrong = RunCase(library, beside.get(), g_seed, counts);
    if (wrong.empty()) continue;
    ++counts.failures;
    std::fprintf(stderr, "FAILED: seed %llu: %s", static_cast<unsigned long long>(g_seed),
                 wrong.c_str());
  }
  std::printf(
      "hostile: %lld cases from seed %llu on, %.1f%% computed, %.1f%% nodes refused, %.1f%% calls "
      "refused, %.1f%% without memory, %.1f%% refused by ONNX Runtime alone: %lld failures\n",
      static_cast<long long>(counts.cases), static_cast<unsigned long long>(first),
      counts.Percent(counts.computed), counts.Percent(counts.refused_nodes),
      counts.Percent(counts.refused_calls), counts.Percent(counts.without_memory),
      counts.Percent(counts.refused_by_runtime), static_cast<long long>(counts.failures));
  const bool reached = counts.cases < 100 || 2 * counts.computed > counts.cases;
  if (!reached) std::fprintf(stderr, "FAILED: fewer than half of the cases are computed\n");
  return counts.failures == 0 && reached ? 0 : 1;
}

}  // namespace
}  // namespace rope::hostile

int main(int argc, char** argv) {
  using namespace rope::hostile;
  if (argc < 5) {
    std::fprintf(stderr,
                 "usage: hostile_test LIBROPE_OPS FIRST_SEED CASES SECONDS [LIBONNXRUNTIME]\n");
    return 1;
  }
  std::signal(SIGABRT, OnSignal);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(SaySeed);
  } else {
    for (const int number : {SIGSEGV, SIGFPE, SIGBUS, SIGILL}) std::signal(number, OnSignal);
  }
  const char* runtime = argc > 5 ? argv[5] : nullptr;
  if (runtime != nullptr && *runtime == '\0') {
    constexpr int kSkipped = 77;
    runtime = std::getenv("ONNXRUNTIME_SHARED_LIBRARY_PATH");
    if (runtime == nullptr) {
      std::printf("skipped: set ONNXRUNTIME_SHARED_LIBRARY_PATH to an ONNX Runtime library\n");
      return kSkipped;
    }
  }
  return Run(argv[1], std::strtoull(argv[2], nullptr, 10), std::atoll(argv[3]), std::atof(argv[4]),
             runtime);
}
