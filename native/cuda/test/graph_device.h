// A GPU as a device that repeats what a run launches: as a CUDA graph.
#ifndef ROPE_CUDA_TEST_GRAPH_DEVICE_H_
#define ROPE_CUDA_TEST_GRAPH_DEVICE_H_

#include <cuda_runtime_api.h>

#include "cuda_device.h"
#include "device_numbers_test.h"
#include "mirror.h"

namespace rope::test {

class GraphDevice : public RepeatingDevice {
 public:
  ~GraphDevice() override { Drop(); }

  // Memory of the host, which the GPU reads over the bus.
  void* Allocate(size_t bytes) override {
    void* memory = nullptr;
    cuda::CheckCuda("cudaHostAlloc", cudaHostAlloc(&memory, bytes, cudaHostAllocMapped));
    return memory;
  }
  void Free(void* memory) override { cudaFreeHost(memory); }

  bool Run(const AttentionParams& params, const AttentionArgs<float>& args,
           const cuda::DeviceNumbers* numbers) override {
    const bool done = Launch(params, args, numbers);
    Wait();
    return done;
  }

  bool Record(const AttentionParams& params, const AttentionArgs<float>& args,
              const cuda::DeviceNumbers& numbers) override {
    Drop();
    cudaStream_t stream = cuda::test::Stream();
    // As ONNX Runtime captures, which forbids the most.
    cuda::CheckCuda("cudaStreamBeginCapture",
                    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    const bool done = Launch(params, args, &numbers);
    cudaGraph_t graph = nullptr;
    cuda::CheckCuda("cudaStreamEndCapture", cudaStreamEndCapture(stream, &graph));
    cuda::CheckCuda("cudaGraphInstantiate", cudaGraphInstantiate(&graph_, graph, 0));
    cuda::CheckCuda("cudaGraphDestroy", cudaGraphDestroy(graph));
    if (done) Repeat();
    return done;
  }
  void Repeat() override {
    cuda::CheckCuda("cudaGraphLaunch", cudaGraphLaunch(graph_, cuda::test::Stream()));
    Wait();
  }

 private:
  static bool Launch(const AttentionParams& params, const AttentionArgs<float>& args,
                     const cuda::DeviceNumbers* numbers) {
    cuda::CudaDevice<float> device(cuda::test::Stream());
    return cuda::RunOnDevice(params, args, device, numbers);
  }
  static void Wait() {
    cuda::CheckCuda("cudaStreamSynchronize", cudaStreamSynchronize(cuda::test::Stream()));
  }
  void Drop() {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
    graph_ = nullptr;
  }

  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace rope::test

#endif  // ROPE_CUDA_TEST_GRAPH_DEVICE_H_
