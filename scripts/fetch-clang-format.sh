#!/bin/sh
# Puts the pinned clang-format into build/clang-format/clang-format.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/pins.sh"
build=${BUILD:-$(dirname "$here")/build}
target=$build/clang-format

[ "$(cat "$target/version" 2>/dev/null)" = "$PIN_CLANG_FORMAT_VERSION" ] && exit 0

mkdir -p "$build"
part=$(mktemp -d "$build/clang-format.XXXXXX")
trap 'rm -rf "$part"' EXIT
sh "$here/fetch-wheel.sh" clang-format "$part/wheel"
mkdir "$part/bin"
mv "$part/wheel/clang_format/data/bin/clang-format" "$part/bin/"
chmod 755 "$part/bin" "$part/bin/clang-format" # zipfile drops the mode
echo "$PIN_CLANG_FORMAT_VERSION" >"$part/bin/version"
rm -rf "$target"
mv "$part/bin" "$target"
