// A stand-in of ONNX Runtime: as much of its C API as the op library calls, on memory, threads and
// failures of the test's own. So sanitizers see everything, and a call costs microseconds.
#ifndef ROPE_HOSTILE_STAND_IN_H_
#define ROPE_HOSTILE_STAND_IN_H_

#include <onnxruntime_c_api.h>

#include <string>
#include <vector>

#include "case.h"

namespace rope::hostile {

// How a call's tasks are run.
enum class Order { kForward, kBackward, kTwoThreads };

// What a call gave: an error's sentence, or the memory of its outputs.
struct Outcome {
  std::string error;
  bool node_refused = false;  // the error is the node's, not the call's
  std::vector<Tensor> outputs;
  std::string mistake;  // what the library did that no op may do
};

// The ops that a library registers. error() says why there are none.
class Library {
 public:
  explicit Library(const std::string& path);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const std::string& error() const { return error_; }
  // Runs a case; outputs are filled with a byte before.
  Outcome Run(const Case& c, Order order, uint8_t fill) const;

 private:
  const OrtCustomOp* Find(const Case& c) const;

  std::vector<const OrtCustomOp*> ops_;
  std::string error_;
};

}  // namespace rope::hostile

#endif  // ROPE_HOSTILE_STAND_IN_H_
