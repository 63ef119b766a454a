#!/bin/sh
# browser-cases.sh runs the cases of run.sh in headless Chromium with WebAssembly, as `make browser-cases` builds them. Exit
# status 1 if anything failed. PROVIDERS=webgpu runs them with WebGPU, in software: slow, and with differences that the
# unpatched models have there too.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../pins.sh"
work=$BUILD/hosts
cases=$work/cases
page=$BUILD/browser/page
. "$here/venv.sh"
export PYTHONDONTWRITEBYTECODE=1
mkdir -p "$work"
newest=${PIN_HOSTS_ONNXRUNTIMES##* }
venv "onnxruntime-$newest" "onnxruntime==$newest" "numpy==$PIN_HOSTS_NUMPY"
"$python" "$here/prepare.py" "$BUILD/rope-rewrite" "$ROPE_OPS_LIBRARY" "$here/../../testdata" "$cases"
# A page with the example's packages, without its program.
cp "$here/calls.mjs" "$page/"
sed '/<script type="module"/d' "$page/index.html" >"$page/calls.html"
failed=0
for provider in ${PROVIDERS:-wasm}; do
	node "$here/browser.mjs" "$(command -v "${CHROMIUM:-chromium}")" "$page" "$cases" "$provider"
	for target in "" onnx contrib; do
		"$python" "$here/compare.py" "$cases" "browser-$provider-${target:-ops}" "Chromium $provider ${target:-fallback}" $target || failed=1
	done
done
exit $failed
