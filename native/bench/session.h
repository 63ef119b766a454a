// One op in ONNX Runtime with its tensors ready, so that a run is the op alone.
#ifndef ROPE_BENCH_SESSION_H_
#define ROPE_BENCH_SESSION_H_

#include <onnxruntime_c_api.h>

#include <string>
#include <vector>

#include "cases.h"

namespace rope::bench {

class Session {
 public:
  // error() tells why there is none.
  Session(const Work& work, const Contestant& contestant, const std::string& library, int threads);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const std::string& error() const { return error_; }
  // Runs the op once. False leaves error().
  bool Run();
  // The largest difference of two sessions' outputs; both of the same shape.
  static double Difference(const Session& a, const Session& b);

 private:
  struct Tensor {
    std::string name;
    int type = 0;
    std::vector<int64_t> shape;
    std::vector<char> bytes;
    OrtValue* value = nullptr;
  };
  Tensor& Add(std::vector<Tensor>& to, const std::string& name, int type,
              std::vector<int64_t> shape);
  void AddRandom(const std::string& name, int type, std::vector<int64_t> shape, uint32_t seed);
  void AddInts(const std::string& name, int type, std::vector<int64_t> shape,
               const std::vector<int64_t>& values);
  void AddTensors(const Work& work, const Contestant& contestant);
  void AddBias(const Work& work, const Contestant& contestant);
  void MakeValues();
  float OutputAt(size_t i) const;

  std::string error_;
  OrtSession* session_ = nullptr;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<const char*> input_names_, output_names_;
  std::vector<OrtValue*> input_values_, output_values_;
};

}  // namespace rope::bench

#endif  // ROPE_BENCH_SESSION_H_
