#!/bin/sh
# sbom.sh SOURCES FILE VERSION writes the list of components (CycloneDX): Go's modules by cyclonedx-gomod, and what a
# release holds besides: Go's own library, Highway, and the libraries of C and C++ that zig links in.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../pins.sh"
cd "$1"
GOWORK=off CGO_ENABLED=1 go run "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$PIN_CYCLONEDX" mod -json -licenses -noserial -test=false \
	-output "$2.part" . >/dev/null
llvm=$(sed -n 's/^# *define _LIBCPP_VERSION \(..\)\(..\)\(..\)$/\1.\2.\3/p' "$(dirname "$ZIG")/lib/libcxx/include/__config")
python3 "$here/sbom.py" "$2.part" "$2" "$3" go="$(go env GOVERSION | sed 's/^go//')" highway="$PIN_HIGHWAY_VERSION" zig="$PIN_ZIG" \
	llvm="$llvm"
rm "$2.part"
