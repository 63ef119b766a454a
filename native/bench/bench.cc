// Times RotaryAttention beside com.microsoft GroupQueryAttention in ONNX Runtime.
//
//   rope_bench --library LIBROPE_OPS [--runtime LIBONNXRUNTIME] [--threads 1,2]
//              [--rounds 9] [--only TEXT] [--json FILE]
//
// All ways to do a work on all numbers of threads, and the machine's own peaks, take turns in one
// process, so that the machine's mood meets all alike; medians and their ratios count.
// On one thread the processor's time of this thread is what counts, which other
// processes do not lengthen by taking the core; on more it is the time that passes.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cases.h"
#include "machine.h"
#include "session.h"
#include "test/runtime.h"

namespace rope::bench {
namespace {

struct Options {
  std::string library, runtime, only, json;
  std::vector<int> threads = {1, 2};
  int rounds = 9;
};

double Now(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// What counts for a number of threads.
double Clock(int threads) { return Now(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC); }

double Quantile(std::vector<double> v, double q) {
  std::sort(v.begin(), v.end());
  return v[static_cast<size_t>(q * static_cast<double>(v.size() - 1) + 0.5)];
}

// The machine's peaks on one thread, a sample each round.
struct Machine {
  std::vector<double> multiply_add, bfloat16, read;  // operations and bytes per second
  std::vector<float> memory = std::vector<float>(size_t{32} << 20, 1.0f);  // 128 MB
  float sink[4] = {};

  void Sample() {
    constexpr int64_t kRounds = 500000;
    double start = Clock(1);
    const double flops = MultiplyAdd(kRounds, sink);
    multiply_add.push_back(flops / (Clock(1) - start));
    start = Clock(1);
    const double pairs = MultiplyAddBFloat16(kRounds, sink);
    bfloat16.push_back(pairs / (Clock(1) - start));
    start = Clock(1);
    Read(memory.data(), memory.size(), sink);
    read.push_back(static_cast<double>(memory.size() * sizeof(float)) / (Clock(1) - start));
  }
};

struct Timed {
  Contestant contestant;
  int threads = 1;
  std::unique_ptr<Session> session;
  std::vector<double> seconds;  // of the clock that counts for the number of threads
  std::vector<double> passed;   // time that passed
  int repeat = 1;

  bool Run(bool warm_up) {
    // The threads of the session before wait for work for a while, and take a core.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const double start = Clock(threads);
    const double start_passed = Now(CLOCK_MONOTONIC);
    for (int i = 0; i < repeat; ++i) {
      if (!session->Run()) return false;
    }
    const double each = (Clock(threads) - start) / repeat;
    if (warm_up) {
      repeat = static_cast<int>(std::clamp(0.02 / std::max(each, 1e-6), 1.0, 2000.0));
    } else {
      seconds.push_back(each);
      passed.push_back((Now(CLOCK_MONOTONIC) - start_passed) / repeat);
    }
    return true;
  }
  double median() const { return Quantile(seconds, 0.5); }
};

std::string Quoted(const std::string& text) { return "\"" + text + "\""; }

std::string Number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", x);
  return text;
}

// One row of the table, and of the JSON. `ours` and `peer` run on as many threads, `alone` is the
// same contestant on the fewest.
std::string Report(const Work& work, const Timed& t, const Timed& ours, const Timed& peer,
                   const Timed& alone) {
  const double flops = work.Flops() / t.median() / 1e9;
  const int64_t size = t.contestant.element == Element::kFloat ? 4 : 2;
  const double bytes = work.CacheBytes(size) / t.median() / 1e9;
  const double difference = Session::Difference(*t.session, *ours.session);
  const double gain = Quantile(alone.passed, 0.5) / Quantile(t.passed, 0.5);
  std::printf(
      "%-36s %d  %-32s %10.4f ms  peer/this %5.2f  this/ours %5.2f  threads %4.2f  %6.1f GF/s  "
      "%5.1f GB/s  differs %.0e\n",
      work.name.c_str(), t.threads, t.contestant.name.c_str(), t.median() * 1e3,
      peer.median() / t.median(), t.median() / ours.median(), gain, flops, bytes, difference);
  std::fflush(stdout);
  return "{\"work\": " + Quoted(work.name) + ", \"threads\": " + std::to_string(t.threads) +
         ", \"contestant\": " + Quoted(t.contestant.name) + ", \"seconds\": " + Number(t.median()) +
         ", \"first_quartile\": " + Number(Quantile(t.seconds, 0.25)) +
         ", \"third_quartile\": " + Number(Quantile(t.seconds, 0.75)) +
         ", \"flops_per_second\": " + Number(flops * 1e9) +
         ", \"cache_bytes_per_second\": " + Number(bytes * 1e9) +
         ", \"peer_over_this\": " + Number(peer.median() / t.median()) +
         ", \"this_over_ours\": " + Number(t.median() / ours.median()) +
         ", \"gain_of_threads\": " + Number(gain) + "}";
}

bool RunWork(const Work& work, const Options& options, Machine& machine,
             std::vector<std::string>& rows) {
  std::vector<Timed> all;
  for (const int threads : options.threads) {
    for (const Contestant& c : ContestantsOf(work)) {
      Timed t{c, threads, std::make_unique<Session>(work, c, options.library, threads), {}, {}};
      if (t.session->error().empty()) {
        all.push_back(std::move(t));
        continue;
      }
      std::fprintf(stderr, "%s, %s is left out: %s\n", work.name.c_str(), c.name.c_str(),
                   t.session->error().c_str());
    }
  }
  for (int round = -1; round < options.rounds; ++round) {
    machine.Sample();
    for (Timed& t : all) {
      if (t.Run(round < 0)) continue;
      std::fprintf(stderr, "%s, %s: %s\n", work.name.c_str(), t.contestant.name.c_str(),
                   t.session->error().c_str());
      return false;
    }
  }
  const size_t each = all.size() / options.threads.size();
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t first = i / each * each;
    const size_t peer = first + (work.alone ? 0 : 1);
    rows.push_back(Report(work, all[i], all[first], all[peer], all[i % each]));
  }
  return true;
}

std::string CpuName() {
  std::string name = "unknown CPU";
  FILE* file = std::fopen("/proc/cpuinfo", "r");
  if (file == nullptr) return name;
  char line[256];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, "model name", 10) != 0) continue;
    if (const char* colon = std::strchr(line, ':'); colon != nullptr) name = colon + 2;
    name.erase(name.find_last_not_of("\n") + 1);
    break;
  }
  std::fclose(file);
  return name;
}

bool Parse(int argc, char** argv, Options& options) {
  if (const char* path = std::getenv("ONNXRUNTIME_SHARED_LIBRARY_PATH")) options.runtime = path;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const char* value = argv[i + 1];
    if (name == "--library") {
      options.library = value;
    } else if (name == "--runtime") {
      options.runtime = value;
    } else if (name == "--rounds") {
      options.rounds = std::max(1, std::atoi(value));
    } else if (name == "--only") {
      options.only = value;
    } else if (name == "--json") {
      options.json = value;
    } else if (name == "--threads") {
      options.threads.clear();
      for (const char* at = value; at != nullptr; at = std::strchr(at, ',')) {
        at += *at == ',';
        options.threads.push_back(std::max(1, std::atoi(at)));
      }
    } else {
      return false;
    }
  }
  return argc % 2 == 1 && !options.library.empty() && !options.runtime.empty();
}

int Main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: rope_bench --library LIBROPE_OPS [--runtime LIBONNXRUNTIME] "
                 "[--threads 1,2] [--rounds 9] [--only TEXT] [--json FILE]\n");
    return 2;
  }
  if (const std::string error = test::OpenRuntime(options.runtime.c_str()); !error.empty()) {
    std::fprintf(stderr, "rope_bench: %s\n", error.c_str());
    return 1;
  }
  Machine machine;
  std::vector<std::string> rows;
  for (const Work& work : Works()) {
    if (work.name.find(options.only) == std::string::npos) continue;
    if (work.alone && options.only.find("long") == std::string::npos) continue;
    if (!RunWork(work, options, machine, rows)) return 1;
  }
  if (rows.empty()) {
    std::fprintf(stderr,
                 "rope_bench: nothing was measured: no work's name holds '%s', or no op ran\n",
                 options.only.c_str());
    return 1;
  }
  const double peak = Quantile(machine.multiply_add, 0.5);
  const double peak_bfloat16 = Quantile(machine.bfloat16, 0.5);
  const double read = Quantile(machine.read, 0.5);
  std::printf(
      "%s, %s, ONNX Runtime %s; one thread: multiply-add %.1f GF/s, bfloat16 %.1f GF/s, "
      "read %.1f GB/s\n",
      CpuName().c_str(), TargetName(), test::RuntimeVersion(), peak / 1e9, peak_bfloat16 / 1e9,
      read / 1e9);
  if (options.json.empty()) return 0;
  FILE* file = std::fopen(options.json.c_str(), "w");
  if (file == nullptr) {
    std::fprintf(stderr, "rope_bench: cannot write %s\n", options.json.c_str());
    return 1;
  }
  std::fprintf(file,
               "{\"cpu\": \"%s\", \"target\": \"%s\", \"onnxruntime\": \"%s\",\n"
               " \"multiply_add_flops\": %.6g, \"bfloat16_flops\": %.6g, \"read_bytes\": %.6g,\n"
               " \"rounds\": %d, \"rows\": [\n",
               CpuName().c_str(), TargetName(), test::RuntimeVersion(), peak, peak_bfloat16, read,
               options.rounds);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::fprintf(file, "  %s%s\n", rows[i].c_str(), i + 1 < rows.size() ? "," : "");
  }
  std::fprintf(file, "]}\n");
  std::fclose(file);
  return 0;
}

}  // namespace
}  // namespace rope::bench

int main(int argc, char** argv) { return rope::bench::Main(argc, argv); }
