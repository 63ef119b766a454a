// Times Rotary beside a plain copy of the same bytes and com.microsoft RotaryEmbedding in ONNX
// Runtime.
//
//   rope_rotary_bench LIBROPE_OPS [THREADS [ROUNDS [TEXT]]]
//
// What is compared takes turns in one process; medians count. On one thread the processor's time
// of this thread is what counts, on more the time that passes. TEXT picks works by name.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "hwy/base.h"
#include "test/model_bytes.h"
#include "test/runtime.h"

namespace rope::bench {
namespace {

using test::FloatsAttribute;
using test::IntAttribute;
using test::Message;
using test::Ort;
using test::StringAttribute;
using test::Text;

constexpr int kFloat = 1;
constexpr int kInt64 = 7;
constexpr int kFloat16 = 10;
constexpr int kBFloat16 = 16;

size_t SizeOf(int type) { return type == kInt64 ? 8 : type == kFloat ? 4 : 2; }

// Query and key of some tokens.
struct Work {
  std::string name;
  int64_t batch, length, heads, kv_heads, size;
  int64_t rotary_dim = 0;  // 0: all of a head
  bool by_head = false;    // [batch, heads, length, size] instead of [batch, length, heads, size]
  bool interleaved = false;
  int type = kFloat;

  int64_t pairs() const { return (rotary_dim == 0 ? size : rotary_dim) / 2; }
  // Read and written.
  double Bytes() const {
    return 2.0 * static_cast<double>(batch * length * (heads + kv_heads) * size) *
           static_cast<double>(SizeOf(type));
  }
  std::vector<int64_t> Shape(int64_t of, bool flat) const {
    if (by_head) return {batch, of, length, size};
    if (flat) return {batch, length, of * size};
    return {batch, length, of, size};
  }
};

std::vector<Work> Works() {
  std::vector<Work> list = {
      {"prefill 32/8 d128 L2048, bshd", 1, 2048, 32, 8, 128},
      {"prefill 32/8 d128 L2048, bhsd", 1, 2048, 32, 8, 128, 0, true},
      {"prefill 32/8 d128 L2048, interleaved", 1, 2048, 32, 8, 128, 0, false, true},
      {"prefill 32/32 d80 L2048, 32 of 80", 1, 2048, 32, 32, 80, 32},
      {"prefill 9/3 d64 L512, bshd", 1, 512, 9, 3, 64},
      {"decode 32/8 d128, 64 rows", 64, 1, 32, 8, 128},
      {"decode 32/8 d128, one token", 1, 1, 32, 8, 128},
  };
  for (const int type : {kFloat16, kBFloat16}) {
    for (const size_t i : {0, 2, 4}) {
      list.push_back(list[i]);
      list.back().type = type;
      list.back().name += type == kFloat16 ? ", float16" : ", bfloat16";
    }
  }
  return list;
}

// Memory as ONNX Runtime allocates it: at a multiple of a cache line.
class Bytes {
 public:
  explicit Bytes(size_t size)
      : size_(size), data_(static_cast<char*>(std::aligned_alloc(64, (size + 63) / 64 * 64))) {
    if (data_ == nullptr) std::abort();
    memset(data_.get(), 0, size);
  }
  char* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  size_t size_;
  std::unique_ptr<char, Free> data_;
};

struct Tensor {
  std::string name;
  int type = 0;
  std::vector<int64_t> shape;
  Bytes bytes;
  OrtValue* value = nullptr;
};

template <typename T>
void Put(float x, char* to) {
  const T t = hwy::ConvertScalarTo<T>(x);
  memcpy(to, &t, sizeof(T));
}
void Put(int type, float x, char* to) {
  if (type == kFloat) return Put<float>(x, to);
  if (type == kFloat16) return Put<hwy::float16_t>(x, to);
  Put<hwy::bfloat16_t>(x, to);
}
float Get(int type, const char* from) {
  if (type == kFloat) return *reinterpret_cast<const float*>(from);
  if (type == kFloat16) {
    return hwy::ConvertScalarTo<float>(*reinterpret_cast<const hwy::float16_t*>(from));
  }
  return hwy::ConvertScalarTo<float>(*reinterpret_cast<const hwy::bfloat16_t*>(from));
}

// A session of nodes with its tensors.
class Session {
 public:
  explicit Session(std::string name) : name_(std::move(name)) {}
  ~Session() {
    for (auto& t : tensors_) {
      if (t->value != nullptr) Ort().ReleaseValue(t->value);
    }
    if (session_ != nullptr) Ort().ReleaseSession(session_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Tensor& Add(bool output, const std::string& name, int type, std::vector<int64_t> shape) {
    size_t count = 1;
    for (const int64_t d : shape) count *= static_cast<size_t>(d);
    tensors_.push_back(
        std::make_unique<Tensor>(Tensor{name, type, shape, Bytes(count * SizeOf(type)), nullptr}));
    graph_.Sub(output ? 12 : 11, test::ValueInfo(name, type, static_cast<int>(shape.size())));
    (output ? outputs_ : inputs_).push_back(tensors_.back().get());
    return *tensors_.back();
  }

  void AddNode(const std::string& op, const std::string& domain,
               const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
               const std::vector<Message>& attributes) {
    Message node;
    for (const auto& name : inputs) node.Bytes(1, name);
    for (const auto& name : outputs) node.Bytes(2, name);
    node.Bytes(3, outputs[0]).Bytes(4, op);
    for (const Message& a : attributes) node.Sub(5, a);
    graph_.Sub(1, node.Bytes(7, domain));
  }

  // The text says why there is no session.
  std::string Open(const std::string& library, int threads) {
    graph_.Bytes(2, "g");
    const std::string model = Message()
                                  .Int(1, 9)
                                  .Sub(7, graph_)
                                  .Sub(8, Message().Bytes(1, "").Int(2, 18))
                                  .Sub(8, Message().Bytes(1, "rope.rewrite").Int(2, 1))
                                  .Sub(8, Message().Bytes(1, "com.microsoft").Int(2, 1))
                                  .bytes();
    std::string error = test::CreateSession(model, library, threads, &session_);
    for (auto& t : tensors_) {
      if (!error.empty()) break;
      error = Text(Ort().CreateTensorWithDataAsOrtValue(
          test::CpuMemory(), t->bytes.data(), t->bytes.size(), t->shape.data(), t->shape.size(),
          static_cast<ONNXTensorElementDataType>(t->type), &t->value));
    }
    return error;
  }

  // In place the outputs are the inputs' buffers.
  std::string Run(bool in_place) {
    std::vector<const char*> names, results;
    std::vector<OrtValue*> from, to;
    for (const Tensor* t : inputs_) names.push_back(t->name.c_str()), from.push_back(t->value);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      results.push_back(outputs_[i]->name.c_str());
      to.push_back(in_place ? inputs_[i]->value : outputs_[i]->value);
    }
    return Text(Ort().Run(session_, nullptr, names.data(), from.data(), from.size(), results.data(),
                          results.size(), to.data()));
  }

  const std::string& name() const { return name_; }
  const std::vector<Tensor*>& inputs() const { return inputs_; }
  const std::vector<Tensor*>& outputs() const { return outputs_; }

 private:
  const std::string name_;
  Message graph_;
  std::vector<std::unique_ptr<Tensor>> tensors_;
  std::vector<Tensor*> inputs_, outputs_;
  OrtSession* session_ = nullptr;
};

std::vector<float> Frequencies(int64_t pairs) {
  std::vector<float> out;
  for (int64_t i = 0; i < pairs; ++i) {
    out.push_back(static_cast<float>(
        std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(pairs))));
  }
  return out;
}

void AddTensors(Session& s, const Work& w, bool flat) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(65537);
  for (float& x : numbers) x = normal(random);
  for (const char* name : {"query", "key"}) {
    Tensor& t = s.Add(false, name, w.type, w.Shape(*name == 'q' ? w.heads : w.kv_heads, flat));
    for (size_t i = 0; i < t.bytes.size() / SizeOf(w.type); ++i) {
      Put(w.type, numbers[i % numbers.size()], t.bytes.data() + i * SizeOf(w.type));
    }
  }
  Tensor& ids = s.Add(false, "position_ids", kInt64, {w.batch, w.length});
  for (int64_t i = 0; i < w.batch * w.length; ++i) {
    const int64_t p = i % w.length;
    memcpy(ids.bytes.data() + static_cast<size_t>(i) * 8, &p, 8);
  }
  for (const char* name : {"rotated_query", "rotated_key"}) {
    s.Add(true, name, w.type, w.Shape(name[8] == 'q' ? w.heads : w.kv_heads, flat));
  }
}

std::unique_ptr<Session> Ours(const Work& w) {
  auto s = std::make_unique<Session>("Rotary");
  AddTensors(*s, w, false);
  s->AddNode("Rotary", "rope.rewrite", {"query", "key", "position_ids"},
             {"rotated_query", "rotated_key"},
             {IntAttribute("spec_version", 7), IntAttribute("interleaved", w.interleaved),
              StringAttribute("tensor_format", w.by_head ? "bhsd" : "bshd"),
              FloatsAttribute("frequencies", Frequencies(w.pairs()))});
  return s;
}

// Its tables of cosines and sines are inputs, made beforehand.
std::unique_ptr<Session> Peer(const Work& w) {
  auto s = std::make_unique<Session>("RotaryEmbedding");
  AddTensors(*s, w, true);
  const auto frequencies = Frequencies(w.pairs());
  for (const char* name : {"cos", "sin"}) {
    Tensor& t = s->Add(false, name, w.type, {w.length, w.pairs()});
    for (int64_t i = 0; i < w.length * w.pairs(); ++i) {
      const double angle = static_cast<double>(static_cast<float>(i / w.pairs()) *
                                               frequencies[static_cast<size_t>(i % w.pairs())]);
      Put(w.type, static_cast<float>(*name == 'c' ? std::cos(angle) : std::sin(angle)),
          t.bytes.data() + static_cast<size_t>(i) * SizeOf(w.type));
    }
  }
  for (const std::string of : {"query", "key"}) {
    std::vector<Message> attributes = {IntAttribute("interleaved", w.interleaved)};
    if (w.rotary_dim > 0) {
      attributes.push_back(IntAttribute("num_heads", of == "query" ? w.heads : w.kv_heads));
      attributes.push_back(IntAttribute("rotary_embedding_dim", w.rotary_dim));
    }
    s->AddNode("RotaryEmbedding", "com.microsoft", {of, "position_ids", "cos", "sin"},
               {"rotated_" + of}, attributes);
  }
  return s;
}

// Copies from inputs to outputs, on as many threads as the ops have.
void Copy(const Session& s, int threads) {
  const auto part = [&](int thread) {
    for (size_t i = 0; i < s.outputs().size(); ++i) {
      const size_t bytes = s.outputs()[i]->bytes.size();
      const size_t begin = bytes * static_cast<size_t>(thread) / static_cast<size_t>(threads);
      const size_t end = bytes * static_cast<size_t>(thread + 1) / static_cast<size_t>(threads);
      memcpy(s.outputs()[i]->bytes.data() + begin, s.inputs()[i]->bytes.data() + begin,
             end - begin);
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(part, t);
  part(0);
  for (auto& other : others) other.join();
}

double Now(int threads) {
  timespec t{};
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double Median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// The largest difference of the first outputs.
double Difference(const Session& a, const Session& b) {
  const Tensor& x = *a.outputs()[0];
  const Tensor& y = *b.outputs()[0];
  double largest = 0;
  for (size_t i = 0; i < x.bytes.size(); i += SizeOf(x.type)) {
    largest = std::max(largest, std::abs(static_cast<double>(Get(x.type, x.bytes.data() + i)) -
                                         static_cast<double>(Get(y.type, y.bytes.data() + i))));
  }
  return largest;
}

struct Way {
  std::string name;
  std::function<std::string()> run;
  std::vector<double> seconds;
  int repeat = 1;
};

bool RunWork(const Work& w, const std::string& library, int threads, int rounds) {
  auto ours = Ours(w);
  auto peer = Peer(w);
  if (const std::string error = ours->Open(library, threads); !error.empty()) {
    std::fprintf(stderr, "%s: %s\n", w.name.c_str(), error.c_str());
    return false;
  }
  std::vector<Way> ways = {
      {"copy", [&] { return Copy(*ours, threads), std::string(); }, {}},
      {"Rotary", [&] { return ours->Run(false); }, {}},
      {"RotaryEmbedding", [&] { return peer->Run(false); }, {}},
      {"Rotary in place", [&] { return ours->Run(true); }, {}},
  };
  if (const std::string error = peer->Open(library, threads); !error.empty()) {
    ways.erase(ways.begin() + 2);  // it has no bfloat16 on the CPU
  }
  double difference = NAN;
  for (int round = -1; round < rounds; ++round) {
    for (Way& way : ways) {
      if (threads > 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const double start = Now(threads);
      for (int i = 0; i < way.repeat; ++i) {
        if (const std::string error = way.run(); !error.empty()) {
          std::fprintf(stderr, "%s, %s: %s\n", w.name.c_str(), way.name.c_str(), error.c_str());
          return false;
        }
      }
      const double each = (Now(threads) - start) / way.repeat;
      if (round < 0) {
        way.repeat = static_cast<int>(std::clamp(0.02 / std::max(each, 1e-7), 1.0, 5000.0));
        if (way.name == "RotaryEmbedding") difference = Difference(*ours, *peer);
      } else {
        way.seconds.push_back(each);
      }
    }
  }
  const double copy = Median(ways[0].seconds);
  const double own = Median(ways[1].seconds);
  for (const Way& way : ways) {
    const double s = Median(way.seconds);
    std::printf("%-44s %-16s %10.4f ms  %6.1f GB/s  of copy %4.0f %%  this/Rotary %5.2f\n",
                w.name.c_str(), way.name.c_str(), s * 1e3, w.Bytes() / s / 1e9, 100 * copy / s,
                s / own);
  }
  if (!std::isnan(difference)) std::printf("%-44s differ by %.1e\n", "", difference);
  std::fflush(stdout);
  return true;
}

int Main(int argc, char** argv) {
  const char* runtime = std::getenv("ONNXRUNTIME_SHARED_LIBRARY_PATH");
  if (argc < 2 || runtime == nullptr) {
    std::fprintf(stderr,
                 "usage: rope_rotary_bench LIBROPE_OPS [THREADS [ROUNDS [TEXT]]], with "
                 "ONNXRUNTIME_SHARED_LIBRARY_PATH set\n");
    return 2;
  }
  if (const std::string error = test::OpenRuntime(runtime); !error.empty()) {
    std::fprintf(stderr, "rope_rotary_bench: %s\n", error.c_str());
    return 1;
  }
  const int threads = argc > 2 ? std::max(1, std::atoi(argv[2])) : 1;
  const int rounds = argc > 3 ? std::max(1, std::atoi(argv[3])) : 9;
  std::printf("ONNX Runtime %s, %d threads, %d rounds\n", test::RuntimeVersion(), threads, rounds);
  bool all = true;
  for (const Work& w : Works()) {
    if (argc > 4 && w.name.find(argv[4]) == std::string::npos) continue;
    all = RunWork(w, argv[1], threads, rounds) && all;
  }
  return all ? 0 : 1;
}

}  // namespace
}  // namespace rope::bench

int main(int argc, char** argv) { return rope::bench::Main(argc, argv); }
