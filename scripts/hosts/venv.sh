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

# The packages of a lock in a folder.
node_modules() { # folder of the lock, folder
	cmp -s "$1/package-lock.json" "$2/.installed" && return
	mkdir -p "$2" &&
		cp "$1"/package*.json "$2/" &&
		npm ci --prefix "$2" --ignore-scripts --no-fund --no-audit --loglevel=error &&
		cp "$1/package-lock.json" "$2/.installed"
}
