// The instructions that the kernels use on this processor.
#ifndef ROPE_CPU_TARGET_H_
#define ROPE_CPU_TARGET_H_

namespace rope {

// Highway's name of them: "AVX3", "AVX2", "NEON". The text is the library's.
const char* CpuTarget();

}  // namespace rope

#endif  // ROPE_CPU_TARGET_H_
