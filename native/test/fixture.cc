#include "fixture.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <thread>

namespace rope::test {
const char* NameOf(Element element) {
  if (element == Element::kFloat16) return "float16";
  if (element == Element::kInt8) return "int8";
  return element == Element::kBFloat16 ? "bfloat16" : "float";
}

bool MultipliesBFloat16(const std::string& target) {
  return target == "AVX3_ZEN4" || target == "AVX3_SPR";
}

float Rounded(Element element, float x) {
  if (element == Element::kFloat16) {
    return hwy::ConvertScalarTo<float>(hwy::ConvertScalarTo<Float16>(x));
  }
  if (element == Element::kBFloat16) {
    return hwy::ConvertScalarTo<float>(hwy::ConvertScalarTo<BFloat16>(x));
  }
  return x;
}

void TestHost::ParallelFor(size_t count, void (*fn)(void*, size_t), void* data) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) fn(data, i);
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads_; ++t) others.emplace_back(work);
  work();
  for (auto& other : others) other.join();
}

// The size stands in front of the memory.
void* TestHost::Allocate(size_t bytes) {
  const size_t now = in_use_ += bytes;
  if (now > limit_) {
    in_use_ -= bytes;
    return nullptr;
  }
  size_t peak = peak_;
  while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
  }
  auto* block = static_cast<size_t*>(std::malloc(bytes + 2 * sizeof(size_t)));
  *block = bytes;
  return block + 2;
}

void TestHost::Free(void* memory) {
  size_t* block = static_cast<size_t*>(memory) - 2;
  in_use_ -= *block;
  std::free(block);
}

bool IsPrompt(const Call& call) {
  return call.length * (call.params.num_heads / call.params.kv_num_heads) > 16;
}

std::vector<float> Frequencies(int64_t rotary_dim, double base) {
  std::vector<float> out;
  for (int64_t i = 0; i < rotary_dim; i += 2) {
    out.push_back(static_cast<float>(
        std::pow(base, -static_cast<double>(i) / static_cast<double>(rotary_dim))));
  }
  return out;
}

QuantizedRow Quantized(const float* row, int64_t size) {
  QuantizedRow out;
  float largest = 0;
  bool finite = true;
  for (int64_t x = 0; x < size; ++x) {
    largest = std::max(largest, std::abs(row[x]));
    finite = finite && std::isfinite(row[x]);
  }
  out.scale = finite ? largest / 127 : NAN;
  for (int64_t x = 0; x < size; ++x) {
    const float steps = out.scale > 0 ? std::nearbyint(row[x] / out.scale) : 0;
    out.integers.push_back(static_cast<int8_t>(std::clamp(steps, -127.0f, 127.0f)));
  }
  return out;
}

std::vector<float> Call::AsCached(const std::vector<float>& rows, int64_t size) const {
  std::vector<float> out;
  for (size_t at = 0; at < rows.size(); at += static_cast<size_t>(size)) {
    if (cache == Element::kInt8) {
      const QuantizedRow row = Quantized(rows.data() + at, size);
      for (const int8_t x : row.integers) out.push_back(static_cast<float>(x) * row.scale);
      continue;
    }
    for (int64_t x = 0; x < size; ++x) {
      out.push_back(Rounded(cache.value_or(element), rows[at + static_cast<size_t>(x)]));
    }
  }
  return out;
}

void Call::Draw(uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const auto draw = [&](int64_t count, float times) {
    std::vector<float> out(static_cast<size_t>(count));
    for (float& x : out) x = Rounded(element, normal(random) * times);
    return out;
  };
  const int64_t heads = params.num_heads;
  const int64_t kv = params.kv_num_heads;
  query = draw(batch * heads * length * head_size, magnitude);
  key = draw(batch * kv * NewKeys() * head_size, magnitude);
  value = draw(batch * kv * NewKeys() * v_head_size, 1);
  past_key = draw(batch * kv * PastRows() * head_size, magnitude);
  past_value = draw(batch * kv * PastRows() * v_head_size, 1);
  if (cache) {
    // Rows whose scale is a power of two are the same once more rounded.
    const auto store = [&](std::vector<float>& rows, int64_t size) {
      for (size_t at = 0; at < rows.size() && cache == Element::kInt8; at += size) {
        float largest = 0;
        for (int64_t x = 0; x < size; ++x) largest = std::max(largest, std::abs(rows[at + x]));
        rows[at] = 127 * std::exp2(std::ceil(std::log2(largest / 127)));
      }
      rows = AsCached(rows, size);
    };
    store(past_key, head_size);
    store(past_value, v_head_size);
  }
  // What stands behind the tokens must not matter.
  for (int64_t i = 0; i < batch * kv && capacity >= 0; ++i) {
    const int64_t tokens = std::min(Total(i / kv) - length, capacity);
    const auto poison = [&](std::vector<float>& buffer, int64_t size) {
      const auto head = buffer.begin() + i * capacity * size;
      std::fill(head + tokens * size, head + capacity * size, NAN);
    };
    poison(past_key, head_size);
    poison(past_value, v_head_size);
  }
  output.assign(static_cast<size_t>(batch * heads * length * v_head_size), NAN);
  if (keep_cache) {
    present_key.assign(static_cast<size_t>(batch * kv * PresentRows() * head_size), NAN);
    present_value.assign(static_cast<size_t>(batch * kv * PresentRows() * v_head_size), NAN);
  }
  DrawPositions(seed);
  mask.clear();
  if (left_padding >= 0) {
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t j = 0; j < past + NewKeys(); ++j) mask.push_back(j >= (b + 1) * left_padding);
    }
  }
  DrawMasks(seed);
}

// One position after the other, or, on several axes, others for each row of the batch.
void Call::DrawPositions(uint32_t seed) {
  positions.clear();
  for (int64_t i = 0; i < length && first_position >= 0 && axes == 0; ++i) {
    positions.push_back(first_position + i);
  }
  std::mt19937 random(seed + 99);
  for (int64_t i = 0; i < axes * batch * length; ++i) {
    positions.push_back(std::max<int64_t>(0, first_position) + random() % 400);
  }
}

// Document ids, biases and sinks.
void Call::DrawMasks(uint32_t seed) {
  std::mt19937 random(seed + 77);
  std::normal_distribution<float> normal;
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint32_t>(n));
  };
  ids.clear();
  int64_t id = 0;
  for (int64_t i = 0; i < batch * (past + length) && documents > 0; ++i) {
    if (below(change_every) == 0) id = below(documents + 1) - 1;
    ids.push_back(id);
  }
  const auto draw_bias = [&](const std::vector<int64_t>& dims) {
    std::vector<float> out(dims.empty() ? 0 : 1);
    for (const int64_t dim : dims) out.resize(out.size() * static_cast<size_t>(dim));
    for (float& x : out) {
      x = bias_hides > 0 && below(bias_hides) == 0 ? -INFINITY : Rounded(element, normal(random));
    }
    return out;
  };
  bias = draw_bias(bias_dims);
  bias_before = draw_bias(bias_before_dims);
  sinks.clear();
  for (int64_t h = 0; h < params.num_heads && has_sinks; ++h) {
    sinks.push_back(Rounded(element, 3 * normal(random)));
  }
  log_sum_exp.assign(static_cast<size_t>(batch * params.num_heads * length), NAN);
}

void Call::AddMasks(AttentionArgs<float>& args) {
  const auto broadcast = [](const std::vector<float>& numbers, const std::vector<int64_t>& dims) {
    if (dims.empty()) return Bias<float>{};
    int64_t strides[4];
    int64_t stride = 1;
    for (size_t d = 4; d-- > 0;) {
      strides[d] = dims[d] == 1 ? 0 : stride;
      stride *= dims[d];
    }
    return Bias<float>{numbers.data(), strides[0], strides[1], strides[2], strides[3]};
  };
  args.bias = broadcast(bias, bias_dims);
  args.bias_before_softcap = broadcast(bias_before, bias_before_dims);
  if (!ids.empty()) {
    args.documents = ids.data();
    args.documents_batch_stride = past + length;
  }
  if (!sinks.empty()) args.sinks = sinks.data();
  args.log_sum_exp = log_sum_exp.data();
}

AttentionArgs<float> Call::Args() {
  const int64_t heads = params.num_heads;
  const int64_t kv = params.kv_num_heads;
  const int64_t total = past + NewKeys();
  if (in_place) {
    present_key = past_key;
    present_value = past_value;
  }
  const auto rows = [&](auto* data, int64_t n, int64_t count, int64_t size, bool by_token) {
    using T = std::remove_reference_t<decltype(*data)>;
    return by_token ? Rows<T>{data, count * n * size, size, n * size}
                    : Rows<T>{data, n * count * size, count * size, size};
  };
  const auto input = [](const std::vector<float>& v) { return v.empty() ? nullptr : v.data(); };
  AttentionArgs<float> args;
  args.batch = batch;
  args.length = length;
  args.new_keys = NewKeys();
  args.max_past = past;
  if (!row_past.empty()) args.row_past = row_past.data();
  args.head_size = head_size;
  args.v_head_size = v_head_size;
  args.query = rows(input(query), heads, length, head_size, flat);
  args.key = rows(input(key), kv, NewKeys(), head_size, flat);
  args.value = rows(input(value), kv, NewKeys(), v_head_size, flat);
  args.past_key = rows(input(in_place ? present_key : past_key), kv, PastRows(), head_size, false);
  args.past_value =
      rows(input(in_place ? present_value : past_value), kv, PastRows(), v_head_size, false);
  args.output = rows(output.data(), heads, length, v_head_size, flat);
  args.present_rows = PresentRows();
  args.present_key =
      rows(keep_cache ? present_key.data() : nullptr, kv, PresentRows(), head_size, false);
  args.present_value =
      rows(keep_cache ? present_value.data() : nullptr, kv, PresentRows(), v_head_size, false);
  if (!positions.empty()) {
    args.positions = positions.data();
    const bool own_rows = axes > 0 && batch > 1;
    args.positions_batch_stride = own_rows ? length : 0;
    args.position_axes = std::max<int64_t>(1, axes);
    args.positions_axis_stride = axes > 0 ? batch * length : 0;
  }
  if (ring > 0) args.ring = {params.first_keys, ring - params.first_keys};
  args.mask_width = mask_width > 0 ? mask_width : total;
  if (!mask.empty()) {
    args.mask = mask.data();
    args.mask_batch_stride = static_cast<int64_t>(mask.size()) == total ? 0 : total;
  }
  AddMasks(args);
  return args;
}

std::vector<float> Call::PresentKeys() const {
  std::vector<float> out;
  const int64_t kv = params.kv_num_heads;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < kv; ++h) {
      const float* head = present_key.data() + (b * kv + h) * PresentRows() * head_size;
      for (int64_t j = 0; j < Total(b); ++j) {
        if (!InRing(j, Total(b))) continue;
        const float* row = head + (ring > 0 ? RingRow(j) : j) * head_size;
        out.insert(out.end(), row, row + head_size);
      }
    }
  }
  return out;
}

bool Call::RestIsRight() const {
  const auto right = [&](const std::vector<float>& present, int64_t size) {
    for (int64_t i = 0; i < batch * params.kv_num_heads; ++i) {
      const float* head = present.data() + i * PresentRows() * size;
      const int64_t total = Total(i / params.kv_num_heads);
      for (int64_t x = total * size; x < PresentRows() * size; ++x) {
        if (in_place ? !std::isnan(head[x]) : head[x] != 0) return false;
      }
    }
    return true;
  };
  return !keep_cache || (right(present_key, head_size) && right(present_value, v_head_size));
}

std::vector<float> Call::OutputByHead() const {
  if (!flat) return output;
  std::vector<float> out;
  const int64_t heads = params.num_heads;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < length; ++i) {
        const float* row = output.data() + ((b * length + i) * heads + h) * v_head_size;
        out.insert(out.end(), row, row + v_head_size);
      }
    }
  }
  return out;
}

}  // namespace rope::test
