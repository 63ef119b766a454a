#!/bin/sh
# Puts the pinned Highway sources into build/highway. They come as Debian's
# source package from the mirrors that this machine already uses: its own
# sources are copied, turned to deb-src of the pinned suite, into a folder of
# ours with lists and caches of its own. Needs no root and changes nothing in /.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/pins.sh"
build=${BUILD:-$(dirname "$here")/build}
target=$build/highway
downloads=$build/downloads
tarball=highway_$PIN_HIGHWAY_VERSION.orig.tar.gz

[ "$(cat "$target/.fetched" 2>/dev/null)" = "$PIN_HIGHWAY_VERSION" ] && exit 0

own_way="unpack Highway $PIN_HIGHWAY_VERSION yourself and run make with HWY_DIR=/path/to/highway"

checked() { [ -f "$1" ] && case $(sha256sum "$1") in "$PIN_HIGHWAY_SHA256 "*) ;; *) return 1 ;; esac; }

# Stanzas and lines of the machine's own sources that name its release's main
# component, for the pinned suite's sources.
sources() { # directory to write into
	suites="$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release) stable testing unstable sid"
	for file in /etc/apt/sources.list.d/*.sources; do
		[ -f "$file" ] || continue
		sed '/^#/d' "$file" | awk -v RS= -v ORS='\n\n' -v suites="$suites" -v pin="$PIN_HIGHWAY_SUITE" '
			{
				n = split(suites, own, " "); names = 0; main = 0
				for (l = split($0, line, "\n"); l > 0; l--) {
					count = split(line[l], word, /[ \t]+/)
					for (w = 2; w <= count; w++) {
						if (tolower(word[1]) == "suites:") for (s = 1; s <= n; s++) if (word[w] == own[s]) names = 1
						if (tolower(word[1]) == "components:" && word[w] == "main") main = 1
					}
				}
				if (!names || !main) next
				sub(/Types:[^\n]*/, "Types: deb-src"); sub(/Suites:[^\n]*/, "Suites: " pin)
				sub(/Components:[^\n]*/, "Components: main")
				print
			}' >"$1/$(basename "$file")"
	done
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[ -f "$file" ] || continue
		sed 's/#.*//' "$file" | awk -v suites="$suites" -v pin="$PIN_HIGHWAY_SUITE" '
			$1 == "deb" {
				options = ""; at = 2
				if ($2 ~ /^\[/) do { options = options " " $at } while ($(at++) !~ /\]$/ && at <= NF)
				n = split(suites, own, " "); names = 0; main = 0
				for (s = 1; s <= n; s++) if ($(at + 1) == own[s]) names = 1
				for (c = at + 2; c <= NF; c++) if ($c == "main") main = 1
				if (names && main) print "deb-src" options, $at, pin, "main"
			}' >"$1/$(basename "$file")"
	done
	find "$1" -type f -size 0 -delete
}

fetch() {
	sh "$here/need.sh" apt-get
	if ! grep -q '^ID=debian' /etc/os-release 2>/dev/null; then
		echo "rope-rewrite: Highway is fetched from Debian's archive and this is not Debian; $own_way." >&2
		exit 1
	fi
	mkdir -p "$downloads"
	part=$(mktemp -d "$downloads/part.XXXXXX")
	trap 'rm -rf "$part"' EXIT
	mkdir -p "$part/lists/partial" "$part/cache/archives/partial" "$part/sources" "$part/source"
	sources "$part/sources"
	if [ -z "$(ls "$part/sources")" ]; then
		echo "rope-rewrite: no entry for Debian's main archive in /etc/apt/sources.list or sources.list.d; $own_way." >&2
		exit 1
	fi
	echo "Fetching highway $PIN_HIGHWAY_VERSION ..."
	apt() {
		apt-get -qq -o Dir::State::lists="$part/lists" -o Dir::Cache="$part/cache" \
			-o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$part/sources" \
			-o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null \
			-o Acquire::Languages=none -o APT::Sandbox::User= "$@"
	}
	if ! { apt update && (cd "$part/source" && apt source --download-only "$PIN_HIGHWAY_PACKAGE"); } >"$part/log" 2>&1; then
		cat "$part/log" >&2
		echo "rope-rewrite: apt-get could not fetch the source package $PIN_HIGHWAY_PACKAGE; check the network, or $own_way." >&2
		exit 1
	fi
	if ! checked "$part/source/$tarball"; then
		echo "rope-rewrite: $tarball does not have sha256 $PIN_HIGHWAY_SHA256; $own_way." >&2
		exit 1
	fi
	mv "$part/source/$tarball" "$downloads/$tarball"
}

checked "$downloads/$tarball" || fetch

unpacked=$(mktemp -d "$build/highway.XXXXXX")
trap 'rm -rf "$unpacked" ${part:+"$part"}' EXIT
tar -xzf "$downloads/$tarball" -C "$unpacked" --strip-components=1 --no-same-owner
echo "$PIN_HIGHWAY_VERSION" >"$unpacked/.fetched"
chmod 755 "$unpacked"
rm -rf "$target"
mv "$unpacked" "$target"
