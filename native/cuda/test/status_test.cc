// What a run of the CUDA op says when CUDA cannot be used.
//
//   cuda_status_test LIBONNXRUNTIME LIBRARY_OF_MISPLACED_OPS
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "check.h"
#include "fixture.h"
#include "model_bytes.h"
#include "ort_session.h"

namespace {

using namespace rope::test;

// One token of one head of so many channels.
std::string RunOne(const std::string& library, int64_t channels) {
  constexpr int kFloat = 1;
  NodeModel model;
  model.inputs = {{"query", kFloat, 3}, {"key", kFloat, 3}, {"value", kFloat, 3}};
  model.outputs = {{"output", kFloat, 3}};
  model.attributes = {IntAttribute("spec_version", 1), IntAttribute("num_heads", 1),
                      IntAttribute("kv_num_heads", 1)};
  const Session session(model.Encode(), library, 1);
  if (!session.error().empty()) return "session: " + session.error();
  const std::vector<float> numbers(static_cast<size_t>(channels), 1.0f);
  std::vector<Value> inputs, outputs = {{"output", {}, {}, {}}};
  for (const char* name : {"query", "key", "value"}) {
    inputs.push_back({name, {1, 1, channels}, numbers, {}});
  }
  return session.Run(inputs, outputs);
}

void ExpectAll(const std::string& text, const std::vector<std::string>& wanted) {
  for (const std::string& part : wanted) {
    Expect(text.find(part) != std::string::npos, "'" + text + "' lacks '" + part + "'");
  }
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;
  const char* runtime =
      argc > 1 && argv[1][0] != '\0' ? argv[1] : std::getenv("ONNXRUNTIME_SHARED_LIBRARY_PATH");
  if (argc < 3 || runtime == nullptr) {
    std::printf("skipped: set ONNXRUNTIME_SHARED_LIBRARY_PATH to an ONNX Runtime library\n");
    return kSkipped;
  }
  int devices = 0;
  const cudaError_t missing = cudaGetDeviceCount(&devices);
  if (missing == cudaSuccess) {
    std::printf("skipped: there is a GPU, on which the misplaced op would read host memory\n");
    return kSkipped;
  }
  if (const std::string error = OpenRuntime(runtime); !error.empty()) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return 1;
  }
  ExpectAll(RunOne(argv[2], 64),
            {"RotaryAttention node 'layer.0/attention': CUDA: ", cudaGetErrorString(missing)});
  ExpectAll(RunOne(argv[2], 1024), {"layer.0/attention", "1024 channels", "at most 768", "CPU"});
  std::printf("%d failures\n", g_failures);
  return g_failures == 0 ? 0 : 1;
}
