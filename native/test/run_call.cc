// A call in tensors of its element type.
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

// The call in tensors of type T.
template <typename T>
bool RunAs(Call& call, Host& host) {
  const AttentionArgs<float> wide = call.Args();
  const auto query = Narrow<T>(call.query);
  const auto key = Narrow<T>(call.key);
  const auto value = Narrow<T>(call.value);
  const auto past_key = Narrow<T>(call.past_key);
  const auto past_value = Narrow<T>(call.past_value);
  const auto bias = Narrow<T>(call.bias);
  const auto bias_before = Narrow<T>(call.bias_before);
  const auto sinks = Narrow<T>(call.sinks);
  auto output = Narrow<T>(call.output);
  auto present_key = Narrow<T>(call.present_key);
  auto present_value = Narrow<T>(call.present_value);
  AttentionArgs<T> args;
  args.batch = wide.batch;
  args.length = wide.length;
  args.new_keys = wide.new_keys;
  args.max_past = wide.max_past;
  args.row_past = wide.row_past;
  args.head_size = wide.head_size;
  args.v_head_size = wide.v_head_size;
  args.query = Moved(wide.query, query.data());
  args.key = Moved(wide.key, key.data());
  args.value = Moved(wide.value, value.data());
  args.past_key = Moved(wide.past_key, call.in_place ? present_key.data() : past_key.data());
  args.past_value =
      Moved(wide.past_value, call.in_place ? present_value.data() : past_value.data());
  args.output = Moved(wide.output, output.data());
  args.present_key = Moved(wide.present_key, present_key.data());
  args.present_value = Moved(wide.present_value, present_value.data());
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
  WidenTo(present_key, call.present_key);
  WidenTo(present_value, call.present_value);
  return done;
}

}  // namespace

bool Call::Run(Host& host) {
  if (element == Element::kFloat16) return RunAs<Float16>(*this, host);
  if (element == Element::kBFloat16) return RunAs<BFloat16>(*this, host);
  return RunAttention(params, Args(), host);
}

}  // namespace rope::test
