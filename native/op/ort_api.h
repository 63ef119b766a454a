// ONNX Runtime's C API in RAII form. Inside the library errors travel as
// Failure; Guarded turns them into OrtStatus at the boundary.
#ifndef ROPE_ORT_API_H_
#define ROPE_ORT_API_H_

#include <onnxruntime_c_api.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace rope {

// The newest API that every runtime from 1.18 on has.
inline constexpr uint32_t kApiVersion = 18;

// An error with a sentence for the user.
class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& text, OrtErrorCode code = ORT_INVALID_ARGUMENT)
      : std::runtime_error(text), code_(code) {}
  OrtErrorCode code() const { return code_; }

 private:
  OrtErrorCode code_;
};

// Runs body and returns what it throws as a status.
template <typename Body>
OrtStatusPtr Guarded(const OrtApi& api, const Body& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Failure& failure) {
    return api.CreateStatus(failure.code(), failure.what());
  } catch (const std::bad_alloc&) {
    return api.CreateStatus(ORT_FAIL, "rope.rewrite: out of memory");
  } catch (const std::exception& error) {
    return api.CreateStatus(ORT_FAIL, error.what());
  } catch (...) {
    return api.CreateStatus(ORT_FAIL, "rope.rewrite: unknown error");
  }
}

// Takes a status over: its text, empty when all went well.
std::string TextOf(const OrtApi& api, OrtStatusPtr status);

// Throws Failure("<what>: <text>") if the status is an error.
void Check(const OrtApi& api, OrtStatusPtr status, const char* what);

// Whether a call worked; its status is released either way.
bool Worked(const OrtApi& api, OrtStatusPtr status);

std::string ShapeText(const std::vector<int64_t>& shape);

// One tensor of a run.
struct Tensor {
  const void* data = nullptr;
  std::vector<int64_t> shape;
  bool present = false;

  template <typename T>
  const T* As() const {
    return static_cast<const T*>(data);
  }
};

// Whether sizes can be computed with. Memory bounds those of a tensor that has elements; one
// without any may have other dimensions of any size.
bool IsCountable(const std::vector<int64_t>& shape);

// Input `index` of a run; not present if the node leaves it out.
Tensor InputOf(const OrtApi& api, OrtKernelContext* context, size_t index, size_t input_count);

// Creates output `index` with this shape and returns its memory, or null if the
// node leaves it out. What `describe` gives starts an error's sentence.
void* OutputOf(const OrtApi& api, OrtKernelContext* context, size_t index, size_t output_count,
               const std::vector<int64_t>& shape, const std::function<std::string()>& describe);

}  // namespace rope

#endif  // ROPE_ORT_API_H_
