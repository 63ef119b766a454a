#include "cases.h"

namespace rope::bench {

double Work::Flops() const {
  const double l = static_cast<double>(length);
  const double pairs = l * static_cast<double>(past) + l * (l + 1) / 2;
  return 4.0 * static_cast<double>(heads * head_size) * pairs;
}

double Work::CacheBytes(int64_t element_size) const {
  return 2.0 * static_cast<double>(kv_heads * head_size * total() * element_size);
}

std::vector<Work> Works() {
  return {
      {"prefill 32/8 d128 L2048", 32, 8, 128, 2048, 0},
      {"prefill 9/3 d64 L4096", 9, 3, 64, 4096, 0},
      {"decode 32/8 d128 16384 keys", 32, 8, 128, 1, 16383, true},
      {"decode 9/3 d64 16384 keys", 9, 3, 64, 1, 16383, true},
      {"decode 32/8 d128 16384 keys, growing", 32, 8, 128, 1, 16383},
      {"decode 9/3 d64 16384 keys, growing", 9, 3, 64, 1, 16383},
      {"chunk 9/3 d64 L64 after 8192", 9, 3, 64, 64, 8192, true},
      {"one key 9/3 d64", 9, 3, 64, 1, 0},
      {"long prefill 9/3 d64 L8192", 9, 3, 64, 8192, 0, false, true},
      {"long prefill 9/3 d64 L16384", 9, 3, 64, 16384, 0, false, true},
      {"long prefill 32/8 d128 L8192", 32, 8, 128, 8192, 0, false, true},
  };
}

std::vector<Contestant> ContestantsOf(const Work& work) {
  std::vector<Contestant> out = {{"RotaryAttention"}};
  const auto add = [&out](const char* name, auto change) {
    Contestant c{name};
    change(c);
    out.push_back(c);
  };
  if (work.alone) {
    add("fast", [](Contestant& c) { c.fast = true; });
    return out;
  }
  add("GroupQueryAttention", [](Contestant& c) { c.ours = false; });
  if (work.total() < 2) return out;
  add("two bands", [](Contestant& c) { c.two_bands = true; });
  add("raw cache", [](Contestant& c) { c.raw_cache = true; });
  add("fast", [](Contestant& c) { c.fast = true; });
  if (work.length > 1 && work.past == 0) add("8 documents", [](Contestant& c) { c.documents = 8; });
  add("unrotated", [](Contestant& c) { c.unrotated = true; });
  add("ALiBi slopes", [](Contestant& c) { c.slopes = true; });
  add("T5 buckets", [](Contestant& c) { c.buckets = true; });
  if (work.length > 1 && work.heads < 16) {
    add("ALiBi as a tensor", [](Contestant& c) { c.bias_tensor = true; });
  }
  add("cache float16", [](Contestant& c) { c.cache = Element::kFloat16; });
  add("cache bfloat16", [](Contestant& c) { c.cache = Element::kBFloat16; });
  add("cache int8", [](Contestant& c) { c.cache = Element::kInt8; });
  add("float16", [](Contestant& c) { c.element = Element::kFloat16; });
  add("bfloat16", [](Contestant& c) { c.element = Element::kBFloat16; });
  add("bfloat16 fast", [](Contestant& c) { c.element = Element::kBFloat16, c.fast = true; });
  add("GroupQueryAttention float16",
      [](Contestant& c) { c.ours = false, c.element = Element::kFloat16; });
  add("GroupQueryAttention, cache int8",
      [](Contestant& c) { c.ours = false, c.cache = Element::kInt8; });
  return out;
}

}  // namespace rope::bench
