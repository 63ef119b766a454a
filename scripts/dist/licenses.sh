#!/bin/sh
# licenses.sh SOURCES DIRECTORY collects the license texts of all that a release holds: the project, its Go modules, Go
# itself, Highway, and the libraries of C and C++ that zig links in.
set -eu
src=$1
to=$2
rm -rf "$to"
mkdir -p "$to"
cp "$src/LICENSE" "$to/rope-rewrite.txt"
cp "$(go env GOROOT)/LICENSE" "$to/go.txt"
cat "$HWY_DIR"/LICENSE* >"$to/highway.txt"
zig=$(dirname "$ZIG")
cat "$zig/LICENSE" >"$to/zig.txt"
for part in libcxx libcxxabi libunwind; do
	cp "$zig/lib/$part/LICENSE.TXT" "$to/$part.txt"
done
cp "$zig/lib/libc/mingw/COPYING" "$to/mingw-w64.txt"
cp "$zig/lib/libc/glibc/LICENSES" "$to/glibc.txt"
cd "$src"
for system in linux darwin windows; do
	GOOS=$system CGO_ENABLED=1 go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}' ./cmd/rope-rewrite
done | sort -u | while read -r path dir; do
	name=$(printf %s "$path" | tr / _)
	found=$(find "$dir" -maxdepth 1 -type f \( -iname 'license*' -o -iname 'copying*' -o -iname 'notice*' \) | sort)
	[ -n "$found" ] || { echo "rope-rewrite: $path has no license text" >&2; exit 1; }
	# Where a module's own text sends to others, these come too: FreeType's, and that of Go's fonts.
	for more in licenses/ftl.txt font/gofont/ttfs/README; do
		[ ! -f "$dir/$more" ] || found="$found $dir/$more"
	done
	cat $found >"$to/$name.txt"
done
