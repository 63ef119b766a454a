#include <algorithm>

#include "draw.h"
#include "spec.gen.h"

namespace rope::hostile {
namespace {

namespace names = spec::rotary;
using Ints = std::vector<int64_t>;

// The order of the dimensions.
Ints Ordered(const std::string& format, int64_t batch, int64_t length, int64_t heads,
             int64_t size) {
  if (format == "bshd") return {batch, length, heads, size};
  if (format == "sbhd") return {length, batch, heads, size};
  if (format == "bhsd") return {batch, heads, length, size};
  return {length, heads, size};
}

// Bounds of sequences from 0 to a number of tokens.
Ints Bounds(Random& random, int64_t tokens) {
  Ints bounds = {0};
  for (int64_t s = random.Below(4); s > 0; --s) bounds.push_back(random.Below(tokens + 1));
  bounds.push_back(tokens);
  std::sort(bounds.begin(), bounds.end());
  return bounds;
}

void DrawPositions(Case& c, Random& random, Ints shape, int64_t pairs) {
  if (random.OneIn(3)) {
    const int64_t count = random.Below(3) + 1;
    Ints axes;
    for (int64_t i = 0; i < pairs; ++i) axes.push_back(random.Below(count));
    c.Set(names::kAttrPositionAxes, axes);
    shape.insert(shape.begin(), count);
  }
  Ints positions;
  for (int64_t i = CountOf(shape); i > 0; --i) {
    positions.push_back(random.Of<int64_t>({0, 1, 77, -5, 131071, INT32_MAX, -INT32_MAX}) / 2 +
                        random.Below(9));
  }
  c.inputs[names::kPositionIds] = OfInts(kInt64, shape, positions);
}

}  // namespace

Case DrawRotary(Random& random) {
  Case c;
  c.op = names::kRotary;
  c.element = c.cache = random.Of({kFloat, kFloat16, kBFloat16});
  c.inputs.resize(names::kInputCount);
  c.outputs.resize(names::kOutputCount);
  c.Set(names::kAttrSpecVersion, int64_t{spec::kSpecVersion});
  const std::string format = random.Of({"bshd", "sbhd", "bhsd", "thd"});
  const bool packed = format == "thd";
  c.Set(names::kAttrTensorFormat, format.c_str());
  const int64_t size = random.Of<int64_t>({2, 3, 8, 16, 17, 31, 64, 80, 128, 131});
  const int64_t pairs = random.Below(size / 2) + 1;
  int64_t batch = packed ? 1 : random.Of<int64_t>({1, 1, 2, 3, 7});
  const int64_t length = random.OneIn(40) ? 0 : random.Of<int64_t>({1, 2, 3, 9, 64, 65, 200});
  if (!packed && random.OneIn(40)) batch = 0;
  c.Set(names::kAttrFrequencies, random.Floats(pairs, -1, 1));
  if (random.OneIn(3)) c.Set(names::kAttrRotaryOffset, random.Below(size - 2 * pairs + 1));
  if (random.OneIn(3)) c.Set(names::kAttrInterleaved, int64_t{1});
  if (random.OneIn(3)) c.Set(names::kAttrInverse, int64_t{1});
  if (random.OneIn(3)) c.Set(names::kAttrExactAngles, int64_t{1});
  if (random.OneIn(3)) c.Set(names::kAttrGain, random.Between(-2, 2));
  const auto tensor = [&](int64_t heads) {
    return DrawNumbers(random, c.element, Ordered(format, batch, length, heads, size));
  };
  c.inputs[names::kQuery] = tensor(random.Of<int64_t>({1, 2, 5, 8}));
  c.outputs[names::kRotatedQuery].wanted = true;
  if (random.OneIn(2)) {
    c.inputs[names::kKey] = tensor(random.Of<int64_t>({0, 1, 2, 3}));
    c.outputs[names::kRotatedKey].wanted = true;
  }
  for (size_t i = 0; i < 2; ++i) {
    if (random.OneIn(3)) c.outputs[i].same_as = static_cast<int>(i);
  }
  if (random.OneIn(2)) {
    const int64_t rows = random.OneIn(2) ? 1 : batch;
    DrawPositions(c, random, packed ? Ints{length} : Ints{rows, length}, pairs);
  } else {
    int64_t sequences = batch;
    if (packed) {
      const Ints bounds = Bounds(random, length);
      sequences = static_cast<int64_t>(bounds.size()) - 1;
      c.inputs[names::kCuSeqlens] = OfInts(kInt32, {sequences + 1}, bounds);
    }
    if (random.OneIn(2)) {
      const int64_t count = random.OneIn(2) ? 1 : sequences;
      Ints offsets;
      for (int64_t s = 0; s < count; ++s) {
        offsets.push_back(random.Of<int64_t>({0, 5, 131071, INT32_MAX - 1000}));
      }
      c.inputs[names::kSeqlenOffsets] = OfInts(kInt32, {count}, offsets);
    }
  }
  if (random.OneIn(4)) {
    c.inputs[names::kMaxSeqlen] = OfInts(kInt32, {1}, {random.Of<int64_t>({0, 99, INT32_MAX})});
  }
  if (random.OneIn(5)) {
    c.Set(names::kAttrTrainedLength, random.Of<int64_t>({1, 16, 4096, INT64_MAX}));
    if (pairs > 1 && random.OneIn(2)) {
      c.Set(names::kAttrDynamicNtk, random.Between(1, 8));
    } else if (random.OneIn(2)) {
      c.Set(names::kAttrLongFrequencies, random.Floats(pairs, 0, 1));
    } else {
      c.Set(names::kAttrDynamicLinear, int64_t{1});
    }
  }
  Promise(c);
  return c;
}

}  // namespace rope::hostile
