// Products of warpgroups, four warps that multiply together: wgmma of sm_90a. They read
// matrices from shared memory by descriptors, and go on while other instructions run.
#ifndef ROPE_CUDA_WGMMA_H_
#define ROPE_CUDA_WGMMA_H_

#include <cstdint>
#include <type_traits>

#include "device.h"
#include "element.h"

namespace rope::cuda {

inline constexpr int kWarpgroupThreads = 128;
inline constexpr int kWarpgroupRows = 64;

// A matrix of 16-bit numbers in shared memory lies in squares of eight rows of 128 bytes, each
// aligned to its 1024 bytes. In row r of a square the 16 bytes that come as number c stand at
// place c ^ r, so that the same 16 bytes of eight rows are in different banks.
inline constexpr int kSquareRows = 8;
inline constexpr int kSquareRowBytes = 128;
inline constexpr int kSquareBytes = kSquareRows * kSquareRowBytes;

// Where such a matrix begins, how far the squares are apart whose rows are the next eight, and
// those whose rows go on.
ROPE_DEVICE uint64_t DescriptorOf(uint32_t address, int next_rows, int next_columns) {
  constexpr uint64_t kSwizzleOf128Bytes = 1;
  const auto field = [](uint32_t bytes) { return static_cast<uint64_t>(bytes >> 4 & 0x3fff); };
  return field(address) | field(static_cast<uint32_t>(next_columns)) << 16 |
         field(static_cast<uint32_t>(next_rows)) << 32 | kSwizzleOf128Bytes << 62;
}
// The same of one that begins further on: by less than a row's length, or by whole squares.
ROPE_DEVICE uint64_t Further(uint64_t descriptor, int bytes) {
  const uint32_t low = static_cast<uint32_t>(descriptor) + static_cast<uint32_t>(bytes / 16);
  return descriptor >> 32 << 32 | low;
}

#ifdef __CUDACC__

// d (64 x kColumns) = a (64 x 16) · b (16 x kColumns), or that added to d. Thread t of a
// warpgroup has of d and of a in registers the same rows and columns as with mma.m16n8k16: its
// warp's sixteen rows. Written out for each type and number of columns, since all registers are
// operands of one instruction.
#define ROPE_LIST8(d, i)                                                                \
  "+f"((d)[i]), "+f"((d)[i + 1]), "+f"((d)[i + 2]), "+f"((d)[i + 3]), "+f"((d)[i + 4]), \
      "+f"((d)[i + 5]), "+f"((d)[i + 6]), "+f"((d)[i + 7])
#define ROPE_LIST32(d, i) \
  ROPE_LIST8(d, i), ROPE_LIST8(d, i + 8), ROPE_LIST8(d, i + 16), ROPE_LIST8(d, i + 24)
#define ROPE_NAMES32                                                               \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21," \
  "%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define ROPE_NAMES64                                                                              \
  ROPE_NAMES32                                                                                    \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54," \
  "%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define ROPE_WGMMA(columns, type) \
  "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " "

// a and b lie in shared memory, both with rows of 16 neighbours: b is transposed. `adds`: 0 or 1.
#define ROPE_WGMMA_SHARED(columns, type, names, a, b, adds, ...)                                 \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " adds                                          \
               ", 0;\n" ROPE_WGMMA(columns, type) "{" names "}, " a ", " b ", p, 1, 1, 0, 0;\n}" \
               : __VA_ARGS__                                                                     \
               : "l"(from_a), "l"(from_b), "r"(adds_to_d))

// a lies in registers; b has rows of kColumns neighbours. Always added to d.
#define ROPE_WGMMA_REGISTERS(columns, type, names, a, b, ...)                       \
  asm volatile(ROPE_WGMMA(columns, type) "{" names "}, {" a "}, " b ", 1, 1, 1, 1;" \
               : __VA_ARGS__                                                        \
               : "r"(a_pairs[0]), "r"(a_pairs[1]), "r"(a_pairs[2]), "r"(a_pairs[3]), "l"(from_b))

template <typename T, int kColumns>
ROPE_DEVICE void WgmmaShared(float* d, uint64_t from_a, uint64_t from_b, int adds_to_d) {
  static_assert(kColumns == 64 || kColumns == 128);
  constexpr bool kHalf = std::is_same_v<T, Half>;
  if constexpr (kColumns == 64 && kHalf) {
    ROPE_WGMMA_SHARED("64", "f16", ROPE_NAMES32, "%32", "%33", "%34", ROPE_LIST32(d, 0));
  } else if constexpr (kColumns == 64) {
    ROPE_WGMMA_SHARED("64", "bf16", ROPE_NAMES32, "%32", "%33", "%34", ROPE_LIST32(d, 0));
  } else if constexpr (kHalf) {
    ROPE_WGMMA_SHARED("128", "f16", ROPE_NAMES64, "%64", "%65", "%66", ROPE_LIST32(d, 0),
                      ROPE_LIST32(d, 32));
  } else {
    ROPE_WGMMA_SHARED("128", "bf16", ROPE_NAMES64, "%64", "%65", "%66", ROPE_LIST32(d, 0),
                      ROPE_LIST32(d, 32));
  }
}

template <typename T, int kColumns>
ROPE_DEVICE void WgmmaRegisters(float* d, const uint32_t* a_pairs, uint64_t from_b) {
  static_assert(kColumns == 64 || kColumns == 128);
  constexpr bool kHalf = std::is_same_v<T, Half>;
  if constexpr (kColumns == 64 && kHalf) {
    ROPE_WGMMA_REGISTERS("64", "f16", ROPE_NAMES32, "%32,%33,%34,%35", "%36", ROPE_LIST32(d, 0));
  } else if constexpr (kColumns == 64) {
    ROPE_WGMMA_REGISTERS("64", "bf16", ROPE_NAMES32, "%32,%33,%34,%35", "%36", ROPE_LIST32(d, 0));
  } else if constexpr (kHalf) {
    ROPE_WGMMA_REGISTERS("128", "f16", ROPE_NAMES64, "%64,%65,%66,%67", "%68", ROPE_LIST32(d, 0),
                         ROPE_LIST32(d, 32));
  } else {
    ROPE_WGMMA_REGISTERS("128", "bf16", ROPE_NAMES64, "%64,%65,%66,%67", "%68", ROPE_LIST32(d, 0),
                         ROPE_LIST32(d, 32));
  }
}

#undef ROPE_LIST8
#undef ROPE_LIST32
#undef ROPE_NAMES32
#undef ROPE_NAMES64
#undef ROPE_WGMMA
#undef ROPE_WGMMA_SHARED
#undef ROPE_WGMMA_REGISTERS

#endif  // __CUDACC__

}  // namespace rope::cuda

#endif  // ROPE_CUDA_WGMMA_H_
