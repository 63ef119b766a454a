#!/bin/sh
# Puts the pinned CUDA compiler, headers and static runtime into build/cuda-toolkit,
# which then looks like a toolkit's own folder: bin, include, lib, nvvm.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/pins.sh"
build=${BUILD:-$(dirname "$here")/build}
target=$build/cuda-toolkit
version=$PIN_NVIDIA_CUDA_NVCC_VERSION

[ "$(cat "$target/version" 2>/dev/null)" = "$version" ] && exit 0

mkdir -p "$build"
part=$(mktemp -d "$build/cuda-toolkit.XXXXXX")
trap 'rm -rf "$part"' EXIT
for wheel in $PIN_CUDA_WHEELS; do
	sh "$here/fetch-wheel.sh" "$wheel" "$part/wheels"
done
toolkit=$part/wheels/nvidia/cu13
chmod -R a+rX "$toolkit"
find "$toolkit/bin" "$toolkit/nvvm/bin" -type f -exec chmod a+x {} + # zipfile drops the mode
mkdir "$toolkit/licenses"
for wheel in "$part"/wheels/*.dist-info; do
	find "$wheel" -iname 'license*' -type f -exec cp {} "$toolkit/licenses/$(basename "$wheel" .dist-info).txt" \;
done
echo "$version" >"$toolkit/version"
rm -rf "$target"
mv "$toolkit" "$target"
