#!/bin/sh
# run.sh runs patched models in many hosts, as `make hosts` builds them: without the op library, and with it
# where a host can load one. One line for each host, model and method: the largest difference from what
# the newest ONNX Runtime computes with the library, relative to the largest output, and without a method from the
# unpatched model too. pass, FAIL, n/a (the host cannot run the
# unpatched model either, or no model with functions), none (no such host).
# Exit status 1 if anything failed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../pins.sh"
work=$BUILD/hosts
cases=$work/cases
rewriter=$BUILD/rope-rewrite
testdata=$here/../../testdata
export PYTHONDONTWRITEBYTECODE=1 DO_NOT_TRACK=1
failed=0

. "$here/venv.sh"

runtime() { # version: the environment of that onnxruntime
	numpy=$PIN_HOSTS_NUMPY
	[ "$1" = 1.18.1 ] && numpy=$PIN_HOSTS_NUMPY_1_18_1
	venv "onnxruntime-$1" "onnxruntime==$1" "numpy==$numpy"
}

tool() { # name, version: an environment with the newest onnxruntime too
	venv "$1" "$1==$2" "onnx==$PIN_HOSTS_ONNX" "onnxruntime==${PIN_HOSTS_ONNXRUNTIMES##* }" "numpy==$PIN_HOSTS_NUMPY"
}

check() { "$@" || failed=1; }

# JavaScript hosts leave their outputs beside the cases.
javascript() { # package
	if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
		echo "needs node and npm" >"$work/$1.log"
		none "$1" "$work/$1.log"
	elif ! node_modules "$here/node" "$work/node" >"$work/$1.log" 2>&1; then
		none "$1" "$work/$1.log"
	elif (cd "$work/node" && node "$here/node.mjs" "$1" "$cases") >"$work/$1.log" 2>&1; then
		check "$python" "$here/compare.py" "$cases" "$1" "$1 $PIN_HOSTS_NPM"
	else
		cat "$work/$1.log"
		failed=1
	fi
}

# hugot's sessions in ONNX Runtime want a tokenizer in Rust, which its Go module brings as source.
tokenizer() {
	[ -f "$work/tokenizer/libtokenizers.a" ] && return
	command -v cargo >/dev/null || { echo "needs cargo for its tokenizer"; return 1; }
	source=$(cd "$here/hugot" && GOWORK=off go mod download && GOWORK=off go list -m -f '{{.Dir}}' github.com/daulet/tokenizers) || return
	rm -rf "$work/tokenizer"
	cp -r "$source" "$work/tokenizer" && chmod -R u+w "$work/tokenizer" || return
	sed -i "s|^tiktoken-rs = .*|tiktoken-rs = \"=$PIN_HOSTS_TIKTOKEN\"|" "$work/tokenizer/crates/tokenizers/Cargo.toml"
	(cd "$work/tokenizer" && cargo build --quiet --release --package tokenizers-ffi) || return
	mv "$work/tokenizer/target/release/libtokenizers_ffi.a" "$work/tokenizer/libtokenizers.a"
	rm -rf "$work/tokenizer/target"
}

hugot() { # ort or go
	program=$work/hugot-$1
	version=$(sed -n 's|.*knights-analytics/hugot \(v[0-9.]*\).*|\1|p' "$here/hugot/go.mod")
	if { [ "$1" = go ] || tokenizer; } >"$program.log" 2>&1 &&
		(cd "$here/hugot" && CGO_LDFLAGS=-L$work/tokenizer GOWORK=off go build -tags "$(echo "$1" | tr a-z A-Z)" -o "$program" .) >>"$program.log" 2>&1; then
		check "$python" "$here/hugot_pipeline.py" "$cases" "$(dirname "$ONNXRUNTIME_SHARED_LIBRARY_PATH")" "$program" "$1" "hugot $version ($1)"
	else
		none "hugot $version ($1)" "$program.log"
	fi
}

mkdir -p "$work"
runtime "${PIN_HOSTS_ONNXRUNTIMES##* }" || exit 1
newest=$python
"$newest" "$here/prepare.py" "$rewriter" "$ROPE_OPS_LIBRARY" "$testdata" "$cases" || exit 1

for version in $PIN_HOSTS_ONNXRUNTIMES; do
	runtime "$version" || continue
	check "$python" "$here/ort.py" "$cases"
	check "$python" "$here/ort.py" "$cases" "$ROPE_OPS_LIBRARY"
	check "$python" "$here/targets.py" "$cases" onnxruntime
done
mkdir -p "$work/genai-work"
venv onnxruntime-genai "onnxruntime-genai==$PIN_HOSTS_GENAI" "numpy==$PIN_HOSTS_NUMPY" &&
	check "$python" "$here/genai.py" "$rewriter" "$(readlink -f "$ROPE_OPS_LIBRARY")" "$testdata" "$work/genai-work"
venv openvino "openvino==$PIN_HOSTS_OPENVINO" "numpy==$PIN_HOSTS_NUMPY" && check "$python" "$here/targets.py" "$cases" openvino
tool onnx "$PIN_HOSTS_ONNX" && check "$python" "$here/onnx_reference.py" "$cases"
tool polygraphy "$PIN_HOSTS_POLYGRAPHY" && check "$python" "$here/polygraphy_cli.py" "$cases"
tool onnxslim "$PIN_HOSTS_ONNXSLIM" && check "$python" "$here/simplify.py" onnxslim "$cases" "$rewriter" "$ROPE_OPS_LIBRARY"
tool onnxsim "$PIN_HOSTS_ONNXSIM" && check "$python" "$here/simplify.py" onnxsim "$cases" "$rewriter" "$ROPE_OPS_LIBRARY"
python=$newest
javascript onnxruntime-node
javascript onnxruntime-web
hugot ort
hugot go
exit $failed
