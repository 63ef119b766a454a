#include "draw.h"

#include <algorithm>
#include <cstring>

#include "spec.gen.h"

namespace rope::hostile {
namespace {

// The bits of a number of a size from 2^-6 to 4.
uint64_t SmallNumber(Random& random, int element) {
  const uint64_t bits = random.Bits();
  const uint64_t exponent = bits >> 40 & 7;
  switch (element) {
    case kFloat:
      return (bits & 0x807FFFFF) | (121 + exponent) << 23;
    case kFloat16:
      return (bits & 0x83FF) | (9 + exponent) << 10;
    case kBFloat16:
      return (bits & 0x807F) | (121 + exponent) << 7;
    default:
      return bits & 0xFF;
  }
}

// What a float32 has at the edges of its range; the upper half of it is a bfloat16.
uint64_t EdgeOfFloat(Random& random) {
  return random.Of<uint64_t>({0x7FC00000, 0xFFC00000, 0x7F800000, 0xFF800000, 0x7F7FFFFF,
                              0xFF7FFFFF, 0x00000001, 0x80000001, 0x007F0000, 0x80000000,
                              0x00800000, 0x7F800001, 0x5F000000, 0x20000000});
}
uint64_t EdgeOfFloat16(Random& random) {
  return random.Of<uint64_t>(
      {0x7E00, 0xFE00, 0x7C00, 0xFC00, 0x7BFF, 0xFBFF, 0x0001, 0x8001, 0x03FF, 0x8000, 0x7C01});
}

void Put(Tensor& t, size_t index, uint64_t bits) {
  const size_t size = SizeOf(t.element);
  std::memcpy(t.bytes.data() + index * size, &bits, size);
}

}  // namespace

Tensor DrawNumbers(Random& random, int element, std::vector<int64_t> shape) {
  Tensor t{element, std::move(shape), {}, true, 0};
  const auto count = static_cast<size_t>(CountOf(t.shape));
  t.bytes.resize(count * SizeOf(element));
  for (size_t i = 0; i < count; ++i) Put(t, i, SmallNumber(random, element));
  return t;
}

Tensor OfInts(int element, std::vector<int64_t> shape, const std::vector<int64_t>& values) {
  Tensor t{element, std::move(shape), {}, true, 0};
  t.bytes.resize(values.size() * SizeOf(element));
  for (size_t i = 0; i < values.size(); ++i) Put(t, i, static_cast<uint64_t>(values[i]));
  return t;
}

void Spoil(Tensor& t, Random& random) {
  const size_t count = t.bytes.size() / SizeOf(t.element);
  const int64_t rarely = random.Of<int64_t>({2, 20, 300});
  for (size_t i = 0; i < count; ++i) {
    if (!random.OneIn(rarely)) continue;
    uint64_t bits = random.OneIn(2) ? random.Bits() : EdgeOfFloat(random);
    if (t.element == kBFloat16) bits = bits >> 16 & 0xFFFF;
    if (t.element == kFloat16) bits = random.OneIn(2) ? bits & 0xFFFF : EdgeOfFloat16(random);
    Put(t, i, bits);
  }
}

void Promise(Case& c) {
  if (c.op == spec::rotary::kRotary) {
    for (size_t i = 0; i < 2; ++i) c.outputs[i].promised = c.inputs[i].shape;
    return;
  }
  const auto& query = c.inputs[spec::kQuery].shape;
  const auto& key = c.inputs[spec::kKey].shape;
  const auto& value = c.inputs[spec::kValue].shape;
  const int64_t heads = c.Int(spec::kAttrNumHeads, 1);
  const int64_t kv = c.Int(spec::kAttrKvNumHeads, 1);
  const int64_t length = query.size() == 3 ? query[1] : query[2];
  const int64_t size = query.size() == 3 ? query[2] / heads : query[3];
  const int64_t v_size = value.size() == 3 ? value[2] / kv : value[3];
  const Tensor& past = c.inputs[spec::kPastKey];
  int64_t rows = key.size() == 3 ? key[1] : key[2];
  if (past.present) rows += past.shape[2];
  if (c.inputs[spec::kCacheLength].present) {
    rows = past.shape[2];
    const Tensor& total = c.inputs[spec::kTotalLength];
    if (total.present) {
      rows = std::max(rows, static_cast<int64_t>(NumberAt(kInt32, total.bytes.data(), 0)));
    }
  }
  const int64_t batch = query[0];
  using Shape = std::vector<int64_t>;
  c.outputs[spec::kOutput].promised = query.size() == 3 ? Shape{batch, length, heads * v_size}
                                                        : Shape{batch, heads, length, v_size};
  c.outputs[spec::kPresentKey].promised = {batch, kv, rows, size};
  c.outputs[spec::kPresentValue].promised = {batch, kv, rows, v_size};
  c.outputs[spec::kLogSumExp].promised = {batch, heads, length};
  c.outputs[spec::kPresentKeyScale].promised = {batch, kv, rows, 1};
  c.outputs[spec::kPresentValueScale].promised = {batch, kv, rows, 1};
}

Case Draw(uint64_t seed) {
  Random random(seed);
  Case c = random.OneIn(5) ? DrawRotary(random) : DrawAttention(random);
  const size_t front = static_cast<size_t>(random.Of<int64_t>({0, 0, 1, 3, 5}));
  for (Tensor& t : c.inputs) t.front = front;
  if (random.OneIn(5)) {
    for (Tensor& t : c.inputs) {
      const bool floats = t.element != kInt64 && t.element != kInt32 && t.element != kInt8;
      if (!floats || !random.OneIn(2)) continue;
      c.tame = false;
      Spoil(t, random);
      // A sink that is no number is refused.
      c.distortions += c.op == spec::kRotaryAttention && &t == &c.inputs[spec::kSinkLogits];
    }
  }
  if (random.OneIn(4)) Distort(c, random);
  if (random.OneIn(40)) c.allocations = random.Below(4);
  return c;
}

}  // namespace rope::hostile
