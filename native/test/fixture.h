// Hosts and tensors for the kernel tests.
#ifndef ROPE_TEST_FIXTURE_H_
#define ROPE_TEST_FIXTURE_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "attention.h"

namespace rope::test {

// A host with its own threads that counts the memory it gives.
class TestHost : public Host {
 public:
  explicit TestHost(int threads) : threads_(threads) {}

  void ParallelFor(size_t count, void (*fn)(void*, size_t), void* data) override;
  void* Allocate(size_t bytes) override;
  void Free(void* memory) override;

  size_t peak() const { return peak_; }
  size_t in_use() const { return in_use_; }
  void set_limit(size_t bytes) { limit_ = bytes; }

 private:
  const int threads_;
  std::atomic<size_t> in_use_{0};
  std::atomic<size_t> peak_{0};
  size_t limit_ = SIZE_MAX;
};

enum class Element { kFloat, kFloat16, kBFloat16, kInt8 };  // int8: of caches alone

const char* NameOf(Element element);

// Whether a target's kernels multiply bfloat16 in fast prompts, those of float32 too.
bool MultipliesBFloat16(const std::string& target);

// The nearest number that an element can be.
float Rounded(Element element, float x);

// Numbers of a row of a cache of int8: integers times a scale.
struct QuantizedRow {
  std::vector<int8_t> integers;
  float scale = 0;
};

// A row as the op stores it: the largest number becomes 127 or -127. A number that is not finite
// makes the scale NaN.
QuantizedRow Quantized(const float* row, int64_t size);

// One call of the kernel: sizes and options first, tensors by Draw.
struct Call {
  std::string name;
  AttentionParams params;
  Element element =
      Element::kFloat;           // of the tensors; the vectors below hold its numbers as float32
  std::optional<Element> cache;  // the caches' element where that is another one
  int64_t batch = 1, length = 1, past = 0, head_size = 64, v_head_size = 64;
  int64_t keys = 0;               // of another text, where params.cross is set
  std::vector<int32_t> row_past;  // cached tokens of each row, at most past; empty: past of them
  int64_t capacity = -1;          // rows of past and present buffers; -1: past grows to present
  bool in_place = false;          // with a capacity: past and present are one buffer
  // n > 0: the caches are rings of so many rows, first keys among them. Tensors of the past have
  // all tokens all the same; Run takes out those that a ring still has.
  int64_t ring = 0;
  int64_t mask_width = 0;       // with a ring: columns of the mask; 0: as many as tokens
  bool flat = false;            // query, key, value and output are [batch, rows, heads * channels]
  bool keep_cache = true;       // present_key and present_value are wanted
  int64_t first_position = -1;  // -1: no position_ids
  int64_t axes = 0;             // n > 0: positions on n axes, which differ from place to place
  int64_t left_padding = -1;    // -1: no mask; row b hides (b + 1) * left_padding first keys
  float magnitude = 1;          // of query and key
  int64_t documents = 0;        // 0: no document_ids; n: ids from -1 to n - 1
  int64_t change_every = 1;     // ids change after so many tokens or so
  std::vector<int64_t> bias_dims, bias_before_dims;  // four dimensions; empty: no such bias
  int64_t bias_hides = 0;                            // n > 0: about one bias in n is -inf
  bool has_sinks = false;

  std::vector<float> query, key, value, past_key, past_value, output, present_key, present_value;
  std::vector<float> bias, bias_before, sinks, log_sum_exp;
  std::vector<int64_t> positions, mask, ids;

  void Draw(uint32_t seed);
  AttentionArgs<float> Args();
  // Numbers as the call's caches hold them.
  std::vector<float> AsCached(const std::vector<float>& rows, int64_t size) const;
  // Runs the kernel of the call's element type.
  bool Run(Host& host);
  // The output in the reference's order [batch, heads, length, channels].
  std::vector<float> OutputByHead() const;
  // The rows of present_key that hold tokens, in the reference's order.
  std::vector<float> PresentKeys() const;
  // Of rows for each token of each head those that a ring has behind this call; without one all.
  template <typename Real>
  std::vector<Real> Kept(const std::vector<Real>& rows, int64_t size) const {
    std::vector<Real> out;
    auto row = rows.begin();
    for (int64_t i = 0; i < batch * params.kv_num_heads; ++i) {
      const int64_t total = Total(i / params.kv_num_heads);
      for (int64_t j = 0; j < total; ++j, row += size) {
        if (InRing(j, total)) out.insert(out.end(), row, row + size);
      }
    }
    return out;
  }
  // Whether all rows after the tokens of present_key and present_value are as
  // they must be: zero, or untouched where past and present are one buffer.
  bool RestIsRight() const;
  // Rows of key and value.
  int64_t NewKeys() const { return params.cross ? keys : length; }

 private:
  bool RunInRing(Host& host);
  // Whether a ring has the token at an index when there are so many.
  bool InRing(int64_t index, int64_t tokens) const {
    return ring == 0 || index < params.first_keys || index >= tokens - (ring - params.first_keys);
  }
  int64_t RingRow(int64_t index) const {
    const int64_t first = params.first_keys;
    return index < first ? index : first + (index - first) % (ring - first);
  }
  void DrawMasks(uint32_t seed);
  void DrawPositions(uint32_t seed);
  void AddMasks(AttentionArgs<float>& args);
  int64_t PastRows() const { return capacity < 0 ? past : capacity; }
  int64_t PresentRows() const {
    if (ring > 0) return ring;
    return capacity < 0 ? past + NewKeys() : capacity;
  }
  int64_t Total(int64_t row) const {
    return (row_past.empty() ? past : row_past[static_cast<size_t>(row)]) + NewKeys();
  }
};

// Whether a call has so many query rows that kernels pack what they multiply.
bool IsPrompt(const Call& call);

// frequencies base^(-2i/rotary_dim)
std::vector<float> Frequencies(int64_t rotary_dim, double base = 10000);

}  // namespace rope::test

#endif  // ROPE_TEST_FIXTURE_H_
