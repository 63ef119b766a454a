# What scripts share: virtual environments of Python hosts in $work, and the packages of node.mjs.

none() { # host, file with the reason
	printf 'none  %-34s %s\n' "$1" "$(tail -n 1 "$2")"
}

# Python hosts: a virtual environment each, made anew when its requirements change.
venv() { # name, requirement... (-r FILE for those of a file)
	name=$1
	shift
	wanted="$* $(for file; do [ ! -f "$file" ] || sha256sum <"$file"; done)"
	python=$work/$name/bin/python
	[ "$(cat "$work/$name/.wanted" 2>/dev/null)" = "$wanted" ] && return
	rm -rf "${work:?}/$name"
	if python3 -m venv "$work/$name" >"$work/$name.log" 2>&1 &&
		"$python" -m pip --disable-pip-version-check install --quiet --only-binary=:all: "$@" >>"$work/$name.log" 2>&1; then
		echo "$wanted" >"$work/$name/.wanted"
		return
	fi
	none "$name" "$work/$name.log"
	return 1
}

# The packages of scripts/hosts/node in a folder, by its lock.
node_modules() { # folder
	lock=$(dirname "$0")/hosts/node
	[ -d "$lock" ] || lock=$(dirname "$0")/node
	cmp -s "$lock/package-lock.json" "$1/package-lock.json" && [ -d "$1/node_modules" ] && return
	mkdir -p "$1"
	cp "$lock"/package*.json "$1/"
	npm ci --prefix "$1" --ignore-scripts --no-fund --no-audit --loglevel=error
}
