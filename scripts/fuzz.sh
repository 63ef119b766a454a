#!/bin/sh
# fuzz.sh TIMES SEED TIME runs every fuzz target: on TIMES as many drawn inputs as its test
# draws, with another SEED, and then by go test -fuzz for a TIME such as 10s.
set -u
cd "$(dirname "$0")/.." || exit 1
GO=${GO:-go}
times=$1 seed=$2 time=$3
failed=0
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

for package in $(git grep -l --untracked '^func Fuzz' -- '*_test.go' | xargs -n1 dirname | sort -u); do
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\)(.*/\1/p' "$package"/*_test.go); do
		ROPE_FUZZ_TIMES=$times ROPE_FUZZ_SEED=$seed $GO test -v -timeout 24h -run "^$target\$" "./$package" >"$log" 2>&1
		status=$?
		echo "$package $target: $(grep -o '[0-9]* inputs drawn in [0-9.]* s, [0-9]* of them read' "$log")" | tee -a "$log.all"
		if [ $status = 0 ] && [ "$time" != 0s ]; then
			$GO test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "./$package" >>"$log" 2>&1
			status=$?
		fi
		if [ $status != 0 ]; then
			grep -v '/seed#' "$log" | tail -n 40
			failed=1
		fi
	done
done
awk '{ for (i = 2; i <= NF; i++) if ($i == "inputs") sum += $(i - 1) } END { printf "%d inputs were drawn.\n", sum }' "$log.all"
rm -f "$log.all"
exit $failed
