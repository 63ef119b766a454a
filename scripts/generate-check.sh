#!/bin/sh
# Runs go generate and fails if a tracked or new file changed by it.
set -eu
cd "$(dirname "$0")/.."

state() { git ls-files --cached --others --exclude-standard -z | sort -zu | xargs -0 sha256sum 2>/dev/null; }

before=$(mktemp)
after=$(mktemp)
trap 'rm -f "$before" "$after"' EXIT
state >"$before" || true
go generate ./...
state >"$after" || true
if ! cmp -s "$before" "$after"; then
	echo "rope-rewrite: these generated files were not current; commit what go generate has written:" >&2
	diff "$before" "$after" | sed -n 's/^[<>] [0-9a-f]*  //p' | sort -u >&2
	exit 1
fi
