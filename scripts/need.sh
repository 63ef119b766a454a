#!/bin/sh
# need.sh TOOL... says in one sentence which tool is missing and which Debian
# package brings it. Exit status 1 if any is missing.
set -u
missing=0

lack() { # tool, advice
	echo "rope-rewrite: $1 is missing; $2." >&2
	missing=1
}

for tool in "$@"; do
	case $tool in
	go)
		if ! command -v go >/dev/null 2>&1; then
			lack go "install Go 1.21 or newer (Debian 13: apt-get install golang-go; older Debian: golang-go from backports, or Go's own archive)"
		else
			version=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null)
			minor=$(printf '%s' "$version" | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
			if [ -n "$minor" ] && [ "$minor" -lt 21 ]; then
				lack "a recent Go" "found $version, but 1.21 or newer is needed, which fetches the toolchain that go.mod names (golang-go from Debian backports, or Go's own archive)"
			elif [ "$(go env CGO_ENABLED 2>/dev/null)" = 0 ]; then
				lack cgo "the ONNX Runtime binding needs it: install a C compiler (apt-get install gcc) and unset CGO_ENABLED"
			fi
		fi
		;;
	pip)
		command -v python3 >/dev/null 2>&1 || continue # python3 is asked for by its own name
		python3 -m pip --version >/dev/null 2>&1 || lack pip "apt-get install python3-pip"
		;;
	node)
		command -v node >/dev/null 2>&1 || lack node "apt-get install nodejs (version 20 or newer)"
		;;
	chromium)
		command -v chromium >/dev/null 2>&1 || lack chromium "apt-get install chromium, or set CHROMIUM to a browser of that kind"
		;;
	npm | g++ | cmake | make | git | patch | tar | gzip)
		command -v "$tool" >/dev/null 2>&1 || lack "$tool" "apt-get install $tool"
		;;
	python3)
		command -v python3 >/dev/null 2>&1 || lack python3 "apt-get install python3"
		;;
	apt-get)
		command -v apt-get >/dev/null 2>&1 || lack apt-get "it fetches Highway on Debian; elsewhere unpack Highway 1.2 yourself and run make with HWY_DIR=/path/to/highway"
		;;
	*)
		command -v "$tool" >/dev/null 2>&1 || lack "$tool" "install it"
		;;
	esac
done
exit $missing
