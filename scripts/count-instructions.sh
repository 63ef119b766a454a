#!/bin/sh
# count-instructions.sh PROGRAM FILE [--write] counts the instructions of the
# kernel's works (PROGRAM is rope_count) under valgrind and compares them with
# those that FILE holds, which other load on the machine does not change. A work
# that takes over 3 % more than FILE says is an error. --write writes FILE anew.
# valgrind knows no AVX-512: what is counted is the AVX2 target.
set -eu
program=$1
file=$2
write=${3:-}

command -v valgrind >/dev/null 2>&1 || {
	echo "skipped: instructions are counted by valgrind, which is not installed"
	exit 0
}
compiler="$(c++ -dumpversion 2>/dev/null || echo unknown) $(uname -m)"
written=$(sed -n 's/^# compiler //p' "$file" 2>/dev/null || true)
if [ "$write" != --write ] && [ "$written" != "$compiler" ]; then
	echo "skipped: $file holds what C++ compiler '$written' made, and this one is '$compiler'; --write makes new ones"
	exit 0
fi
counts=$(mktemp)
trap 'rm -f "$counts" "$counts.log"' EXIT
echo "# compiler $compiler" >"$counts"
failed=0
for work in $("$program"); do
	valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='rope::RunAttention*' \
		"$program" "$work" >"$counts.log" 2>&1 || { cat "$counts.log" >&2; exit 1; }
	count=$(sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$counts.log")
	echo "$work $count" >>"$counts"
	before=$(sed -n "s/^$work //p" "$file" 2>/dev/null || true)
	echo "$work $count ${before:-0}" | awk '{
		change = $3 > 0 ? sprintf("%+.1f %%", 100 * ($2 / $3 - 1)) : "new"
		printf "%-24s %12d  %s\n", $1, $2, change
		exit $3 > 0 && $2 > 1.03 * $3 ? 1 : 0
	}' || failed=1
done
if [ "$write" = --write ]; then
	cp "$counts" "$file"
elif [ $failed = 1 ]; then
	echo "more instructions than $file says; make it fewer, or write the file anew with --write" >&2
	exit 1
fi
