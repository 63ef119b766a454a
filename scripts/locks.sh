#!/bin/sh
# locks.sh writes requirements.txt, with the versions and hashes of all packages, from each requirements.in.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/pins.sh"
work=$BUILD/uv
[ -x "$work/bin/uv" ] || { python3 -m venv "$work" && "$work/bin/pip" --disable-pip-version-check install --quiet "uv==$PIN_UV"; }
cd "$here/.."
for list in $(git ls-files --cached --others --exclude-standard '*requirements*.in'); do
	options=
	case $list in *-genai.in) options=--no-deps ;; esac
	"$work/bin/uv" pip compile --quiet $options --generate-hashes --universal --python-version 3.11 --no-annotate --no-header "$list" -o "${list%.in}.txt"
	printf '# Written by `make locks` from %s.\n%s\n' "$(basename "$list")" "$(cat "${list%.in}.txt")" >"${list%.in}.txt"
done
