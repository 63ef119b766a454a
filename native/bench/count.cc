// Runs the kernel once on a work of a given name, for a tool that counts
// instructions (scripts/count-instructions.sh): without a name it lists them.
#include <cstdio>
#include <cstring>

#include "test/fixture.h"

namespace rope::test {
namespace {

struct Work {
  const char* name;
  int64_t heads, kv_heads, head_size, length, past;
  void (*change)(Call&);
};

const Work kWorks[] = {
    {"prefill-d64", 9, 3, 64, 256, 0, [](Call&) {}},
    {"prefill-d128", 8, 2, 128, 256, 0, [](Call&) {}},
    {"prefill-d64-two-bands", 9, 3, 64, 256, 0,
     [](Call& c) { c.params.bands.push_back({85, 1, -40}); }},
    {"prefill-d64-documents", 9, 3, 64, 256, 0,
     [](Call& c) { c.documents = 4, c.change_every = 32; }},
    {"prefill-d64-float16", 9, 3, 64, 256, 0, [](Call& c) { c.element = Element::kFloat16; }},
    {"prefill-d64-bfloat16", 9, 3, 64, 256, 0, [](Call& c) { c.element = Element::kBFloat16; }},
    {"decode-d64", 9, 3, 64, 1, 2048, [](Call&) {}},
    {"decode-d128", 8, 2, 128, 1, 2048, [](Call&) {}},
    {"decode-d64-raw-cache", 9, 3, 64, 1, 2048, [](Call& c) { c.params.raw_cache = true; }},
    {"decode-d64-float16", 9, 3, 64, 1, 2048, [](Call& c) { c.element = Element::kFloat16; }},
    {"decode-d64-bfloat16", 9, 3, 64, 1, 2048, [](Call& c) { c.element = Element::kBFloat16; }},
    {"prefill-d64-exact-angles", 9, 3, 64, 256, 0, [](Call& c) { c.params.exact_angles = true; }},
    {"decode-d64-exact-angles", 9, 3, 64, 1, 2048, [](Call& c) { c.params.exact_angles = true; }},
    {"decode-d64-raw-cache-exact-angles", 9, 3, 64, 1, 2048,
     [](Call& c) { c.params.raw_cache = c.params.exact_angles = true; }},
    {"one-key-d64", 9, 3, 64, 1, 0, [](Call&) {}},
};

int Run(const Work& work) {
  Call call;
  call.params.num_heads = work.heads;
  call.params.kv_num_heads = work.kv_heads;
  call.params.frequencies = Frequencies(work.head_size);
  call.head_size = call.v_head_size = work.head_size;
  call.length = work.length;
  call.past = work.past;
  call.flat = true;
  if (work.past > 0) call.capacity = work.past + work.length, call.in_place = true;
  work.change(call);
  call.Draw(1);
  TestHost host(1);
  return call.Run(host) ? 0 : 1;
}

}  // namespace
}  // namespace rope::test

int main(int argc, char** argv) {
  using namespace rope::test;
  for (const Work& work : kWorks) {
    if (argc < 2) {
      std::printf("%s\n", work.name);
    } else if (std::strcmp(argv[1], work.name) == 0) {
      return Run(work);
    }
  }
  return argc < 2 ? 0 : 2;
}
