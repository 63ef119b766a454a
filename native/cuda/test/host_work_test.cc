// What the host does before the kernels of one layer run, seen by a device that only counts.
//
//   cuda_host_work_test          checks how much is uploaded, and how
//   cuda_host_work_test bench    prints what a layer costs the host
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "run.h"
#include "stored.h"

namespace rope::cuda {
namespace {

using rope::test::Expect;
using rope::test::g_failures;

// Gives memory that nobody reads, and counts.
class CountingDevice : public Device<Half> {
 public:
  void* Allocate(size_t bytes) override {
    allocated += bytes;
    return memory_;
  }
  void Upload(void* /*to*/, const void* /*from*/, size_t bytes) override {
    uploaded += bytes;
    waits += bytes > kMostStoredInAll ? 1 : 0;
  }
  void Copy(void* /*to*/, const void* /*from*/, size_t bytes) override { copied += bytes; }
  void Launch(Kernel /*kernel*/, int64_t /*blocks*/,
              const rope::cuda::Call<Half>& /*call*/) override {
    ++launches;
  }
  void LaunchPlan(int64_t /*blocks*/, const PlanCall<Half>& /*plan*/) override { ++launches; }
  bool HasWarpgroups() const override { return false; }
  int64_t BlocksAtOnce(const rope::cuda::Call<Half>& /*call*/) const override { return 924; }

  size_t allocated = 0, uploaded = 0, copied = 0;
  int waits = 0, launches = 0;

 private:
  char memory_[16] = {};
};

struct Case {
  std::string name;
  int64_t batch, length, past;
  int64_t padding = 0;    // row b has b times so many hidden keys on the left
  int64_t documents = 0;  // of equal lengths
  bool hole = false;      // one key is hidden in the middle
  bool raw = false;
};

std::vector<Case> Cases() {
  return {
      {"1 token after 16,384", 1, 1, 16'384},
      {"1 token after 131,071", 1, 1, 131'071},
      {"16 texts, 1 token after 16,384", 16, 1, 16'384},
      {"16 texts, left-padded, 1 token after 16,384", 16, 1, 16'384, 100},
      {"16 texts, left-padded, 1 token after 131,071", 16, 1, 131'071, 1000},
      {"a hole in the mask, 1 token after 16,384", 1, 1, 16'384, 0, 0, true},
      {"8 documents, 1 token after 16,384", 1, 1, 16'384, 0, 8},
      {"8 documents, 2,048 tokens", 1, 2048, 0, 0, 8},
      {"384 tokens", 1, 384, 0},
      {"2,048 tokens", 1, 2048, 0},
      {"16,384 tokens", 1, 16'384, 0},
      {"raw cache, 1 token after 131,071", 1, 1, 131'071, 0, 0, false, true},
  };
}

class Layer {
 public:
  explicit Layer(const Case& c) {
    params_.num_heads = 32;
    params_.kv_num_heads = 8;
    params_.raw_cache = c.raw;
    for (int i = 0; i < 64; ++i) params_.frequencies.push_back(1.0f / static_cast<float>(i + 1));
    args_.batch = c.batch;
    args_.length = args_.new_keys = c.length;
    args_.max_past = c.past;
    args_.head_size = args_.v_head_size = 128;
    const int64_t total = args_.max_total();
    args_.present_rows = total;
    const auto tensor = [](auto& rows, int64_t heads, int64_t tokens) {
      using D = std::remove_reference_t<decltype(*rows.data)>;
      static Float16 memory[1];
      rows = {const_cast<std::remove_const_t<D>*>(memory), heads * tokens * 128, tokens * 128, 128};
    };
    tensor(args_.query, 32, c.length), tensor(args_.key, 8, c.length);
    tensor(args_.value, 8, c.length), tensor(args_.output, 32, c.length);
    tensor(args_.past_key, 8, total), tensor(args_.past_value, 8, total);
    tensor(args_.present_key, 8, total), tensor(args_.present_value, 8, total);
    if (c.padding > 0 || c.hole) {
      mask_.assign(static_cast<size_t>(c.batch * total), 1);
      for (int64_t b = 0; b < c.batch; ++b) {
        std::fill_n(mask_.begin() + b * total, b * c.padding, 0);
        if (c.hole) mask_[static_cast<size_t>(b * total + total / 2)] = 0;
      }
      args_.mask = mask_.data();
      args_.mask_batch_stride = args_.mask_width = total;
    }
    if (c.documents > 0) {
      for (int64_t i = 0; i < total; ++i) documents_.push_back(1 + i * c.documents / total);
      args_.documents = documents_.data();
    }
  }

  CountingDevice Run() const {
    CountingDevice device;
    Expect(RunOnDevice(params_, args_, device), "no memory");
    return device;
  }

  // The same with numbers on the device: a cache with room for one token more, and nothing that the
  // host could read.
  CountingDevice RunDeviceNumbers() const {
    const auto nowhere = uintptr_t{4096};
    AttentionArgs<Float16> args = args_;
    args.row_past = reinterpret_cast<const int32_t*>(nowhere);
    if (args.mask != nullptr) args.mask = reinterpret_cast<const int64_t*>(nowhere);
    if (args.documents != nullptr) args.documents = reinterpret_cast<const int64_t*>(nowhere);
    args.positions = reinterpret_cast<const int64_t*>(nowhere);
    args.positions_batch_stride = args.length;
    CountingDevice device;
    const DeviceNumbers numbers;
    Expect(RunOnDevice(params_, args, device, &numbers), "no memory");
    return device;
  }

 private:
  AttentionParams params_;
  AttentionArgs<Float16> args_;
  std::vector<int64_t> mask_, documents_;
};

// A decoding step copies little, and never waits for the device, however long its texts are padded.
void TestDecoding() {
  for (const int64_t past : {0, 100, 16'384, 131'071}) {
    for (const int64_t padding : {0, 1, 5}) {
      const Case c{"", 16, 1, past, past > 100 ? padding : 0};
      const CountingDevice device = Layer(c).Run();
      const std::string name =
          std::to_string(padding) + " padded keys a row after " + std::to_string(past);
      Expect(device.waits == 0,
             name + ": it waits for an upload of " + std::to_string(device.uploaded) + " bytes");
      Expect(device.launches >= 2, name + ": " + std::to_string(device.launches) + " launches");
    }
  }
  const CountingDevice hole = Layer({"", 1, 1, 131'071, 0, 0, true}).Run();
  Expect(hole.uploaded > 131'071, "a hole takes a byte for each key");
  const CountingDevice documents = Layer({"", 1, 1, 131'071, 0, 8}).Run();
  Expect(documents.waits == 0, "a token of one document: it waits for an upload");
  const CountingDevice several = Layer({"", 1, 30, 131'071, 0, 8}).Run();
  Expect(several.waits == 0, "thirty tokens of one document: it waits for an upload");
}

// Prompts of some thousand tokens do not wait either.
void TestPrompts() {
  for (const Case& c : {Case{"384 tokens", 1, 384, 0}, Case{"2,048 tokens", 1, 2048, 0},
                        Case{"2,048 tokens of eight documents", 1, 2048, 0, 0, 8},
                        Case{"512 tokens after 131,071, padded", 4, 512, 131'071, 700}}) {
    const CountingDevice device = Layer(c).Run();
    Expect(device.waits == 0,
           c.name + ": it waits for an upload of " + std::to_string(device.uploaded) + " bytes");
  }
  // What the texts of a batch have in common is sent once.
  const size_t one = Layer({"", 1, 2048, 0}).Run().uploaded;
  const size_t sixteen = Layer({"", 16, 2048, 0}).Run().uploaded;
  Expect(sixteen < one + one / 4,
         "sixteen texts take " + std::to_string(sixteen) + " bytes, one " + std::to_string(one));
}

// The median of what a run takes the host, in microseconds.
template <typename Run>
double Microseconds(const Run& run) {
  constexpr int kRuns = 31;
  std::vector<double> times;
  for (int i = 0; i < kRuns; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    times.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
            .count());
  }
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return times[kRuns / 2];
}

void Print(const Case& c) {
  const Layer layer(c);
  CountingDevice read, left;
  const double reading = Microseconds([&] { read = layer.Run(); });
  const double leaving = Microseconds([&] { left = layer.RunDeviceNumbers(); });
  std::printf("| %s | %.1f µs | %zu%s | %.1f µs | %zu%s |\n", c.name.c_str(), reading,
              read.uploaded, read.waits > 0 ? ", waits" : "", leaving, left.uploaded,
              left.waits > 0 ? ", waits" : "");
}

// Where the device has the numbers, what is uploaded and launched follows from shapes alone, and
// is little.
void TestDeviceNumbers() {
  for (const Case& c : Cases()) {
    const CountingDevice device = Layer(c).RunDeviceNumbers();
    Expect(device.waits == 0 && device.uploaded < 1200,
           c.name + ": " + std::to_string(device.uploaded) + " bytes are uploaded");
  }
}

void Bench() {
  std::printf(
      "| a layer | numbers on the host | bytes uploaded | on the device | bytes uploaded |\n"
      "|---|---|---|---|---|\n");
  for (const Case& c : Cases()) Print(c);
}

}  // namespace
}  // namespace rope::cuda

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "bench") == 0) {
    rope::cuda::Bench();
    return 0;
  }
  rope::cuda::TestDecoding();
  rope::cuda::TestPrompts();
  rope::cuda::TestDeviceNumbers();
  std::printf("%d failures\n", rope::test::g_failures);
  return rope::test::g_failures == 0 ? 0 : 1;
}
