// RotaryAttention written down plainly, in double for the truth and in float
// for what a plain implementation in the same precision achieves. It shares no
// code with the kernels.
#ifndef ROPE_TEST_REFERENCE_H_
#define ROPE_TEST_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "attention.h"
#include "fixture.h"

namespace rope::test {

template <typename Real>
struct Result {
  std::vector<Real> output;       // [batch, heads, length, v_head_size]
  std::vector<Real> present_key;  // [batch, kv_heads, total, head_size]
  std::vector<Real> log_sum_exp;  // [batch, heads, length]
};

// One head whose pair x is rotated to `position_of(x)`; cos and sin come from double whatever
// Real is.
template <typename Real, typename Position>
std::vector<Real> RotatePairs(const AttentionParams& p, const float* head, int64_t size,
                              const Position& position_of) {
  std::vector<Real> out(head, head + size);
  const int64_t pairs = static_cast<int64_t>(p.frequencies.size());
  for (int64_t x = 0; x < pairs; ++x) {
    const double position = position_of(x);
    const float w = p.frequencies[static_cast<size_t>(x)];
    const double angle = p.exact_angles ? position * static_cast<double>(w)
                                        : static_cast<double>(static_cast<float>(position) * w);
    const Real c = static_cast<Real>(std::cos(angle) * static_cast<double>(p.gain));
    const Real s = static_cast<Real>(std::sin(angle) * static_cast<double>(p.gain));
    const int64_t first = p.rotary_offset + (p.interleaved ? 2 * x : x);
    const int64_t second = p.rotary_offset + (p.interleaved ? 2 * x + 1 : x + pairs);
    const Real a = static_cast<Real>(head[first]);
    const Real b = static_cast<Real>(head[second]);
    out[static_cast<size_t>(first)] = a * c - b * s;
    out[static_cast<size_t>(second)] = b * c + a * s;
  }
  return out;
}

template <typename Real>
std::vector<Real> Rotate(const AttentionParams& p, const float* head, int64_t size,
                         double position) {
  return RotatePairs<Real>(p, head, size, [&](int64_t) { return position; });
}

// A head of a token of this call where a token has a position on each of several axes.
template <typename Real>
std::vector<Real> RotateAxes(const AttentionParams& p, const AttentionArgs<float>& args,
                             const float* head, int64_t batch, int64_t place) {
  return RotatePairs<Real>(p, head, args.head_size, [&](int64_t x) {
    const int64_t axis = p.position_axes[static_cast<size_t>(x)];
    return static_cast<double>(args.positions[axis * args.positions_axis_stride +
                                              batch * args.positions_batch_stride + place]);
  });
}

// A head multiplied by factors behind its rotation.
template <typename Real>
std::vector<Real> Times(const std::vector<float>& factors, std::vector<Real> row) {
  for (size_t c = 0; c < factors.size(); ++c) row[c] *= static_cast<Real>(factors[c]);
  return row;
}

// Tokens behind a row's first keys that a ring has lost.
inline int64_t LostOf(const AttentionArgs<float>& args, int64_t batch) {
  if (args.ring.rows == 0) return 0;
  return std::max<int64_t>(0, args.past(batch) - args.ring.first - args.ring.rows);
}

inline bool IsLost(const AttentionArgs<float>& args, int64_t batch, int64_t j) {
  return j >= args.ring.first && j < args.ring.first + LostOf(args, batch);
}

// The index of the token at j among those that are left.
inline int64_t IndexOf(const AttentionArgs<float>& args, int64_t batch, int64_t j) {
  return args.ring.rows > 0 && j < args.ring.first ? j : j - LostOf(args, batch);
}

inline bool IsReal(const AttentionArgs<float>& args, int64_t batch, int64_t j) {
  if (IsLost(args, batch, j)) return false;
  if (args.mask == nullptr || (args.ring.rows > 0 && j >= args.mask_width)) return true;
  return args.mask[batch * args.mask_batch_stride + j] != 0;
}

inline int64_t DocumentOf(const AttentionArgs<float>& args, int64_t batch, int64_t j) {
  return args.documents[batch * args.documents_batch_stride + j];
}

// Whether a key is one of its row's first keys: by index, or of those that the mask shows.
inline bool IsFirst(const AttentionParams& p, const AttentionArgs<float>& args, int64_t batch,
                    int64_t j) {
  if (!p.first_keys_shown) return j < p.first_keys;
  int64_t before = 0;
  for (int64_t i = 0; i < j; ++i) before += IsReal(args, batch, i);
  return before < p.first_keys;
}

inline bool Visible(const AttentionParams& p, const AttentionArgs<float>& args, int64_t batch,
                    int64_t i, int64_t j) {
  if (p.causal && j > i) return false;
  const int64_t distance = std::abs(IndexOf(args, batch, i) - IndexOf(args, batch, j));
  if (p.window > 0 && distance >= p.window && !IsFirst(p, args, batch, j)) return false;
  if (args.documents != nullptr) {
    const int64_t query = DocumentOf(args, batch, i);
    const int64_t key = DocumentOf(args, batch, j);
    const bool anchored = p.document_mask == DocumentMask::kAnchor && key == 0;
    if (query != -1 && query != key && !anchored) return false;
  }
  return IsReal(args, batch, j);
}

inline int64_t PositionOf(const AttentionParams& p, const AttentionArgs<float>& args, int64_t batch,
                          int64_t place) {
  const int64_t i = args.past(batch) + place;
  if (p.document_restart && args.documents != nullptr && DocumentOf(args, batch, i) != -1) {
    int64_t position = DocumentOf(args, batch, i) == 0 ? 0 : p.document_start;
    for (int64_t j = 0; j < i; ++j) {
      position +=
          IsReal(args, batch, j) && DocumentOf(args, batch, j) == DocumentOf(args, batch, i);
    }
    return position;
  }
  const int64_t p_i =
      args.positions == nullptr ? i : args.positions[batch * args.positions_batch_stride + place];
  return p.raw_cache ? p_i - LostOf(args, batch) : p_i;
}

// Position - index of a row's real tokens.
inline int64_t ShiftOf(const AttentionParams& p, const AttentionArgs<float>& args, int64_t batch) {
  const int64_t past = args.past(batch);
  for (int64_t place = 0; place < args.length; ++place) {
    if (!IsReal(args, batch, past + place)) continue;
    return PositionOf(p, args, batch, place) - IndexOf(args, batch, past + place);
  }
  return 0;
}

// What a head adds by the distance from the query at an index back to a key.
inline double ByDistance(const AttentionParams& p, const AttentionArgs<float>& args, int64_t batch,
                         int64_t head, int64_t i, int64_t j) {
  const auto place = [&](int64_t index) {
    if (!p.distance_shown || args.mask == nullptr) return IndexOf(args, batch, index);
    int64_t before = 0;
    for (int64_t k = 0; k < index; ++k) before += IsReal(args, batch, k);
    return before;
  };
  const int64_t distance = place(i) - place(j);
  double bias = 0;
  if (!p.distance_starts.empty()) {
    size_t bucket = 0;
    for (size_t b = 1; b < p.distance_starts.size(); ++b) {
      if (p.distance_starts[b] <= distance) bucket = b;
    }
    bias = static_cast<double>(
        p.distance_biases[bucket * static_cast<size_t>(p.num_heads) + static_cast<size_t>(head)]);
  }
  if (p.distance_slopes.empty()) return bias;
  return bias - static_cast<double>(p.distance_slopes[static_cast<size_t>(head)]) *
                    static_cast<double>(std::abs(distance));
}

// What biases and the softcap make of a scaled product. False: they hide the key.
template <typename Real>
bool Modify(const AttentionParams& p, const AttentionArgs<float>& args, int64_t batch, int64_t head,
            int64_t place, int64_t j, Real& score) {
  const auto add = [&](const Bias<float>& bias) {
    if (bias.data == nullptr) return true;
    const float b = *bias.At(batch, head, place, j);
    score += static_cast<Real>(b);
    return b != -std::numeric_limits<float>::infinity();
  };
  if (!add(args.bias_before_softcap)) return false;
  const Real cap = static_cast<Real>(p.softcap);
  if (cap > 0) score = cap * std::tanh(score / cap);
  if (p.has_distances()) {
    score += static_cast<Real>(ByDistance(p, args, batch, head, args.past(batch) + place, j));
  }
  return add(args.bias);
}

template <typename Real>
Real Dot(const std::vector<Real>& a, const Real* b) {
  Real sum = 0;
  for (size_t x = 0; x < a.size(); ++x) sum += a[x] * b[x];
  return sum;
}

// What an implementation in 16 bits multiplies where the node does not ask for
// speed: float32, or two numbers of the element, the rounded one and its residual,
// without the product of two residuals. kRounded: what one in float32 multiplies where the node
// does ask for speed, all numbers rounded to bfloat16, values and their weights as well.
enum class Operands { kFloat, kPairs, kRounded };

// `element` rounds what an implementation in 16 bits rounds: new keys as the
// cache stores them, queries where the node asks for speed, and the output.
template <typename Real>
Result<Real> Reference(const AttentionParams& p, const AttentionArgs<float>& args,
                       Element element = Element::kFloat, Operands operands = Operands::kFloat) {
  const auto rounded = [&](Real x) {
    return static_cast<Real>(Rounded(element, static_cast<float>(x)));
  };
  const auto round = [&](std::vector<Real> row) {
    if (element == Element::kFloat) return row;
    for (Real& x : row) x = rounded(x);
    return row;
  };
  // An operand of a product that was rotated in this call.
  const auto operand = [&](std::vector<Real> row) {
    if (p.fast) return round(std::move(row));
    if (element == Element::kFloat || operands == Operands::kFloat) return row;
    for (Real& x : row) x = rounded(x) + rounded(x - rounded(x));
    return row;
  };
  const auto multiplied = [&](Real x) {
    if (operands != Operands::kRounded) return x;
    return static_cast<Real>(Rounded(Element::kBFloat16, static_cast<float>(x)));
  };
  const auto product_of_residuals = [&](const std::vector<Real>& query, const Real* key) {
    Real sum = 0;
    if (element == Element::kFloat || operands == Operands::kFloat) return sum;
    for (size_t x = 0; x < query.size(); ++x) {
      sum += (query[x] - rounded(query[x])) * (key[x] - rounded(key[x]));
    }
    return sum;
  };
  const int64_t group = p.num_heads / p.kv_num_heads;
  const Real scale = p.scale != 0
                         ? static_cast<Real>(p.scale)
                         : static_cast<Real>(1 / std::sqrt(static_cast<double>(args.head_size)));
  const auto position = [&](int64_t b, int64_t place) {
    return static_cast<double>(PositionOf(p, args, b, place));
  };
  Result<Real> result;
  for (int64_t b = 0; b < args.batch; ++b) {
    const int64_t shift = p.raw_cache ? ShiftOf(p, args, b) : 0;
    for (int64_t h = 0; h < p.num_heads; ++h) {
      const int64_t kv = h / group;
      const int64_t past = args.past(b);
      const int64_t total = args.total(b);
      std::vector<Real> keys;
      for (int64_t j = 0; j < total; ++j) {
        const float* stored = j < past ? args.past_key.At(b, kv, j) : args.key.At(b, kv, j - past);
        std::vector<Real> row(stored, stored + args.head_size);
        if (j >= past && !p.raw_cache) {
          row = p.position_axes.empty()
                    ? Rotate<Real>(p, stored, args.head_size, position(b, j - past))
                    : RotateAxes<Real>(p, args, stored, b, j - past);
          row = round(Times(p.key_factors, std::move(row)));
        }
        keys.insert(keys.end(), row.begin(), row.end());
      }
      if (h % group == 0) {
        result.present_key.insert(result.present_key.end(), keys.begin(), keys.end());
      }
      // Each band's keys; those of a rotated cache are the same for all.
      std::vector<std::vector<Real>> keys_of(p.bands.size(), keys);
      for (size_t band = 0; band < p.bands.size() && p.raw_cache; ++band) {
        keys_of[band].clear();
        for (int64_t j = 0; j < total; ++j) {
          const float* raw = j < past ? args.past_key.At(b, kv, j) : args.key.At(b, kv, j - past);
          const auto row = operand(Rotate<Real>(
              p, raw, args.head_size,
              p.bands[band].key_scale * static_cast<double>(IndexOf(args, b, j) + shift)));
          keys_of[band].insert(keys_of[band].end(), row.begin(), row.end());
        }
      }
      for (std::vector<Real>& rows : keys_of) {
        for (Real& x : rows) x = multiplied(x);
      }
      for (int64_t place = 0; place < args.length; ++place) {
        const int64_t i = past + place;
        std::vector<std::vector<Real>> queries;
        for (const Band& band : p.bands) {
          const float* query = args.query.At(b, h, place);
          auto turned =
              p.position_axes.empty()
                  ? Rotate<Real>(p, query, args.head_size,
                                 band.query_scale * position(b, place) + band.query_offset)
                  : RotateAxes<Real>(p, args, query, b, place);
          queries.push_back(operand(Times(p.query_factors, std::move(turned))));
          if (p.temperature.slope <= 0) continue;
          const auto steps =
              std::floor((std::max(0.0, position(b, place)) + 1) / p.temperature.group);
          const double temperature =
              std::max(1.0, p.temperature.offset +
                                p.temperature.slope * std::log(p.temperature.start + steps));
          for (Real& x : queries.back()) x *= static_cast<Real>(temperature);
        }
        for (std::vector<Real>& query : queries) {
          for (Real& x : query) x = multiplied(x);
        }
        std::vector<Real> scores(static_cast<size_t>(total));
        std::vector<bool> visible(scores.size());
        Real largest = -std::numeric_limits<Real>::infinity();
        bool any = false;
        for (int64_t j = 0; j < total; ++j) {
          if (!Visible(p, args, b, i, j)) continue;
          size_t band = 0;
          const int64_t distance = IndexOf(args, b, i) - IndexOf(args, b, j);
          while (band + 1 < p.bands.size() && distance >= p.bands[band + 1].start) ++band;
          Real& s = scores[static_cast<size_t>(j)];
          const Real* key = keys_of[band].data() + j * args.head_size;
          s = scale * (Dot(queries[band], key) - product_of_residuals(queries[band], key));
          if (!Modify(p, args, b, h, place, j, s)) continue;
          visible[static_cast<size_t>(j)] = true;
          if (s > largest || std::isnan(s)) largest = s;
          any = true;
        }
        std::vector<Real> out(static_cast<size_t>(args.v_head_size), Real{0});
        Real sum = 0;
        for (int64_t j = 0; j < total && any; ++j) {
          if (!visible[static_cast<size_t>(j)]) continue;
          const Real weight = std::exp(scores[static_cast<size_t>(j)] - largest);
          sum += weight;
          const float* value =
              j < past ? args.past_value.At(b, kv, j) : args.value.At(b, kv, j - past);
          for (size_t x = 0; x < out.size(); ++x) {
            out[x] += multiplied(weight) * multiplied(static_cast<Real>(value[x]));
          }
        }
        result.log_sum_exp.push_back(largest + std::log(sum));
        if (args.sinks != nullptr) sum += std::exp(static_cast<Real>(args.sinks[h]) - largest);
        for (Real& x : out) x = any ? x / sum : Real{0};
        out = round(out);
        result.output.insert(result.output.end(), out.begin(), out.end());
      }
    }
  }
  return result;
}

}  // namespace rope::test

#endif  // ROPE_TEST_REFERENCE_H_
