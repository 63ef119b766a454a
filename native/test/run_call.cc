// A call in tensors of its element type.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "check.h"
#include "fixture.h"

namespace rope::test {
namespace {

template <typename T>
std::vector<T> Narrow(const std::vector<float>& from) {
  std::vector<T> out;
  for (const float x : from) out.push_back(hwy::ConvertScalarTo<T>(x));
  return out;
}

template <typename T>
void WidenTo(const std::vector<T>& from, std::vector<float>& to) {
  for (size_t i = 0; i < from.size(); ++i) to[i] = hwy::ConvertScalarTo<float>(from[i]);
}

template <typename From, typename To>
Rows<To> Moved(const Rows<From>& rows, To* data) {
  return {rows.data == nullptr ? nullptr : data, rows.batch_stride, rows.head_stride,
          rows.row_stride};
}

template <typename From, typename To>
Bias<To> Moved(const Bias<From>& bias, const std::vector<To>& to) {
  return {bias.data == nullptr ? nullptr : to.data(), bias.batch_stride, bias.head_stride,
          bias.query_stride, bias.key_stride};
}

// A cache of type C: its numbers and, of int8, their scales.
template <typename C>
struct Cache {
  std::vector<C> numbers;
  std::vector<float> scales;

  Cache(const std::vector<float>& from, int64_t size) {
    if constexpr (std::is_same_v<C, int8_t>) {
      for (size_t at = 0; at < from.size(); at += static_cast<size_t>(size)) {
        const QuantizedRow row = Quantized(from.data() + at, size);
        numbers.insert(numbers.end(), row.integers.begin(), row.integers.end());
        scales.push_back(row.scale);
      }
    } else {
      numbers = Narrow<C>(from);
    }
  }

  void WidenTo(std::vector<float>& to, int64_t size) const {
    if constexpr (std::is_same_v<C, int8_t>) {
      for (size_t i = 0; i < numbers.size(); ++i) {
        to[i] = static_cast<float>(numbers[i]) * scales[i / static_cast<size_t>(size)];
      }
    } else {
      test::WidenTo(numbers, to);
    }
  }
};

// The scales of a cache's rows.
template <typename From, typename F>
Rows<F> ScalesOf(const Rows<From>& rows, std::vector<F>& scales, int64_t size) {
  if (rows.data == nullptr || scales.empty()) return {};
  return {scales.data(), rows.batch_stride / size, rows.head_stride / size, 1};
}

// The call in tensors of type T, with caches of type C.
template <typename T, typename C = T>
bool RunAs(Call& call, Host& host) {
  const AttentionArgs<float> wide = call.Args();
  const auto query = Narrow<T>(call.query);
  const auto key = Narrow<T>(call.key);
  const auto value = Narrow<T>(call.value);
  Cache<C> past_key(call.past_key, call.head_size);
  Cache<C> past_value(call.past_value, call.v_head_size);
  const auto bias = Narrow<T>(call.bias);
  const auto bias_before = Narrow<T>(call.bias_before);
  const auto sinks = Narrow<T>(call.sinks);
  auto output = Narrow<T>(call.output);
  Cache<C> present_key(call.present_key, call.head_size);
  Cache<C> present_value(call.present_value, call.v_head_size);
  AttentionArgs<T, C> args;
  args.batch = wide.batch;
  args.length = wide.length;
  args.new_keys = wide.new_keys;
  args.max_past = wide.max_past;
  args.ring = wide.ring;
  args.mask_width = wide.mask_width;
  args.row_past = wide.row_past;
  args.head_size = wide.head_size;
  args.v_head_size = wide.v_head_size;
  args.query = Moved(wide.query, query.data());
  args.key = Moved(wide.key, key.data());
  args.value = Moved(wide.value, value.data());
  Cache<C>& old_key = call.in_place ? present_key : past_key;
  Cache<C>& old_value = call.in_place ? present_value : past_value;
  args.past_key = Moved(wide.past_key, static_cast<const C*>(old_key.numbers.data()));
  args.past_value = Moved(wide.past_value, static_cast<const C*>(old_value.numbers.data()));
  const auto constant = [](const Rows<float>& rows) {
    return Rows<const float>{rows.data, rows.batch_stride, rows.head_stride, rows.row_stride};
  };
  args.past_key_scale = constant(ScalesOf(wide.past_key, old_key.scales, call.head_size));
  args.past_value_scale = constant(ScalesOf(wide.past_value, old_value.scales, call.v_head_size));
  args.output = Moved(wide.output, output.data());
  args.present_key = Moved(wide.present_key, present_key.numbers.data());
  args.present_value = Moved(wide.present_value, present_value.numbers.data());
  args.present_key_scale = ScalesOf(wide.present_key, present_key.scales, call.head_size);
  args.present_value_scale = ScalesOf(wide.present_value, present_value.scales, call.v_head_size);
  args.present_rows = wide.present_rows;
  args.positions = wide.positions;
  args.positions_batch_stride = wide.positions_batch_stride;
  args.position_axes = wide.position_axes;
  args.positions_axis_stride = wide.positions_axis_stride;
  args.mask = wide.mask;
  args.mask_batch_stride = wide.mask_batch_stride;
  args.documents = wide.documents;
  args.documents_batch_stride = wide.documents_batch_stride;
  args.bias = Moved(wide.bias, bias);
  args.bias_before_softcap = Moved(wide.bias_before_softcap, bias_before);
  if (wide.sinks != nullptr) args.sinks = sinks.data();
  args.log_sum_exp = wide.log_sum_exp;
  const bool done = RunAttention(call.params, args, host);
  WidenTo(output, call.output);
  present_key.WidenTo(call.present_key, call.head_size);
  present_value.WidenTo(call.present_value, call.v_head_size);
  return done;
}

}  // namespace

// The same call with its past in a ring, whose other rows hold NaN.
bool Call::RunInRing(Host& host) {
  Call rows = *this;
  rows.capacity = ring;
  const int64_t kv = params.kv_num_heads;
  const auto take = [&](const std::vector<float>& all, int64_t size) {
    std::vector<float> out(static_cast<size_t>(batch * kv * ring * size), NAN);
    for (int64_t i = 0; i < batch * kv; ++i) {
      const int64_t tokens = Total(i / kv) - NewKeys();
      for (int64_t j = 0; j < tokens; ++j) {
        const auto from = all.begin() + (i * past + j) * size;
        std::copy(from, from + size, out.begin() + (i * ring + RingRow(j)) * size);
      }
    }
    return out;
  };
  rows.past_key = take(past_key, head_size);
  rows.past_value = take(past_value, v_head_size);
  const bool done = rows.Run(host);
  output = rows.output;
  log_sum_exp = rows.log_sum_exp;
  present_key = rows.present_key;
  present_value = rows.present_value;
  return done;
}

bool Call::Run(Host& host) {
  if (ring > 0 && capacity < 0) return RunInRing(host);
  Announce(name);
  if (cache == Element::kInt8) {
    if (element == Element::kFloat16) return RunAs<Float16, int8_t>(*this, host);
    if (element == Element::kBFloat16) return RunAs<BFloat16, int8_t>(*this, host);
    return RunAs<float, int8_t>(*this, host);
  }
  if (cache == Element::kFloat16) return RunAs<float, Float16>(*this, host);
  if (cache == Element::kBFloat16) return RunAs<float, BFloat16>(*this, host);
  if (element == Element::kFloat16) return RunAs<Float16>(*this, host);
  if (element == Element::kBFloat16) return RunAs<BFloat16>(*this, host);
  return RunAttention(params, Args(), host);
}

}  // namespace rope::test
