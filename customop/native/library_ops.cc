// librope_ops holds the ops of the CPU alone; librope_ops_cuda has its own list.
#include "rotary_attention.h"

namespace rope {

std::vector<OrtCustomOp> LibraryOps(bool infer_shapes) { return CpuOps(infer_shapes); }

}  // namespace rope
