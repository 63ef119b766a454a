// The works that are timed, and the ops that do them.
#ifndef ROPE_BENCH_CASES_H_
#define ROPE_BENCH_CASES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rope::bench {

// New tokens of one batch row against a cache.
struct Work {
  std::string name;
  int64_t heads, kv_heads, head_size, length, past;
  bool in_place = false;  // past and present are one buffer, otherwise present is a new one
  // So long that the peer's scores fill the memory: without it, and only when --only says long.
  bool alone = false;

  int64_t total() const { return past + length; }
  // Floating point operations of the pairs that a causal mask shows.
  double Flops() const;
  // Bytes of all keys and values, in elements of a size.
  double CacheBytes(int64_t element_size) const;
};

enum class Element { kFloat, kFloat16, kBFloat16, kInt8 };  // int8: of caches alone

// One way to do a work.
struct Contestant {
  std::string name;
  bool ours = true;  // otherwise com.microsoft GroupQueryAttention, whose int8 has fixed scales
  Element element = Element::kFloat;
  bool fast = false;      // precision
  int64_t documents = 0;  // of equal length
  bool two_bands = false;
  bool raw_cache = false;
  bool slopes = false;                          // of ALiBi, in place of a rotation
  bool buckets = false;                         // of T5, in place of a rotation
  bool unrotated = false;                       // neither
  bool bias_tensor = false;                     // slopes as numbers [1, heads, length, total]
  std::optional<Element> cache = std::nullopt;  // the caches' element, where that is another one
};

std::vector<Work> Works();
std::vector<Contestant> ContestantsOf(const Work& work);

}  // namespace rope::bench

#endif  // ROPE_BENCH_CASES_H_
