#!/bin/sh
# folders.sh runs folders that rope-rewrite made in the hosts that take folders, as `make hosts-folders` builds and
# fetches them: SmolLM2's exports, and small ones of testdata. Exit status 1 if anything failed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../pins.sh"
work=$BUILD/hosts
. "$here/venv.sh"
failed=0
check() { "$@" || failed=1; }

mkdir -p "$work/folder-genai" "$work/folder-optimum" "$work/folder-transformers"
venv folder-genai-host "onnxruntime-genai==$PIN_HOSTS_GENAI" "numpy==$PIN_HOSTS_NUMPY" "tokenizers==$PIN_HOSTS_TOKENIZERS" &&
	check "$python" "$here/folder_genai.py" "$BUILD/rope-rewrite" "$BUILD/smollm2/genai-fp32" "$work/folder-genai"
venv folder-optimum-host "optimum-onnx[onnxruntime]==$PIN_HOSTS_OPTIMUM" &&
	check "$python" "$here/folder_optimum.py" "$BUILD/rope-rewrite" "$BUILD/smollm2/optimum" "$ROPE_OPS_LIBRARY" "$work/folder-optimum"
venv folder-transformers-host -r "$here/../../testdata/scripts/requirements-transformers.txt" &&
	check "$python" "$here/folder_transformers.py" "$BUILD/rope-rewrite" "$here/../../testdata" "$ROPE_OPS_LIBRARY" "$work/folder-transformers"
exit $failed
