#!/bin/sh
# Puts the libraries of the older ONNX Runtimes that scripts/pins.sh names into
# build/onnxruntime-old/VERSION/libonnxruntime.so, and says which there are none of
# for this machine: the tests pass those over.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/pins.sh"
build=${BUILD:-$(dirname "$here")/build}
target=$build/onnxruntime-old
machine=$(uname -m)
[ "$machine" = arm64 ] && machine=aarch64

mkdir -p "$target"
for version in $PIN_OLD_ONNXRUNTIMES; do
	[ -f "$target/$version/libonnxruntime.so" ] && continue
	key=PIN_ONNXRUNTIME_$(printf '%s' "$version" | tr . _)
	eval "file=\${${key}_FILE} sha256=\${${key}_SHA256_${machine}:-}"
	if [ "$(uname -s)" != Linux ] || [ -z "$sha256" ]; then
		echo "rope-rewrite: no ONNX Runtime $version is pinned for $(uname -s) on $machine; the tests pass it over." >&2
		continue
	fi
	part=$(mktemp -d "$target/part.XXXXXX")
	trap 'rm -rf "$part"' EXIT
	sh "$here/fetch-wheel.sh" "onnxruntime-$version" "$part" "$file"
	mkdir "$part/library"
	mv "$part/$file" "$part/library/libonnxruntime.so"
	chmod 755 "$part/library"
	rm -rf "${target:?}/$version"
	mv "$part/library" "$target/$version"
	rm -rf "$part"
	trap - EXIT
done
