# What run.sh and folders.sh share: virtual environments of Python hosts in $work.

none() { # host, file with the reason
	printf 'none  %-34s %s\n' "$1" "$(tail -n 1 "$2")"
}

# Python hosts: a virtual environment each, made anew when its requirements change.
venv() { # name, requirement...
	name=$1
	shift
	python=$work/$name/bin/python
	[ "$(cat "$work/$name/.wanted" 2>/dev/null)" = "$*" ] && return
	rm -rf "${work:?}/$name"
	if python3 -m venv "$work/$name" >"$work/$name.log" 2>&1 &&
		"$python" -m pip --disable-pip-version-check install --quiet --only-binary=:all: "$@" >>"$work/$name.log" 2>&1; then
		echo "$*" >"$work/$name/.wanted"
		return
	fi
	none "$name" "$work/$name.log"
	return 1
}
