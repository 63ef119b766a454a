#!/bin/sh
# Puts ONNX Runtime's Python package and what its 4-bit quantizer imports into
# build/quantizer, for PYTHONPATH of this machine's python3. No virtual
# environment and no pip install, as in fetch-wheel.sh.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/pins.sh"
build=${BUILD:-$(dirname "$here")/build}
target=$build/quantizer

sh "$here/need.sh" python3 pip
python=$(python3 -c 'import platform, sys; print("%d.%d %s" % (*sys.version_info[:2], platform.machine()))')
case $python in
"3.11 "* | "3.12 "* | "3.13 "*) ;;
*)
	echo "rope-rewrite: python3 is Python ${python% *}, but the wheels of ONNX Runtime's quantizer are pinned for 3.11 to 3.13 (scripts/pins.sh); put one of those first in PATH, or leave the int4 and fp16 routes out." >&2
	exit 1
	;;
esac
wanted=$(printf '%s\n%s\n' "$python" "$PIN_QUANTIZER" | cksum)
[ "$(cat "$target/.fetched" 2>/dev/null)" = "$wanted" ] && exit 0

mkdir -p "$build"
part=$(mktemp -d "$build/quantizer.XXXXXX")
trap 'rm -rf "$part"' EXIT
mkdir "$part/wheels" "$part/site"
printf '%s\n' "$PIN_QUANTIZER" >"$part/requirements.txt"
echo "Fetching ONNX Runtime's quantizer for Python ${python% *} (about 58 MB) ..."
if ! python3 -m pip --disable-pip-version-check download --quiet --no-deps --only-binary=:all: --require-hashes \
	--dest "$part/wheels" --requirement "$part/requirements.txt"; then
	echo "rope-rewrite: pip could not fetch the packages of ONNX Runtime's quantizer; check the network, or leave the int4 and fp16 routes out." >&2
	exit 1
fi
for wheel in "$part/wheels"/*.whl; do python3 -m zipfile -e "$wheel" "$part/site"; done
echo "$wanted" >"$part/site/.fetched"
chmod 755 "$part/site"
rm -rf "$target"
mv "$part/site" "$target"
