#!/bin/sh
# docs.sh runs every block of docs/using.md and docs/topics.md, as `make docs` asks for it: also those in Python, Node and
# C++, for which it fetches what they need into build/docs. ROPE_ORT_CXX names the folder of onnxruntime_cxx_api.h (Debian:
# libonnxruntime-dev); without it the block in C++ is not run.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
. "$here/pins.sh"
. "$here/hosts/venv.sh"
work=$BUILD/docs
mkdir -p "$work"
runtime=${PIN_HOSTS_ONNXRUNTIMES##* }
venv python "onnxruntime==$runtime" "numpy==$PIN_HOSTS_NUMPY"
node_modules "$here/hosts/node" "$work"
# The project's package, as its wheel has it.
rm -rf "$work/package"
mkdir -p "$work/package"
cp -r "$root/python/rope_rewrite" "$work/package/rope_rewrite"
cp "$BUILD/rope-rewrite" "$(readlink -f "$ROPE_OPS_LIBRARY")" "$work/package/rope_rewrite/"
header=/usr/include/onnxruntime
if [ -z "${ROPE_ORT_CXX:-}" ] && [ -f "$header/onnxruntime_cxx_api.h" ]; then ROPE_ORT_CXX=$header; fi
export ROPE_ORT_CXX="${ROPE_ORT_CXX:-}" ROPE_PYTHON="$work/python/bin/python" ROPE_NODE_MODULES="$work/node_modules" PYTHONPATH="$work/package" PYTHONDONTWRITEBYTECODE=1
cd "$root"
go test -count=1 -v ./cmd/internal/docblocks
