// What the engine asks of the CUDA runtime, by a runtime that only remembers: no GPU is needed.
#include <cstdlib>
#include <string>
#include <vector>

#include "check.h"
#include "cuda_engine.h"

namespace {

// What was asked, and what the next call is told.
struct Runtime {
  int current = 0;        // device of the thread
  int of_stream = 0;      // device of every stream
  bool captured = false;  // every stream's launches go into a graph
  uint64_t kept = 0;      // bytes that a pool keeps
  int launches = 0, waits = 0, pools = 0, device_changes = 0;
  std::vector<int> devices;   // that were current at launches
  uint8_t* pinned = nullptr;  // what the device can write
} g_runtime;

}  // namespace

extern "C" {
cudaError_t cudaGetDevice(int* device) { return *device = g_runtime.current, cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  ++g_runtime.device_changes;
  return g_runtime.current = device, cudaSuccess;
}
cudaError_t cudaStreamGetDevice(cudaStream_t, int* device) {
  if (g_runtime.captured) return cudaErrorStreamCaptureUnsupported;
  return *device = g_runtime.of_stream, cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = g_runtime.captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
  ++g_runtime.pools;
  return *pool = nullptr, cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void* value) {
  return g_runtime.kept = *static_cast<uint64_t*>(value), cudaSuccess;
}
cudaError_t cudaMallocFromPoolAsync(void** memory, size_t bytes, cudaMemPool_t, cudaStream_t) {
  return *memory = std::malloc(bytes), cudaSuccess;
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t) { return std::free(memory), cudaSuccess; }
cudaError_t cudaMemcpyAsync(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return ++g_runtime.waits, cudaSuccess; }
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  *memory = std::malloc(bytes);
  g_runtime.pinned = static_cast<uint8_t*>(*memory);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) { return std::free(memory), cudaSuccess; }
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  return *device = host, cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "an error"; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  return *value = 0, cudaSuccess;
}
}

namespace rope::cuda {

template <typename T>
cudaError_t LaunchKernel(Kernel, int64_t, const Call<T>&, cudaStream_t) {
  ++g_runtime.launches;
  g_runtime.devices.push_back(g_runtime.current);
  return cudaSuccess;
}
template cudaError_t LaunchKernel(Kernel, int64_t, const Call<float>&, cudaStream_t);
template cudaError_t LaunchKernel(Kernel, int64_t, const Call<Half>&, cudaStream_t);
template cudaError_t LaunchKernel(Kernel, int64_t, const Call<BFloat>&, cudaStream_t);

template <typename T>
cudaError_t LaunchPlan(int64_t, const PlanCall<T>&, cudaStream_t) {
  ++g_runtime.launches;
  g_runtime.devices.push_back(g_runtime.current);
  return cudaSuccess;
}
template cudaError_t LaunchPlan(int64_t, const PlanCall<float>&, cudaStream_t);
template cudaError_t LaunchPlan(int64_t, const PlanCall<Half>&, cudaStream_t);
template cudaError_t LaunchPlan(int64_t, const PlanCall<BFloat>&, cudaStream_t);

template <typename T>
cudaError_t AttentionBlocks(const Call<T>&, int& blocks) {
  return blocks = 1, cudaSuccess;
}
template cudaError_t AttentionBlocks(const Call<float>&, int&);
template cudaError_t AttentionBlocks(const Call<Half>&, int&);
template cudaError_t AttentionBlocks(const Call<BFloat>&, int&);

template <typename T>
cudaError_t LaunchRotary(RotaryStep, int64_t, const RotaryCall<T>&, cudaStream_t) {
  return cudaSuccess;
}
template cudaError_t LaunchRotary(RotaryStep, int64_t, const RotaryCall<float>&, cudaStream_t);
template cudaError_t LaunchRotary(RotaryStep, int64_t, const RotaryCall<Half>&, cudaStream_t);
template cudaError_t LaunchRotary(RotaryStep, int64_t, const RotaryCall<BFloat>&, cudaStream_t);

cudaError_t LaunchStore(void*, const void*, size_t, cudaStream_t) { return cudaSuccess; }

namespace {

using rope::test::Expect;

// One token of one head.
struct Token {
  Token() {
    api.KernelContext_GetGPUComputeStream = [](const OrtKernelContext*,
                                               void** stream) noexcept -> OrtStatusPtr {
      *stream = nullptr;
      return nullptr;
    };
    params.num_heads = params.kv_num_heads = 1;
    params.frequencies = {1.0f, 0.5f};
    args.batch = args.length = args.new_keys = 1;
    args.head_size = args.v_head_size = 64;
    args.query = args.key = args.value = {memory, 64, 64, 64};
    args.output = {memory, 64, 64, 64};
  }

  OrtApi api{};
  AttentionParams params;
  AttentionArgs<float> args;
  float memory[64] = {};
};

std::string RunOne() {
  Token token;
  return CudaEngine(token.api).Run(nullptr, token.params, token.args);
}

// The same where the host can read no number: lengths and a mask point nowhere.
std::string RunOnDevice(const CudaDeviceEngine& engine, Token& token, bool chosen = false) {
  const auto nowhere = uintptr_t{4096};
  token.args.row_past = reinterpret_cast<const int32_t*>(nowhere);
  token.args.mask = token.args.positions = reinterpret_cast<const int64_t*>(nowhere);
  token.args.max_past = 100;
  token.args.present_rows = 101;
  return engine.Run(nullptr, token.params, FrequencyRule{}, chosen, token.args);
}

void TestRun() {
  g_runtime = {};
  Expect(RunOne().empty() && g_runtime.launches >= 2,
         "a run launches " + std::to_string(g_runtime.launches) + " kernels");
  Expect(g_runtime.waits == 0, "a run of one token waits");
  Expect(g_runtime.device_changes == 0, "a run on the current device sets it");
}

// A graph would repeat what the host read for the first token.
void TestCapture() {
  g_runtime = {};
  g_runtime.captured = true;
  const std::string error = RunOne();
  Expect(error.find("enable_cuda_graph") != std::string::npos,
         "a captured run says '" + error + "'");
  Expect(g_runtime.launches == 0, "a captured run launches kernels");
}

// With numbers on the device a run can be captured, but for frequencies that the host has chosen.
void TestCaptureOfDeviceNumbers() {
  for (const bool captured : {false, true}) {
    g_runtime = {};
    g_runtime.captured = captured;
    Token token;
    const CudaDeviceEngine engine(token.api);
    const std::string error = RunOnDevice(engine, token);
    Expect(error.empty() && g_runtime.launches >= 3, "a run with numbers on the device says '" +
                                                         error + "' and launches " +
                                                         std::to_string(g_runtime.launches));
    Expect(g_runtime.waits == 0, "a run with numbers on the device waits");
    const std::string chosen = RunOnDevice(engine, token, true);
    Expect(captured == (chosen.find("total_length") != std::string::npos),
           "with chosen frequencies a run says '" + chosen + "'");
  }
}

// What the device has found wrong is told once, by the next run.
void TestFaults() {
  for (int i = 0; i < kFaults; ++i) {
    g_runtime = {};
    Token token;
    const CudaDeviceEngine engine(token.api);
    g_runtime.pinned[i] = 1;
    const std::string error = RunOnDevice(engine, token);
    Expect(error == TextOf(static_cast<Fault>(i)),
           "fault " + std::to_string(i) + ": '" + error + "'");
    Expect(g_runtime.launches == 0 && RunOnDevice(engine, token).empty(),
           "fault " + std::to_string(i) + " is told twice");
  }
}

// Where inputs have to lie.
void TestMemory() {
  for (size_t input = 0; input < spec::kInputCount; ++input) {
    const bool read = input == spec::kSinkLogits || input == spec::kTotalLength;
    const bool numbers = input == spec::kPositionIds || input == spec::kAttentionMask ||
                         input == spec::kCacheLength || input == spec::kDocumentIds;
    const std::string name = spec::kInputNames[input];
    Expect((CudaEngine::MemoryOf(input) == OrtMemTypeCPUInput) == (read || numbers),
           name + " lies elsewhere");
    Expect((CudaDeviceEngine::MemoryOf(input) == OrtMemTypeCPUInput) == read,
           name + " lies elsewhere with numbers on the device");
  }
}

// Kernels run on the stream's device, whatever the thread's is, and the thread keeps its own.
void TestDevice() {
  g_runtime = {};
  g_runtime.current = 2;
  g_runtime.of_stream = 1;
  Expect(RunOne().empty(), "a run fails on another device");
  for (const int device : g_runtime.devices)
    Expect(device == 1, "a launch is on device " + std::to_string(device));
  Expect(!g_runtime.devices.empty() && g_runtime.current == 2,
         "the thread's device is " + std::to_string(g_runtime.current));
}

// One pool for each device, which keeps little.
void TestPool() {
  g_runtime = {};
  g_runtime.of_stream = g_runtime.current = 5;
  RunOne();
  RunOne();
  Expect(g_runtime.pools == 1, std::to_string(g_runtime.pools) + " pools of one device");
  Expect(g_runtime.kept == kMostKept, "a pool keeps " + std::to_string(g_runtime.kept) + " bytes");
}

}  // namespace
}  // namespace rope::cuda

int main() {
  rope::cuda::TestRun();
  rope::cuda::TestCapture();
  rope::cuda::TestCaptureOfDeviceNumbers();
  rope::cuda::TestFaults();
  rope::cuda::TestMemory();
  rope::cuda::TestDevice();
  rope::cuda::TestPool();
  std::printf("%d failures\n", rope::test::g_failures);
  return rope::test::g_failures == 0 ? 0 : 1;
}
