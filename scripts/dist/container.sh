#!/bin/sh
# container.sh FOLDER builds the Containerfile's two images with buildah, and runs both. Their base is made by debootstrap,
# so no registry of images is needed; FOLDER keeps it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$1
sh "$here/debian.sh" trixie "$work/trixie"
rm -rf "$work/storage" "$work/models"
mkdir -p "$work/storage" "$work/models"
cp "$root/testdata/models/llama__optimum/model.onnx" "$work/models/"
chmod 777 "$work/models"
images() { buildah --root "$work/storage" --runroot "$work/storage/run" --storage-driver vfs "$@"; }
base=$(images from scratch)
images add --quiet "$base" "$work/trixie" / >/dev/null
images commit --quiet "$base" localhost/debian:trixie-slim >/dev/null
cd "$root"
for target in command complete; do
	images build --quiet --isolation chroot --build-arg BASE=localhost/debian:trixie-slim --target $target -t rope-rewrite:$target . >/dev/null
done
for target in command complete; do
	container=$(images from localhost/rope-rewrite:$target)
	images run --isolation chroot "$container" -- rope-rewrite version
done
images run --isolation chroot -v "$work/models:/models" "$container" -- rope-rewrite model.onnx -o same.onnx
images run --isolation chroot -v "$work/models:/models" "$container" -- rope-rewrite validate model.onnx same.onnx | tail -n 1
images rm --all >/dev/null
rm -rf "$work/storage"
