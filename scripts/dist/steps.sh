# steps.sh, for scripts that go through steps (. steps.sh): "step WHAT COMMAND..." runs a command, prints how it ended,
# the time and the last line that it said, and goes on. A command that exits 77 could not be tried here, and its last
# line says why. Give $log, where the output of a step goes; $table, if set, gets a row in Markdown for each step.
# $failed is 1 once a step has failed.
failed=0

step() {
	what=$1
	shift
	begun=$(date +%s)
	"$@" >"$log" 2>&1
	case $? in
	0) result=pass ;;
	77) result=none ;;
	*) result=FAIL failed=1 ;;
	esac
	said "$result" "$what" "$(($(date +%s) - begun)) s" "$(grep -v '^ *$' "$log" | tail -n 1 | sed "s,${root:-/nowhere}/,,g; s/^ *| *//; s/ *|$//")"
	[ $result != FAIL ] || tail -n 20 "$log" | sed 's/^/      /'
}

none() { said none "$1" "" "$2"; } # what, and why it was not tried

said() { # result, what, time, last line
	printf '%-4s  %6s  %-58s %s\n' "$1" "$3" "$2" "$4"
	[ -z "${table:-}" ] || printf '| %s | %s | %s | %s |\n' "$2" "$1" "$3" "$(printf %s "$4" | sed 's/|/\\|/g')" >>"$table"
}
