#!/bin/sh
# release-check.sh [PLATFORM...] does what takes long before a release, as `make release-check` asks for it: each step with its time
# and result, to the screen and to docs/results/release.md. It goes on after a step that failed, and exits 1 at the end.
#
# ON names the machine for the first line (docs/results.md has the names).
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
: "${BUILD:=$root/build}"
export BUILD
dist=$BUILD/dist
mkdir -p "$dist"
log=$dist/release.log
table=$dist/release.md
export table
. "$here/steps.sh"
platforms=${*:-linux_amd64 linux_arm64 darwin_amd64 darwin_arm64 windows_amd64}

cat >"$table" <<END
# Before a release

What \`make release-check\` printed. [How to read this](../results.md#how-to-read-these-pages). A step with the result "none" was not
tried, and says why.

Commit $(git -C "$root" rev-parse --short HEAD) · ${ON:-$(uname -m)} · \`make release-check${*:+ PLATFORMS=\"$*\"}\`

| step | result | time | last line |
|---|---|---|---|
END
begun=$(date +%s)
step "the release builds ($platforms)" sh "$here/dist.sh" $platforms
step "it builds elsewhere without caches, to the same bytes" sh "$here/twice.sh" $platforms
step "formats, and what the files need of a system" sh -c "cd '$root' && go run ./cmd/dev/distcheck '$dist' $platforms"
step "components and licenses of all that is inside" python3 "$here/contents.py" "$dist"
sh "$here/run.sh" || failed=1
printf '\nIn all: %s minutes, %s.\n' "$((($(date +%s) - begun) / 60))" "$([ $failed = 0 ] && echo 'no step failed' || echo 'a step failed')" | tee -a "$table"
cp "$table" "$root/docs/results/release.md"
exit $failed
