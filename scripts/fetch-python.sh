#!/bin/sh
# fetch-python.sh gguf|quantizer puts the Python packages that pins.sh lists
# under that name into build/NAME, for PYTHONPATH of this machine's python3. No
# virtual environment and no pip install, as in fetch-wheel.sh.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/pins.sh"
build=${BUILD:-$(dirname "$here")/build}
name=$1
target=$build/$name
case $name in
gguf) packages=$PIN_GGUF what="the reader of GGUF files" size=17 ;;
quantizer) packages=$PIN_QUANTIZER what="ONNX Runtime's quantizer" size=58 ;;
*) echo "rope-rewrite: no Python packages are pinned as $name (scripts/pins.sh)." >&2 && exit 1 ;;
esac

sh "$here/need.sh" python3 pip
python=$(python3 -c 'import platform, sys; print("%d.%d %s" % (*sys.version_info[:2], platform.machine()))')
case $python in
"3.11 "* | "3.12 "* | "3.13 "*) ;;
*)
	echo "rope-rewrite: python3 is Python ${python% *}, but the wheels of $what are pinned for 3.11 to 3.13 (scripts/pins.sh); put one of those first in PATH." >&2
	exit 1
	;;
esac
wanted=$(printf '%s\n%s\n' "$python" "$packages" | cksum)
[ "$(cat "$target/.fetched" 2>/dev/null)" = "$wanted" ] && exit 0

mkdir -p "$build"
part=$(mktemp -d "$target.XXXXXX")
trap 'rm -rf "$part"' EXIT
mkdir "$part/wheels" "$part/site"
printf '%s\n' "$packages" >"$part/requirements.txt"
echo "Fetching $what for Python ${python% *} (about $size MB) ..."
if ! python3 -m pip --disable-pip-version-check download --quiet --no-deps --only-binary=:all: --require-hashes \
	--dest "$part/wheels" --requirement "$part/requirements.txt"; then
	echo "rope-rewrite: pip could not fetch the packages of $what; check the network." >&2
	exit 1
fi
for wheel in "$part/wheels"/*.whl; do python3 -m zipfile -e "$wheel" "$part/site"; done
echo "$wanted" >"$part/site/.fetched"
chmod 755 "$part/site"
rm -rf "$target"
mv "$part/site" "$target"
