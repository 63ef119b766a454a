#include "rotary_test.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <sstream>
#include <vector>

#include "check.h"
#include "fixture.h"
#include "rotary.h"

namespace rope::test {
namespace {

// One text of several parts.
template <typename... Parts>
std::string Said(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

// One call: sizes and options, and what is drawn from them.
struct Rotation {
  std::string name;
  RotaryParams params;
  int64_t batch = 1, length = 1, query_heads = 1, key_heads = 0, head_size = 64;
  std::vector<int64_t> positions;        // [axes, batch or 1, length]
  std::vector<int32_t> bounds, offsets;  // of packed sequences; of rows or sequences
  bool shared = false;                   // positions, or the one offset, are all rows'

  int64_t tokens() const { return batch * length; }

  // Where token `place` of row b has its head h: dimensions in the format's order.
  int64_t At(int64_t heads, int64_t b, int64_t place, int64_t h) const {
    switch (params.format) {
      case TensorFormat::kBshd:
        return ((b * length + place) * heads + h) * head_size;
      case TensorFormat::kSbhd:
        return ((place * batch + b) * heads + h) * head_size;
      case TensorFormat::kBhsd:
        return ((b * heads + h) * length + place) * head_size;
      default:
        return (place * heads + h) * head_size;
    }
  }

  int64_t PositionOf(int64_t b, int64_t place, size_t pair) const {
    if (!positions.empty()) {
      const int64_t rows = shared ? 1 : batch;
      const int64_t axis = params.position_axes.empty() ? 0 : params.position_axes[pair];
      return positions[static_cast<size_t>((axis * rows + (shared ? 0 : b)) * length + place)];
    }
    size_t sequence = static_cast<size_t>(b);
    if (!bounds.empty()) {
      sequence = 0;
      while (bounds[sequence + 1] <= place) ++sequence;
      place -= bounds[sequence];
    }
    if (offsets.empty()) return place;
    return place + offsets[shared ? 0 : sequence];
  }

  // All heads of a tensor in the type F: numbers, cosines and sines alike.
  template <typename F>
  std::vector<F> Reference(const std::vector<float>& in, int64_t heads) const {
    std::vector<F> out(in.begin(), in.end());
    const size_t pairs = params.frequencies.size();
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t place = 0; place < length; ++place) {
        for (size_t x = 0; x < pairs; ++x) {
          const auto p = static_cast<double>(PositionOf(b, place, x));
          const double omega = static_cast<double>(params.frequencies[x]);
          double angle = params.exact_angles
                             ? p * omega
                             : static_cast<double>(static_cast<float>(p) * params.frequencies[x]);
          if (params.inverse) angle = -angle;
          const F cosine = static_cast<F>(std::cos(angle) * static_cast<double>(params.gain));
          const F sine = static_cast<F>(std::sin(angle) * static_cast<double>(params.gain));
          const size_t first = params.interleaved ? 2 * x : x;
          const size_t step = params.interleaved ? 1 : pairs;
          for (int64_t h = 0; h < heads; ++h) {
            const size_t at =
                static_cast<size_t>(At(heads, b, place, h) + params.rotary_offset) + first;
            const F a = static_cast<F>(in[at]);
            const F c = static_cast<F>(in[at + step]);
            out[at] = a * cosine - c * sine;
            out[at + step] = c * cosine + a * sine;
          }
        }
      }
    }
    return out;
  }

  template <typename T>
  RotaryArgs<T> Args(const std::vector<T>& query, std::vector<T>& rotated_query,
                     const std::vector<T>& key, std::vector<T>& rotated_key) const {
    const auto tensor = [&](const std::vector<T>& from, std::vector<T>& to, int64_t heads) {
      const int64_t batch_stride = At(heads, 1, 0, 0);
      const int64_t row_stride = At(heads, 0, 1, 0);
      const int64_t head_stride = At(heads, 0, 0, 1);
      RotaryTensor<T> out;
      out.heads = heads;
      out.from = {from.data(), batch_stride, head_stride, row_stride};
      out.to = {to.data(), batch_stride, head_stride, row_stride};
      return out;
    };
    RotaryArgs<T> args;
    args.batch = batch;
    args.length = length;
    args.head_size = head_size;
    args.query = tensor(query, rotated_query, query_heads);
    args.key = tensor(key, rotated_key, key_heads);
    RotaryPositions& p = args.positions;
    if (!positions.empty()) {
      p.given = positions.data();
      p.given_batch_stride = shared ? 0 : length;
      p.given_axis_stride = (shared ? 1 : batch) * length;
      p.axes = static_cast<int64_t>(positions.size()) / p.given_axis_stride;
    }
    if (!bounds.empty()) {
      p.bounds = bounds.data();
      p.sequences = static_cast<int64_t>(bounds.size()) - 1;
    }
    if (!offsets.empty()) {
      p.offsets = offsets.data();
      p.offset_stride = shared ? 0 : 1;
    }
    return args;
  }
};

template <typename Random>
int64_t Pick(Random& random, std::initializer_list<int64_t> choices) {
  return choices.begin()[random() % choices.size()];
}

Rotation Draw(std::mt19937& random) {
  Rotation r;
  const auto one_in = [&](uint32_t n) { return random() % n == 0; };
  r.params.format = static_cast<TensorFormat>(random() % 4);
  const bool packed = r.params.format == TensorFormat::kThd;
  r.batch = packed ? 1 : Pick(random, {1, 2, 3, 17});
  r.length = Pick(random, {1, 2, 7, 33, 131});
  r.query_heads = Pick(random, {1, 3, 8});
  r.key_heads = Pick(random, {0, 1, 2});
  r.head_size = Pick(random, {6, 22, 64, 80, 128});
  const int64_t most = r.head_size / 2;
  const int64_t pairs = one_in(2) ? most : 1 + static_cast<int64_t>(random()) % most;
  r.params.frequencies = Frequencies(2 * pairs);
  r.params.rotary_offset = static_cast<int64_t>(random()) % (r.head_size - 2 * pairs + 1);
  r.params.interleaved = one_in(2);
  r.params.inverse = one_in(3);
  r.params.exact_angles = one_in(3);
  r.params.gain = one_in(3) ? 1.1386f : 1.0f;
  r.shared = one_in(2);
  const int64_t rows = r.shared ? 1 : r.batch;
  const int64_t start = Pick(random, {0, 5, 131071 - 130, 20000000});
  if (one_in(2)) {
    const int64_t axes = one_in(3) ? 3 : 1;
    for (int64_t i = 0; i < axes * rows * r.length; ++i) {
      r.positions.push_back(start + static_cast<int64_t>(random() % 131) - (one_in(9) ? 7 : 0));
    }
    for (int64_t x = 0; x < pairs && axes > 1; ++x) {
      r.params.position_axes.push_back(static_cast<int64_t>(random()) % axes);
    }
  } else {
    if (packed) r.bounds = {0, 0};
    while (packed && r.bounds.back() < r.length) {
      const int64_t next = r.bounds.back() + static_cast<int64_t>(random() % 40);
      r.bounds.push_back(static_cast<int32_t>(std::min(next, r.length)));
    }
    const int64_t sequences = packed ? static_cast<int64_t>(r.bounds.size()) - 1 : r.batch;
    for (int64_t i = 0; i < (r.shared ? 1 : sequences) && !one_in(9); ++i) {
      r.offsets.push_back(static_cast<int32_t>(start + static_cast<int64_t>(random() % 100)));
    }
    if (!r.shared && static_cast<int64_t>(r.offsets.size()) < sequences) r.offsets.clear();
    if (r.offsets.empty()) r.shared = !packed;
  }
  const char* formats[] = {"bshd", "sbhd", "bhsd", "thd"};
  r.name =
      Said(formats[static_cast<int>(r.params.format)], " batch ", r.batch, " length ", r.length,
           " heads ", r.query_heads, "/", r.key_heads, " size ", r.head_size, " pairs ", pairs,
           " from ", r.params.rotary_offset, r.params.interleaved ? " interleaved" : " half",
           r.params.inverse ? " inverse" : "", r.params.exact_angles ? " exact" : "",
           r.positions.empty() ? " offsets " : " positions ", r.positions.size(), " from ", start,
           r.shared ? " shared" : "");
  return r;
}

std::vector<float> Numbers(std::mt19937& random, int64_t count, Element element) {
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<size_t>(count));
  for (float& x : out) x = Rounded(element, normal(random));
  return out;
}

template <typename T>
std::vector<T> Narrow(const std::vector<float>& from) {
  std::vector<T> out;
  for (const float x : from) out.push_back(hwy::ConvertScalarTo<T>(x));
  return out;
}
template <typename T>
std::vector<float> Widen(const std::vector<T>& from) {
  std::vector<float> out;
  for (const T x : from) out.push_back(hwy::ConvertScalarTo<float>(x));
  return out;
}
template <typename T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// Within twice the error of the plain float32 computation, rounded to the element type as that is.
void Compare(const Rotation& r, const std::string& what, Element element,
             const std::vector<float>& in, int64_t heads, const std::vector<float>& got) {
  const auto truth = r.Reference<double>(in, heads);
  auto plain = r.Reference<float>(in, heads);
  double largest = 0;
  for (const double x : truth) largest = std::max(largest, std::abs(x));
  for (float& x : plain) x = Rounded(element, x);
  const double allowed = 2 * std::max(Distance(plain, truth), largest * std::ldexp(1.0, -24));
  const double error = Distance(got, truth);
  Expect(error <= allowed, Said(what, ": error ", error, " of ", largest, ", allowed ", allowed));
}

template <typename T>
void RunAs(const Rotation& r, const std::string& what, Element element, std::mt19937& random) {
  const auto wide_query = Numbers(random, r.tokens() * r.query_heads * r.head_size, element);
  const auto wide_key = Numbers(random, r.tokens() * r.key_heads * r.head_size, element);
  const auto query = Narrow<T>(wide_query);
  const auto key = Narrow<T>(wide_key);
  const T nan = hwy::ConvertScalarTo<T>(NAN);
  std::vector<T> rotated_query(query.size(), nan), rotated_key(key.size(), nan);
  TestHost one(1), three(3);
  Expect(RunRotary(r.params, r.Args(query, rotated_query, key, rotated_key), one),
         what + ": no memory");
  Compare(r, what + " query", element, wide_query, r.query_heads, Widen(rotated_query));
  Compare(r, what + " key", element, wide_key, r.key_heads, Widen(rotated_key));
  auto same_query = query, same_key = key;
  RunRotary(r.params, r.Args(same_query, same_query, same_key, same_key), three);
  Expect(SameBits(same_query, rotated_query) && SameBits(same_key, rotated_key),
         what + ": in place and on three threads the result differs");
  Expect(one.in_use() == 0 && three.in_use() == 0, what + ": memory is left");
}

template <typename T>
void RunLarge(const std::string& target, bool interleaved) {
  Rotation r;
  r.params.frequencies = Frequencies(96);
  r.params.rotary_offset = 32;
  r.params.interleaved = interleaved;
  r.batch = 2;
  r.length = 17 * (1 << 20) / (32 * 128 * 2 * static_cast<int64_t>(sizeof(T)));
  r.query_heads = 32;
  r.head_size = 128;
  r.shared = true;
  std::mt19937 random(3);
  const auto query =
      Narrow<T>(Numbers(random, r.tokens() * r.query_heads * r.head_size, Element::kBFloat16));
  std::vector<T> to(query.size()), none;
  auto in_place = query;
  TestHost host(2);
  RunRotary(r.params, r.Args(query, to, none, none), host);
  RunRotary(r.params, r.Args(in_place, in_place, none, none), host);
  Expect(SameBits(to, in_place), target + ": a large rotation differs from the one in place");
}

}  // namespace

void TestRotary(const std::string& target, int cases) {
  std::mt19937 random(12);
  for (int i = 0; i < cases; ++i) {
    const Rotation r = Draw(random);
    const std::string what = target + " rotary " + r.name;
    RunAs<float>(r, what, Element::kFloat, random);
    RunAs<Float16>(r, what + " float16", Element::kFloat16, random);
    RunAs<BFloat16>(r, what + " bfloat16", Element::kBFloat16, random);
  }
}

void TestRotaryWithoutMemory(const std::string& target) {
  Rotation r;
  r.params.frequencies = Frequencies(64);
  std::vector<float> numbers(64), none;
  TestHost host(1);
  host.set_limit(16);
  Expect(!RunRotary(r.params, r.Args(numbers, numbers, none, none), host),
         target + ": rotates without memory");
}

void TestLargeRotary(const std::string& target) {
  for (const bool interleaved : {false, true}) {
    RunLarge<float>(target, interleaved);
    RunLarge<Float16>(target, interleaved);
  }
}

}  // namespace rope::test
