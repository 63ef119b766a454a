// Changes that make a hostile case of a valid one.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "draw.h"
#include "spec.gen.h"

namespace rope::hostile {
namespace {

using Ints = std::vector<int64_t>;

int64_t HostileInt(Random& random) {
  return random.Of<int64_t>({0, 1, -1, 2, 3, 7, 64, 4096, 131071, INT32_MAX, int64_t{1} << 31,
                             int64_t{1} << 40, int64_t{1} << 62, INT64_MAX, INT64_MIN, INT32_MIN});
}

float HostileFloat(Random& random) {
  using Limits = std::numeric_limits<float>;
  return random.Of({0.0f, -0.0f, 1.0f, -1.0f, 1e30f, -1e30f, 1e-30f, Limits::max(),
                    Limits::lowest(), Limits::min(), Limits::denorm_min(), Limits::infinity(),
                    -Limits::infinity(), Limits::quiet_NaN()});
}

const char* HostileText(Random& random) {
  return random.Of(
      {"", "half", "interleaved", "intra", "anchor", "exact", "fast", "rotated", "raw", "same",
       "float16", "bfloat16", "int8", "bshd", "sbhd", "bhsd", "thd", "x",
       "a text that is longer than any small buffer of a string would be: aaaaaaaaaa"});
}

// Any attribute, with a value of any kind.
void NewAttribute(Case& c, Random& random) {
  static constexpr const char* kNames[] = {spec::kAttrScale,
                                           spec::kAttrFrequencies,
                                           spec::kAttrGain,
                                           spec::kAttrRotaryLayout,
                                           spec::kAttrRotaryOffset,
                                           spec::kAttrExactAngles,
                                           spec::kAttrPositionAxes,
                                           spec::kAttrQueryFactors,
                                           spec::kAttrKeyFactors,
                                           spec::kAttrCausal,
                                           spec::kAttrCross,
                                           spec::kAttrWindow,
                                           spec::kAttrFirstKeys,
                                           spec::kAttrFirstKeysShown,
                                           spec::kAttrSoftcap,
                                           spec::kAttrBandStarts,
                                           spec::kAttrBandChunk,
                                           spec::kAttrBandGroups,
                                           spec::kAttrBandKeyScales,
                                           spec::kAttrTemperature,
                                           spec::kAttrTrainedLength,
                                           spec::kAttrLongFrequencies,
                                           spec::kAttrDynamicNtk,
                                           spec::kAttrDynamicLinear,
                                           spec::kAttrDistanceSlopes,
                                           spec::kAttrDistanceStarts,
                                           spec::kAttrDistanceBiases,
                                           spec::kAttrDistanceShown,
                                           spec::kAttrDocumentMask,
                                           spec::kAttrDocumentRestart,
                                           spec::kAttrDocumentStart,
                                           spec::kAttrPrecision,
                                           spec::kAttrCacheType,
                                           spec::kAttrCacheRing,
                                           spec::kAttrCache,
                                           spec::rotary::kAttrTensorFormat,
                                           spec::rotary::kAttrInverse,
                                           spec::rotary::kAttrInterleaved};
  const char* name = kNames[random.Below(std::size(kNames))];
  switch (random.Below(5)) {
    case 0:
      return c.Set(name, HostileFloat(random));
    case 1:
      return c.Set(name, HostileText(random));
    case 2:
      return c.Set(name, Ints(static_cast<size_t>(random.Below(9)), HostileInt(random)));
    case 3:
      return c.Set(name, random.Floats(random.Below(9), -2, 2));
    default:
      return c.Set(name, random.OneIn(2) ? random.Below(3) : HostileInt(random));
  }
}

// Another value, in a list of one place.
void ChangeAttribute(Case& c, Random& random) {
  Attribute& a = random.Of(c.attributes);
  a.i = HostileInt(random);
  a.f = HostileFloat(random);
  a.s = HostileText(random);
  const int64_t how = random.Below(4);
  if (how == 0 && !a.ints.empty()) a.ints.pop_back();
  if (how == 0 && !a.floats.empty()) a.floats.pop_back();
  if (how == 1 && a.kind == Attribute::kOfInts) a.ints.push_back(HostileInt(random));
  if (how == 1 && a.kind == Attribute::kOfFloats) a.floats.push_back(HostileFloat(random));
  if (how > 1 && !a.ints.empty()) random.Of(a.ints) = HostileInt(random);
  if (how > 1 && !a.floats.empty()) random.Of(a.floats) = HostileFloat(random);
}

// Gives a tensor the memory of its shape, of zeros where it has none.
void Fit(Tensor& t) {
  const int64_t count = CountOf(t.shape);
  // What no host could hold is cut to what one could.
  if (count < 0 || count > 1 << 20) {
    for (int64_t& dim : t.shape) dim = std::min<int64_t>(dim, 3);
  }
  t.bytes.resize(static_cast<size_t>(CountOf(t.shape)) * SizeOf(t.element));
}

void ChangeShape(Tensor& t, Random& random) {
  const int64_t how = random.Below(6);
  if (how == 0) t.shape.push_back(random.Of<int64_t>({0, 1, 2}));
  if (how == 1 && !t.shape.empty()) t.shape.pop_back();
  if (!t.shape.empty()) {
    if (int64_t& dim = random.Of(t.shape); how == 2) dim = dim % (1 << 20) + 1;
    if (how == 3) random.Of(t.shape) = 0;
    if (how == 4) std::swap(random.Of(t.shape), random.Of(t.shape));
    if (how == 5) {
      // Nothing is in a tensor of these, whatever their product is.
      for (int64_t& dim : t.shape) dim = random.OneIn(2) ? HostileInt(random) & INT64_MAX : dim;
      random.Of(t.shape) = 0;
    }
  }
  Fit(t);
}

// One size of the query, and what is of this size elsewhere.
void ChangeDimension(Case& c, Random& random) {
  if (c.inputs[0].shape.empty()) return;
  const int64_t old = random.Of(c.inputs[0].shape);
  const int64_t other =
      random.Of<int64_t>({0, old % (1 << 20) + 1, int64_t{1} << 20, int64_t{1} << 40, INT64_MAX});
  for (Tensor& t : c.inputs) {
    if (!t.present) continue;
    std::replace(t.shape.begin(), t.shape.end(), old, other);
    Fit(t);
  }
}

void ChangeInts(Tensor& t, Random& random) {
  const size_t size = SizeOf(t.element);
  if (t.bytes.size() < size) return;
  const int64_t value = HostileInt(random);
  const int64_t at = random.Below(static_cast<int64_t>(t.bytes.size() / size));
  const bool all = random.OneIn(3);
  for (size_t i = 0; i < t.bytes.size() / size; ++i) {
    if (all || static_cast<int64_t>(i) == at) std::memcpy(t.bytes.data() + i * size, &value, size);
  }
}

// An input that was not there, of a size that may fit.
void NewInput(Case& c, size_t i, Random& random) {
  const auto& query = c.inputs[0].shape;
  const bool rotary = c.op == spec::rotary::kRotary;
  const std::string type = rotary ? spec::rotary::kInputTypes[i] : spec::kInputTypes[i];
  const int element = type == "int64"   ? kInt64
                      : type == "int32" ? kInt32
                      : type == "float" ? kFloat
                      : type == "C"     ? c.cache
                                        : c.element;
  Ints shape;
  for (int64_t rank = random.Below(5); rank > 0; --rank) {
    shape.push_back(
        query.empty() || random.OneIn(3)
            ? 1
            : query[static_cast<size_t>(random.Below(static_cast<int64_t>(query.size())))]);
  }
  Tensor t{element, shape, {}, true, c.inputs[0].front};
  Fit(t);
  c.inputs[i] = std::move(t);
}

void DistortOnce(Case& c, Random& random) {
  const auto count = static_cast<int64_t>(c.inputs.size());
  const auto any = [&]() -> size_t {
    for (;;) {
      const auto i = static_cast<size_t>(random.Below(count));
      if (c.inputs[i].present) return i;
    }
  };
  switch (random.Below(8)) {
    case 0:
      return NewAttribute(c, random);
    case 1:
    case 2:
      return ChangeAttribute(c, random);
    case 3:
      return ChangeShape(c.inputs[any()], random);
    case 4:
      return ChangeDimension(c, random);
    case 5:
      if (random.OneIn(2)) return NewInput(c, static_cast<size_t>(random.Below(count)), random);
      c.inputs[any()].present = random.OneIn(2);
      return;
    case 6:
      c.outputs[static_cast<size_t>(random.Below(static_cast<int64_t>(c.outputs.size())))].wanted ^=
          true;
      return;
    default:
      for (int tries = 0; tries < 20; ++tries) {
        Tensor& t = c.inputs[any()];
        if (t.element == kInt64 || t.element == kInt32) return ChangeInts(t, random);
      }
  }
}

}  // namespace

void Distort(Case& c, Random& random) {
  for (int64_t i = random.Of<int64_t>({1, 1, 1, 2, 3}); i > 0; --i) {
    DistortOnce(c, random);
    ++c.distortions;
    // The tensors that every node has.
    const size_t required = c.op == spec::rotary::kRotary ? 1 : 3;
    for (size_t input = 0; input < required; ++input) c.inputs[input].present = true;
  }
  c.tame = false;
  for (Output& o : c.outputs) o.same_as = -1, o.promised.clear();
  c.outputs[0].wanted = true;
}

}  // namespace rope::hostile
