// What the machine can do at best, measured beside the kernels.
#ifndef ROPE_BENCH_MACHINE_H_
#define ROPE_BENCH_MACHINE_H_

#include <cstddef>
#include <cstdint>

namespace rope::bench {

// Does float32 multiply-adds from registers to registers on this thread, in
// vectors of the CPU's best target, and returns how many operations they were
// (two each). `sink` keeps them from being left out.
double MultiplyAdd(int64_t rounds, float* sink);

// The same in bfloat16 pairs that are added up in float32; 0 where the CPU has no such thing.
double MultiplyAddBFloat16(int64_t rounds, float* sink);

// Reads floats once, in order.
void Read(const float* data, size_t count, float* sink);

// The target that the kernels run on.
const char* TargetName();

}  // namespace rope::bench

#endif  // ROPE_BENCH_MACHINE_H_
