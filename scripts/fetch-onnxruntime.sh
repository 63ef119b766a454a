#!/bin/sh
# Puts the pinned ONNX Runtime library into build/onnxruntime: the versioned
# file, the two links that loaders ask for, and the providers' shared library.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/pins.sh"
build=${BUILD:-$(dirname "$here")/build}
target=$build/onnxruntime

# Whole or absent: the folder is moved into place when everything is in it.
[ "$(cat "$target/version" 2>/dev/null)" = "$PIN_ONNXRUNTIME_VERSION" ] && exit 0

mkdir -p "$build"
part=$(mktemp -d "$build/onnxruntime.XXXXXX")
trap 'rm -rf "$part"' EXIT
sh "$here/fetch-wheel.sh" onnxruntime "$part/wheel"
mkdir "$part/lib"
library=libonnxruntime.so.$PIN_ONNXRUNTIME_VERSION
mv "$part/wheel/onnxruntime/capi/$library" "$part/wheel/onnxruntime/capi/libonnxruntime_providers_shared.so" "$part/lib/"
mv "$part/wheel/onnxruntime/LICENSE" "$part/wheel/onnxruntime/ThirdPartyNotices.txt" "$part/lib/"
ln -s "$library" "$part/lib/libonnxruntime.so.1"
ln -s "$library" "$part/lib/libonnxruntime.so"
echo "$PIN_ONNXRUNTIME_VERSION" >"$part/lib/version"
chmod 755 "$part/lib"
rm -rf "$target"
mv "$part/lib" "$target"
