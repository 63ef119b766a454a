// The kernels' host: ONNX Runtime's thread pool and allocator.
#ifndef ROPE_ORT_HOST_H_
#define ROPE_ORT_HOST_H_

#include "attention.h"
#include "ort_api.h"

namespace rope {

class OrtHost : public Host {
 public:
  OrtHost(const OrtApi& api, OrtKernelContext* context, const OrtMemoryInfo* memory)
      : api_(api), context_(context) {
    Check(api, api.KernelContext_GetAllocator(context, memory, &allocator_),
          "KernelContext_GetAllocator");
  }
  ~OrtHost() override { api_.ReleaseAllocator(allocator_); }
  OrtHost(const OrtHost&) = delete;
  OrtHost& operator=(const OrtHost&) = delete;

  void ParallelFor(size_t count, void (*fn)(void*, size_t), void* data) override {
    if (count == 0) return;
    Check(api_, api_.KernelContext_ParallelFor(context_, fn, count, 0, data),
          "KernelContext_ParallelFor");
  }

  void* Allocate(size_t bytes) override {
    try {
      return allocator_->Alloc(allocator_, bytes);
    } catch (...) {
      return nullptr;  // ONNX Runtime's arena throws
    }
  }

  void Free(void* memory) override { allocator_->Free(allocator_, memory); }

 private:
  const OrtApi& api_;
  OrtKernelContext* context_;
  OrtAllocator* allocator_ = nullptr;
};

}  // namespace rope

#endif  // ROPE_ORT_HOST_H_
