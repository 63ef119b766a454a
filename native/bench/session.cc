#include "session.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "hwy/base.h"
#include "test/model_bytes.h"
#include "test/runtime.h"

namespace rope::bench {
namespace {

using test::FloatsAttribute;
using test::IntAttribute;
using test::IntsAttribute;
using test::NodeModel;
using test::Ort;
using test::StringAttribute;
using test::Text;

constexpr int kFloat = 1;
constexpr int kInt8 = 3;
constexpr int kInt32 = 6;
constexpr int kInt64 = 7;
constexpr int kFloat16 = 10;
constexpr int kBFloat16 = 16;

size_t SizeOf(int type) {
  if (type == kInt64) return 8;
  if (type == kInt8) return 1;
  return type == kFloat || type == kInt32 ? 4 : 2;
}

int TypeOf(Element element) {
  if (element == Element::kFloat16) return kFloat16;
  if (element == Element::kInt8) return kInt8;
  return element == Element::kBFloat16 ? kBFloat16 : kFloat;
}

template <typename T>
void PutAs(double x, char* to) {
  const T t = hwy::ConvertScalarTo<T>(static_cast<float>(x));
  memcpy(to, &t, sizeof(T));
}

void Put(int type, double x, char* to) {
  if (type == kFloat) return PutAs<float>(x, to);
  if (type == kInt8) {
    *to = static_cast<char>(std::clamp(std::lround(x * 40), -127L, 127L));
    return;
  }
  if (type == kFloat16) return PutAs<hwy::float16_t>(x, to);
  if (type == kBFloat16) return PutAs<hwy::bfloat16_t>(x, to);
  if (type == kInt32) return PutAs<int32_t>(x, to);
  PutAs<int64_t>(x, to);
}

template <typename T>
float GetAs(const char* from) {
  T t;
  memcpy(&t, from, sizeof(T));
  return hwy::ConvertScalarTo<float>(t);
}

std::vector<float> Frequencies(int64_t size) {
  std::vector<float> out;
  for (int64_t i = 0; i < size; i += 2) {
    const double exponent = -static_cast<double>(i) / static_cast<double>(size);
    out.push_back(static_cast<float>(std::pow(10000.0, exponent)));
  }
  return out;
}

// ALiBi's slope of a head, for a power of two of heads.
float SlopeOf(int64_t head, int64_t heads) {
  return std::exp2(-8.0f * static_cast<float>(head + 1) / static_cast<float>(heads));
}

// T5's buckets of 32 distances or ranges, up to 128.
void AddBuckets(const Work& work, std::vector<test::Message>& attributes) {
  std::vector<int64_t> starts;
  std::vector<float> biases;
  for (int64_t b = 0; b < 32; ++b) {
    const double steps = static_cast<double>(b - 16) / 16;
    starts.push_back(b < 16 ? b : static_cast<int64_t>(std::ceil(16 * std::pow(8.0, steps))));
    for (int64_t h = 0; h < work.heads; ++h) biases.push_back(static_cast<float>((b * h) % 7) / 4);
  }
  attributes.push_back(IntsAttribute("distance_starts", starts));
  attributes.push_back(FloatsAttribute("distance_biases", biases));
}

std::vector<test::Message> AttributesOf(const Work& work, const Contestant& c) {
  std::vector<test::Message> out = {IntAttribute("num_heads", work.heads),
                                    IntAttribute("kv_num_heads", work.kv_heads)};
  if (!c.ours) {
    out.push_back(IntAttribute("do_rotary", 1));
    if (c.cache) {  // int8, with one scale for all keys and one for all values
      out.push_back(StringAttribute("k_quant_type", "PER_TENSOR"));
      out.push_back(StringAttribute("v_quant_type", "PER_TENSOR"));
      out.push_back(IntAttribute("kv_cache_bit_width", 8));
    }
    return out;
  }
  const bool rotates = !c.slopes && !c.buckets && !c.unrotated && !c.bias_tensor;
  const int64_t version = c.cache ? 8 : c.slopes || c.buckets ? 7 : c.raw_cache ? 3 : 2;
  out.push_back(IntAttribute("spec_version", version));
  if (c.cache) {
    const char* name = *c.cache == Element::kInt8      ? "int8"
                       : *c.cache == Element::kFloat16 ? "float16"
                                                       : "bfloat16";
    out.push_back(StringAttribute("cache_type", name));
  }
  if (rotates) out.push_back(FloatsAttribute("frequencies", Frequencies(work.head_size)));
  if (c.slopes) {
    std::vector<float> slopes;
    for (int64_t h = 0; h < work.heads; ++h) slopes.push_back(SlopeOf(h, work.heads));
    out.push_back(FloatsAttribute("distance_slopes", slopes));
  }
  if (c.buckets) AddBuckets(work, out);
  out.push_back(StringAttribute("precision", c.fast ? "fast" : "exact"));
  if (c.raw_cache) out.push_back(StringAttribute("cache", "raw"));
  if (c.two_bands) {
    const int64_t shift = work.total() / 3;
    out.push_back(IntsAttribute("band_starts", {0, shift}));
    out.push_back(FloatsAttribute("band_query_offsets", {0, 128 - static_cast<float>(shift)}));
  }
  return out;
}

}  // namespace

Session::Session(const Work& work, const Contestant& contestant, const std::string& library,
                 int threads) {
  AddTensors(work, contestant);
  NodeModel model;
  if (!contestant.ours) model.op = "GroupQueryAttention", model.domain = "com.microsoft";
  model.attributes = AttributesOf(work, contestant);
  for (const Tensor& t : inputs_) {
    model.inputs.push_back(
        {t.shape.empty() ? "" : t.name, t.type, static_cast<int>(t.shape.size())});
  }
  for (const Tensor& t : outputs_) {
    model.outputs.push_back(
        {t.shape.empty() ? "" : t.name, t.type, static_cast<int>(t.shape.size())});
  }
  error_ = test::CreateSession(model.Encode(), library, threads, &session_);
  if (error_.empty()) MakeValues();
}

Session::~Session() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].value != nullptr) Ort().ReleaseValue(outputs_[i].value);
  }
  for (Tensor& t : inputs_) {
    if (t.value != nullptr) Ort().ReleaseValue(t.value);
  }
  if (session_ != nullptr) Ort().ReleaseSession(session_);
}

// A tensor of zeros; one without dimensions is left out of the node.
Session::Tensor& Session::Add(std::vector<Tensor>& to, const std::string& name, int type,
                              std::vector<int64_t> shape) {
  size_t count = 1;
  for (const int64_t d : shape) count *= static_cast<size_t>(d);
  to.push_back({name, type, std::move(shape),
                std::vector<char>(std::max<size_t>(8, count * SizeOf(type))), nullptr});
  return to.back();
}

void Session::AddRandom(const std::string& name, int type, std::vector<int64_t> shape,
                        uint32_t seed) {
  Tensor& t = Add(inputs_, name, type, std::move(shape));
  // A prime number of numbers, over and over, so that no two rows are alike.
  constexpr size_t kNumbers = 65537;
  const size_t period = kNumbers * SizeOf(type);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (size_t at = 0; at < t.bytes.size(); at += SizeOf(type)) {
    if (at < period) {
      Put(type, static_cast<double>(normal(random)), t.bytes.data() + at);
    } else {
      memcpy(t.bytes.data() + at, t.bytes.data() + at - period, SizeOf(type));
    }
  }
}

void Session::AddInts(const std::string& name, int type, std::vector<int64_t> shape,
                      const std::vector<int64_t>& values) {
  Tensor& t = Add(inputs_, name, type, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) {
    Put(type, static_cast<double>(values[i]), t.bytes.data() + i * SizeOf(type));
  }
}

void Session::AddTensors(const Work& work, const Contestant& c) {
  const int type = TypeOf(c.element);
  const int64_t rows = work.in_place ? work.total() : work.past;
  AddRandom("query", type, {1, work.length, work.heads * work.head_size}, 1);
  AddRandom("key", type, {1, work.length, work.kv_heads * work.head_size}, 2);
  AddRandom("value", type, {1, work.length, work.kv_heads * work.head_size}, 3);
  const int cache = c.cache ? TypeOf(*c.cache) : type;
  AddRandom("past_key", cache, {1, work.kv_heads, rows, work.head_size}, 4);
  AddRandom("past_value", cache, {1, work.kv_heads, rows, work.head_size}, 5);
  if (c.ours) {
    const bool scaled = cache == kInt8;
    if (work.in_place || c.documents > 0 || c.bias_tensor || scaled) {
      for (const char* name : {"position_ids", "attention_mask"}) Add(inputs_, name, kInt64, {});
      AddBias(work, c);
      if (work.in_place) {
        AddInts("cache_length", kInt32, {1}, {work.past});
      } else {
        Add(inputs_, "cache_length", kInt32, {});
      }
    }
    if (c.documents > 0) {
      std::vector<int64_t> ids;
      for (int64_t j = 0; j < work.total(); ++j) ids.push_back(1 + j * c.documents / work.total());
      AddInts("document_ids", kInt64, {1, work.total()}, ids);
    }
    if (scaled) {
      for (const char* name : {"document_ids", "sinks", "bias_before", "total_length"}) {
        Add(inputs_, name, kInt64, {});
      }
      for (const char* name : {"past_key_scale", "past_value_scale"}) {
        Tensor& t = Add(inputs_, name, kFloat, {1, work.kv_heads, rows, 1});
        for (size_t at = 0; at < t.bytes.size(); at += 4) Put(kFloat, 0.025, t.bytes.data() + at);
      }
    }
  } else {
    AddInts("seqlens_k", kInt32, {1}, {work.total() - 1});
    AddInts("total_length", kInt32, {1}, {work.total()});
    const auto frequencies = Frequencies(work.head_size);
    const int64_t pairs = work.head_size / 2;
    for (const bool sine : {false, true}) {
      Tensor& t = Add(inputs_, sine ? "sin" : "cos", type, {work.total(), pairs});
      for (int64_t i = 0; i < work.total() * pairs; ++i) {
        const double angle = static_cast<double>(static_cast<float>(i / pairs) *
                                                 frequencies[static_cast<size_t>(i % pairs)]);
        Put(type, sine ? std::sin(angle) : std::cos(angle),
            t.bytes.data() + static_cast<size_t>(i) * SizeOf(type));
      }
    }
    if (c.cache) {
      Add(inputs_, "position_ids", kInt64, {});
      for (const char* name : {"attention_bias", "head_sink"}) Add(inputs_, name, type, {});
      for (const char* name : {"k_scale", "v_scale"}) {
        Put(kFloat, 0.025, Add(inputs_, name, kFloat, {1}).bytes.data());
      }
    }
  }
  Add(outputs_, "output", type, {1, work.length, work.heads * work.head_size});
  for (const char* name : {"present_key", "present_value"}) {
    Tensor& t = Add(outputs_, name, cache, {1, work.kv_heads, work.total(), work.head_size});
    if (work.in_place) t.bytes.clear();
  }
  if (cache != kInt8 || !c.ours) return;
  Add(outputs_, "log_sum_exp", kFloat, {});
  for (const char* name : {"present_key_scale", "present_value_scale"}) {
    Tensor& t = Add(outputs_, name, kFloat, {1, work.kv_heads, work.total(), 1});
    if (work.in_place) t.bytes.clear();
  }
}

// What ALiBi adds, as a tensor, where the contestant has it so.
void Session::AddBias(const Work& work, const Contestant& c) {
  const int type = TypeOf(c.element);
  if (!c.bias_tensor) {
    Add(inputs_, "attention_bias", type, {});
    return;
  }
  Tensor& t = Add(inputs_, "attention_bias", type, {1, work.heads, work.length, work.total()});
  char* to = t.bytes.data();
  for (int64_t h = 0; h < work.heads; ++h) {
    const auto slope = static_cast<double>(SlopeOf(h, work.heads));
    for (int64_t i = work.past; i < work.total(); ++i) {
      for (int64_t j = 0; j < work.total(); ++j, to += SizeOf(type)) {
        Put(type, -slope * static_cast<double>(std::abs(i - j)), to);
      }
    }
  }
}

void Session::MakeValues() {
  const bool in_place = outputs_[1].bytes.empty();
  const auto make = [&](Tensor& t, std::vector<const char*>& names,
                        std::vector<OrtValue*>& values) {
    if (t.shape.empty() || !error_.empty()) return;
    size_t bytes = SizeOf(t.type);
    for (const int64_t d : t.shape) bytes *= static_cast<size_t>(d);
    error_ = Text(Ort().CreateTensorWithDataAsOrtValue(
        test::CpuMemory(), t.bytes.data(), bytes, t.shape.data(), t.shape.size(),
        static_cast<ONNXTensorElementDataType>(t.type), &t.value));
    names.push_back(t.name.c_str());
    values.push_back(t.value);
  };
  for (Tensor& t : inputs_) make(t, input_names_, input_values_);
  for (Tensor& t : outputs_) make(t, output_names_, output_values_);
  if (!error_.empty() || !in_place) return;
  output_values_[1] = input_values_[3], output_values_[2] = input_values_[4];
  const size_t count = output_values_.size();  // the scales are last
  for (size_t i = 3; i < count; ++i)
    output_values_[i] = input_values_[input_values_.size() - count + i];
}

bool Session::Run() {
  error_ = Text(Ort().Run(session_, nullptr, input_names_.data(), input_values_.data(),
                          input_values_.size(), output_names_.data(), output_names_.size(),
                          output_values_.data()));
  return error_.empty();
}

float Session::OutputAt(size_t i) const {
  const Tensor& t = outputs_[0];
  const char* at = t.bytes.data() + i * SizeOf(t.type);
  if (t.type == kFloat) return GetAs<float>(at);
  return t.type == kFloat16 ? GetAs<hwy::float16_t>(at) : GetAs<hwy::bfloat16_t>(at);
}

double Session::Difference(const Session& a, const Session& b) {
  size_t count = 1;
  for (const int64_t d : a.outputs_[0].shape) count *= static_cast<size_t>(d);
  double largest = 0;
  for (size_t i = 0; i < count; ++i) {
    const double difference = std::abs(static_cast<double>(a.OutputAt(i) - b.OutputAt(i)));
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

}  // namespace rope::bench
