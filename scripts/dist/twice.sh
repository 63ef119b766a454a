#!/bin/sh
# twice.sh PLATFORM... builds the release once more, in another folder and with all caches empty, and compares the sums of all files.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
again=$BUILD/dist/again
rm -rf "$again"
mkdir -p "$again/dist"
ln -s "$BUILD/dist/zig" "$again/dist/zig" # the compiler itself is pinned by its checksum
GOCACHE=$again/go-cache BUILD=$again sh "$here/dist.sh" "$@"
diff "$BUILD/dist/out/SHA256SUMS" "$again/dist/out/SHA256SUMS"
echo "$(wc -l <"$again/dist/out/SHA256SUMS") files are the same"
rm -rf "$again"
