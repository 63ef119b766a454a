#!/bin/sh
# vulnerabilities.sh PACKAGE... asks Go's database of vulnerabilities about all that the packages call, Go's own library included.
set -eu
. "$(dirname "$0")/pins.sh"
GOVULNDB=${GOVULNDB:-https://vuln.go.dev}
case $GOVULNDB in
http*) curl -fsS -o /dev/null --max-time 20 "$GOVULNDB/index/modules.json" 2>/dev/null || {
	echo "rope-rewrite: Go's database of vulnerabilities ($GOVULNDB) cannot be reached, so nothing was looked for; try again with the internet, or set GOVULNDB to a copy" >&2
	exit 1
} ;;
esac
status=0
for package; do
	echo "$package"
	(cd "$package" && go run "golang.org/x/vuln/cmd/govulncheck@$PIN_GOVULNCHECK" -db "$GOVULNDB" .) || status=1
done
exit $status
