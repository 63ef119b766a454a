#!/bin/sh
# run.sh runs what `make dist` built, as `make dist-check` asks for it: the command from its archive without a compiler or
# a library in reach, the wheel by pip and by uv, and for arm64 the kernels' tests and one patched model under qemu.
#
# For arm64 this machine must run programs of that kind (Debian: qemu-user-binfmt, from version 10 on: older ones end ONNX Runtime). QEMU_LD_PREFIX
# names the libraries of such a system; without it debootstrap unpacks them.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/../pins.sh"
: "${BUILD:=$root/build}"
dist=$BUILD/dist
work=$dist/run
model=$root/testdata/models/llama__optimum/model.onnx
log=$work/log
. "$here/steps.sh"
unset ROPE_OPS_LIBRARY ONNXRUNTIME_SHARED_LIBRARY_PATH
export ORT_DISABLE_TELEMETRY=1

rm -rf "$work"
mkdir -p "$work/linux" "$work/home"
set -- "$dist"/out/rope-rewrite_*_linux_amd64.tar.gz
step "checksums" sh -c "cd '$dist/out' && sha256sum --quiet -c SHA256SUMS && echo all right"
tar -xzf "$1" -C "$work/linux" --strip-components=1
rm "$work/linux/librope_ops.so" # the command carries its own
python3 -m venv "$work/python"
"$work/python/bin/python" -m pip --disable-pip-version-check install --quiet --only-binary=:all: "onnxruntime==${PIN_HOSTS_ONNXRUNTIMES##* }" "numpy==$PIN_HOSTS_NUMPY"
alone() { env -i HOME="$work/home" PATH="$work/python/bin:/nowhere" ORT_DISABLE_TELEMETRY=1 "$@"; }
step "the command finds pip's ONNX Runtime and its library" alone "$work/linux/rope-rewrite" doctor
step "it rewrites" alone "$work/linux/rope-rewrite" "$model" -o "$work/same.onnx"
step "the model is the same" alone "$work/linux/rope-rewrite" validate "$model" "$work/same.onnx"
step "it installs the library" alone "$work/linux/rope-rewrite" ops install "$work/installed"
step "which is the one of the archive" cmp "$work/installed/librope_ops.so" "$dist/linux_amd64/librope_ops.so"

python3 -m venv "$work/old"
step "pip installs an ONNX Runtime that is too old" "$work/old/bin/python" -m pip --disable-pip-version-check install --quiet --no-deps --only-binary=:all: "onnxruntime==$PIN_OLD_ONNXRUNTIME"
step "the command names it, with what upgrades it" sh -c "env -i HOME='$work/home' PATH='$work/old/bin:/nowhere' '$work/linux/rope-rewrite' version --json | grep -o 'onnxruntime $PIN_OLD_ONNXRUNTIME is older than .*run pip install --upgrade onnxruntime'"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	public=$(mktemp -d)
	chmod 755 "$public"
	cp "$work/linux/rope-rewrite" "$BUILD/onnxruntime/libonnxruntime.so" "$public/"
	step "as a user without rights, and without HOME" setpriv --reuid 65534 --regid 65534 --clear-groups env -i PATH=/nowhere ORT_DISABLE_TELEMETRY=1 "$public/rope-rewrite" doctor
	step "the same with a HOME that is not there" setpriv --reuid 65534 --regid 65534 --clear-groups env -i HOME=/nonexistent PATH=/nowhere ORT_DISABLE_TELEMETRY=1 "$public/rope-rewrite" doctor
	step "with HOME read-only and /tmp mounted noexec" unshare --mount sh -ec "mount -t tmpfs -o ro none /mnt; mount --bind '$public' /opt; mount -t tmpfs -o noexec,mode=1777 none /tmp; exec env -i HOME=/mnt PATH=/nowhere ORT_DISABLE_TELEMETRY=1 /opt/rope-rewrite doctor"
	rm -r "$public"
else
	none "as a user without rights" "needs root and setpriv"
fi

wheel=$(echo "$dist"/out/rope_rewrite-*manylinux*_x86_64.whl)
step "pip installs the wheel" "$work/python/bin/python" -m pip --disable-pip-version-check install --quiet "$wheel"
step "its tests" "$work/python/bin/python" -m unittest "$root/python/test_rope_rewrite.py"
step "its command" "$work/python/bin/rope-rewrite" version
step "types are told" "$work/python/bin/python" -c "import rope_rewrite, pathlib; assert (pathlib.Path(rope_rewrite.__file__).parent / 'py.typed').is_file()"
python3 -m venv "$work/uv-itself"
"$work/uv-itself/bin/python" -m pip --disable-pip-version-check install --quiet "uv==$PIN_UV"
step "uv makes an environment" "$work/uv-itself/bin/uv" venv --quiet --python python3 "$work/uv"
step "uv installs the wheel and ONNX Runtime" "$work/uv-itself/bin/uv" pip install --quiet --python "$work/uv/bin/python" "$wheel" "onnxruntime==${PIN_HOSTS_ONNXRUNTIMES##* }" "numpy==$PIN_HOSTS_NUMPY"
step "its tests there" "$work/uv/bin/python" -m unittest "$root/python/test_rope_rewrite.py"

if [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null; then
	step "a minimal Debian 11 (glibc 2.31)" sh "$here/debian.sh" bullseye "$dist/roots/bullseye"
	old=$dist/roots/bullseye/root
	rm -rf "$old/release" && mkdir "$old/release"
	cp "$work/linux/rope-rewrite" "$model" "$BUILD/onnxruntime/libonnxruntime.so" "$old/release/"
	in_old() { sh "$here/inside.sh" "$dist/roots/bullseye" env -i HOME=/root PATH=/usr/bin:/bin "$@"; }
	step "Debian 11: the command finds ONNX Runtime beside itself" in_old /root/release/rope-rewrite doctor
	step "Debian 11: it rewrites" in_old /root/release/rope-rewrite /root/release/model.onnx -o /root/release/same.onnx
	step "Debian 11: the model is the same" in_old /root/release/rope-rewrite validate /root/release/model.onnx /root/release/same.onnx
else
	none "Debian 11" "needs root and debootstrap"
fi
if [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null && command -v buildah >/dev/null; then
	step "the Containerfile's images build and run" sh "$here/container.sh" "$dist/roots"
else
	none "the Containerfile" "needs root, debootstrap and buildah"
fi

mkdir "$work/service"
tar -xzf "$dist"/out/rope-rewrite-bundled_*.tar.gz -C "$work/service"
cat >"$work/service/main.go" <<'EOF'
package main

import (
	"fmt"
	"log"
	"os"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/customop"
	_ "github.com/rope-rewrite/rope-rewrite/customop/bundled"
)

func main() {
	if err := customop.InitRuntime(""); err != nil {
		log.Fatal(err)
	}
	library, err := customop.FindLibrary(customop.Options{})
	if err != nil {
		log.Fatal(err)
	}
	options, err := ort.NewSessionOptions()
	if err != nil {
		log.Fatal(err)
	}
	if err := customop.Register(options, customop.Options{}); err != nil {
		log.Fatal(err)
	}
	session, err := ort.NewDynamicAdvancedSession(os.Args[1], []string{"input_ids"}, []string{"logits"}, options)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Destroy()
	fmt.Println("loaded with", library)
}
EOF
export GOWORK=off # the service is in the repository's folder, but none of its modules
step "a Go service with the library inside builds" sh -c "cd '$work/service' && go mod init service && go mod edit -require github.com/rope-rewrite/rope-rewrite@v0.0.0 -replace github.com/rope-rewrite/rope-rewrite=./rope-rewrite && go mod tidy && go build -tags bundled -o service ."
step "and runs from one file" alone "$work/service/service" "$work/same.onnx"

if [ -z "${QEMU_LD_PREFIX:-}" ] && [ -x "$dist/linux_arm64/rope-rewrite" ] && [ "$(uname -m)" != aarch64 ] && [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null; then
	step "libraries of Debian's arm64" sh "$here/debian.sh" trixie "$dist/roots/arm64" arm64
	export QEMU_LD_PREFIX="$dist/roots/arm64"
fi
if "$dist/linux_arm64/rope-rewrite" version >/dev/null 2>&1; then
	python3 -m pip --disable-pip-version-check download --quiet --no-deps --only-binary=:all: --platform manylinux_2_28_aarch64 --python-version 3.13 \
		-d "$work/arm64" "onnxruntime==${PIN_HOSTS_ONNXRUNTIMES##* }"
	python3 -m zipfile -e "$work"/arm64/*.whl "$work/arm64"
	export ONNXRUNTIME_SHARED_LIBRARY_PATH="$work/arm64/onnxruntime/capi/libonnxruntime.so.${PIN_HOSTS_ONNXRUNTIMES##* }" HOME="$work/home"
	step "arm64: the command runs, and loads its library" "$dist/linux_arm64/rope-rewrite" version
	if "$dist/linux_arm64/rope-rewrite" doctor 2>&1 | grep -q SIGSEGV; then
		none "arm64: with ONNX Runtime" "this qemu ends it; version 10 and newer do not (Debian 13)"
	else
		step "arm64: with ONNX Runtime" "$dist/linux_arm64/rope-rewrite" doctor
		step "arm64: it reads a model" "$dist/linux_arm64/rope-rewrite" inspect "$model"
		step "arm64: it rewrites" "$dist/linux_arm64/rope-rewrite" "$model" -o "$work/arm64.onnx"
		step "arm64: the model is the same" "$dist/linux_arm64/rope-rewrite" validate "$model" "$work/arm64.onnx"
	fi
	if [ -d "$dist/native-linux_arm64" ]; then
		ZIG=$(echo "$dist"/zig/lib/python3*/site-packages/ziglang/zig)
		export ZIG ZIG_TARGET=aarch64-linux-gnu.2.28 ZIG_GLOBAL_CACHE_DIR="$dist/zig-cache" ZIG_LOCAL_CACHE_DIR="$dist/zig-cache"
		step "arm64: the kernels' tests build" sh -c "cmake -S '$dist/src/native' -B '$dist/native-linux_arm64' -DROPE_BUILD_TESTS=ON && cmake --build '$dist/native-linux_arm64' --target kernel_test --parallel ${JOBS:-2}"
		step "arm64: the kernels' tests" "$dist/native-linux_arm64/test/kernel_test" 40 1000000
	fi
else
	none "arm64" "it was not built, or this machine runs no programs for arm64 (qemu-user-static; the kernel's binfmt_misc)"
fi
exit $failed
