// Sessions for tests of the op library.
#ifndef ROPE_TEST_ORT_SESSION_H_
#define ROPE_TEST_ORT_SESSION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime.h"

namespace rope::test {

struct Value {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> floats;  // one of the two
  std::vector<int64_t> ints;
  int type = 0;               // ONNX element type; 0: float32 or int64, by what is given
  std::vector<char> bytes{};  // the tensor's memory, made by the session
  std::string buffer_of{};    // an output that is the named input's tensor
};

// A session of one model with the op library registered. error() tells why
// there is none.
class Session {
 public:
  Session(const std::string& model, const std::string& library, int threads);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const std::string& error() const { return error_; }

  // Runs once; outputs that have a shape are given to the runtime ready made.
  // Returns the error text, empty when all went well.
  std::string Run(std::vector<Value>& inputs, std::vector<Value>& outputs) const;

 private:
  OrtSession* session_ = nullptr;
  std::string error_;
};

}  // namespace rope::test

#endif  // ROPE_TEST_ORT_SESSION_H_
