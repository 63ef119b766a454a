#!/bin/sh
# build-native.sh DIRECTORY TARGET [CMAKE OPTION...] configures the op library
# and its tests and builds one target (or all). The ONNX Runtime headers are those of the Go binding, or lie in
# ORT_INCLUDE_DIR, with which no Go is needed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
directory=$1
target=$2
shift 2
. "$here/pins.sh"

root=$(dirname "$here")
headers=${ORT_INCLUDE_DIR:-}
[ -n "$headers" ] || headers=$(cd "$root" && go mod download github.com/yalue/onnxruntime_go && go list -m -f '{{.Dir}}' github.com/yalue/onnxruntime_go)
[ -f "$headers/onnxruntime_c_api.h" ] || {
	echo "rope-rewrite: $headers holds no onnxruntime_c_api.h; run go mod download and try again, or give ONNX Runtime's include folder as ORT_INCLUDE_DIR." >&2
	exit 1
}
[ -f "$HWY_DIR/hwy/highway.h" ] || {
	echo "rope-rewrite: $HWY_DIR holds no hwy/highway.h; run make deps, or give the folder of Highway 1.2 as HWY_DIR." >&2
	exit 1
}

# CMake prints a page when nothing changes; it is of interest only on failure.
mkdir -p "$directory"
# A folder that was configured for sources elsewhere, which CMake refuses, begins anew.
sources=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$directory/CMakeCache.txt" 2>/dev/null || true)
[ "${sources:-$root/native}" -ef "$root/native" ] || rm -rf "$directory/CMakeCache.txt" "$directory/CMakeFiles"
if ! cmake -S "$root/native" -B "$directory" -DHWY_DIR="$HWY_DIR" -DORT_INCLUDE_DIR="$headers" -DROPE_BUILD_TESTS=ON \
	-DOLD_ONNXRUNTIMES="${BUILD:-$root/build}/onnxruntime-old" -DOLD_ONNXRUNTIME_VERSIONS="$(echo $PIN_OLD_ONNXRUNTIMES | tr ' ' ';')" "$@" >"$directory/configure.log" 2>&1; then
	cat "$directory/configure.log" >&2
	exit 1
fi
cmake --build "$directory" --target "$target" --parallel "${JOBS:-2}"
