#!/bin/sh
# dist.sh [PLATFORM...] builds a release of the last commit, or of COMMIT, in build/dist/out, as `make dist` asks for it.
# Everything that decides about its bytes is pinned: compilers by version, sources by commit, times by that commit.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/../pins.sh"
: "${BUILD:=$root/build}"
dist=$BUILD/dist
out=$dist/out
src=$dist/src

# One line for each platform: Go's names, zig's target, CMake's system and processor, the library, more tags.
platforms() {
	cat <<-EOF
		linux_amd64 x86_64-linux-gnu.2.28 Linux x86_64 librope_ops.so -
		linux_arm64 aarch64-linux-gnu.2.28 Linux aarch64 librope_ops.so -
		darwin_amd64 x86_64-macos.11.0 Darwin x86_64 librope_ops.dylib netgo,osusergo
		darwin_arm64 aarch64-macos.11.0 Darwin arm64 librope_ops.dylib netgo,osusergo
		windows_amd64 x86_64-windows-gnu Windows AMD64 rope_ops.dll -
	EOF
}

wanted=${*:-$(platforms | cut -d' ' -f1)}
for name in $wanted; do
	platforms | grep -q "^$name " || { echo "rope-rewrite: no platform $name; there are: $(platforms | cut -d' ' -f1 | tr '\n' ' ')" >&2; exit 1; }
done

sh "$here/../need.sh" go cmake python3 git
commit=$(git -C "$root" rev-parse "${COMMIT:-HEAD}")
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct "$commit")
export SOURCE_DATE_EPOCH
version=$(sed -n 's/^const Version = "\(.*\)"/\1/p' "$root/customop/version.go")
headers=$(cd "$root" && go mod download github.com/yalue/onnxruntime_go && go list -m -f '{{.Dir}}' github.com/yalue/onnxruntime_go)

# The compiler for all platforms, a package of PyPI.
if [ "$(cat "$dist/zig/.wanted" 2>/dev/null)" != "$PIN_ZIG" ]; then
	rm -rf "$dist/zig"
	python3 -m venv "$dist/zig"
	printf '%s\n' "$PIN_ZIG_REQUIREMENT" >"$dist/zig/requirements.txt"
	"$dist/zig/bin/python" -m pip --disable-pip-version-check install --quiet --require-hashes --only-binary=:all: -r "$dist/zig/requirements.txt"
	echo "$PIN_ZIG" >"$dist/zig/.wanted"
fi
ZIG=$(echo "$dist"/zig/lib/python3*/site-packages/ziglang/zig)
export ZIG ZIG_GLOBAL_CACHE_DIR="$dist/zig-cache" ZIG_LOCAL_CACHE_DIR="$dist/zig-cache"

rm -rf "$src" "$out"
mkdir -p "$src" "$out"
git -C "$root" archive "$commit" | tar -x -C "$src"

for name in $wanted; do
	set -- $(platforms | grep "^$name ")
	echo "$name: the op library"
	export ZIG_TARGET="$2"
	# Paths of this machine must not reach the bytes.
	flags="-ffile-prefix-map=$src=. -ffile-prefix-map=$HWY_DIR=highway -ffile-prefix-map=$headers=onnxruntime"
	rm -rf "$dist/native-$name"
	cmake -S "$src/native" -B "$dist/native-$name" -DCMAKE_SYSTEM_NAME="$3" -DCMAKE_SYSTEM_PROCESSOR="$4" \
		-DCMAKE_C_COMPILER="$here/cc.sh" -DCMAKE_CXX_COMPILER="$here/cxx.sh" -DCMAKE_BUILD_TYPE=Release \
		-DCMAKE_CXX_FLAGS="$flags" -DCMAKE_C_FLAGS="$flags" -DCMAKE_SHARED_LINKER_FLAGS=-s \
		-DHWY_DIR="$HWY_DIR" -DORT_INCLUDE_DIR="$headers" >"$dist/native-$name.log" 2>&1 &&
		cmake --build "$dist/native-$name" --target rope_ops --parallel "${JOBS:-2}" >>"$dist/native-$name.log" 2>&1 ||
		{ tail -n 30 "$dist/native-$name.log" >&2; exit 1; }
	mkdir -p "$dist/$name"
	cp "$dist/native-$name/$5" "$dist/$name/$5"
	cp "$dist/native-$name/$5" "$src/customop/bundled/librope_ops_$name.${5##*.}"
done
for name in $wanted; do
	set -- $(platforms | grep "^$name ")
	echo "$name: the command"
	export ZIG_TARGET="$2"
	program=rope-rewrite
	[ "$3" = Windows ] && program=rope-rewrite.exe
	tags=bundled
	[ "$6" = - ] || tags=$tags,$6
	more=
	strip=-extldflags=-s # what zig links in has tables for debuggers, with paths of this machine
	[ "$3" = Darwin ] && more="-F$here/macos -L$here/macos" strip=
	(cd "$src" && CC="$here/cc.sh" CXX="$here/cxx.sh" CGO_ENABLED=1 GOOS=${1%_*} GOARCH=${1#*_} CGO_CFLAGS="-O2 -ffile-prefix-map=$src=." CGO_LDFLAGS="$more" GOFLAGS= \
		go build -trimpath -buildvcs=false -tags "$tags" -ldflags "-s -w -buildid= $strip -X github.com/rope-rewrite/rope-rewrite/internal/version.revision=$commit" \
		-o "$dist/$name/$program" ./cmd/rope-rewrite)
done
rm -f -- "$src/-.o" # zig's compiler leaves it where cgo asks it about itself
echo "manuals, licenses, components, archives"
rm -rf "$dist/manuals"
(cd "$src" && GOFLAGS= go run -buildvcs=false ./cmd/rope-rewrite manuals "$dist/manuals")
sh "$here/licenses.sh" "$src" "$dist/licenses"
sh "$here/sbom.sh" "$src" "$dist/rope-rewrite.cdx.json" "$version"
python3 "$here/pack.py" "$version" "$src" "$dist" "$out" $wanted
(cd "$out" && find -- * -type f | LC_ALL=C sort | xargs sha256sum -- >"$dist/SHA256SUMS" && mv "$dist/SHA256SUMS" .)
ls -l "$out"
echo "$(wc -l <"$out/SHA256SUMS") files in build/dist/out"
