#!/bin/sh
# bench-sizes.sh rewrites models of realistic sizes for every target and runs what it wrote, as
# `make bench-sizes` builds them: time and memory of the rewrite, bytes written, time and memory of a
# session with and without the op library, and of one call. TOKENS is how many the smaller model gets.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/pins.sh"
work=$BUILD/sizes
export PYTHONDONTWRITEBYTECODE=1
wanted="onnx==$PIN_HOSTS_ONNX onnxruntime==${PIN_HOSTS_ONNXRUNTIMES##* } numpy==$PIN_HOSTS_NUMPY"
if [ "$(cat "$work/venv/.wanted" 2>/dev/null)" != "$wanted" ]; then
	rm -rf "$work/venv"
	python3 -m venv "$work/venv"
	# shellcheck disable=SC2086 # one requirement a word
	"$work/venv/bin/python" -m pip --disable-pip-version-check install --quiet --only-binary=:all: $wanted
	echo "$wanted" >"$work/venv/.wanted"
fi
python=$work/venv/bin/python

"$python" "$here/big_models.py" "$work"
yarn="--context 16384 --scaling yarn:factor=2"
string="--context 16384 --positions string:shift=2730,window=128"
for model in llama-1b mistral-7b; do
	go run "$here/../cmd/dev/measure" rewrite --rounds "${ROUNDS:-3}" --command "$BUILD/rope-rewrite" \
		--with "ops-yarn $yarn" --with "ops-string $string" \
		--with "onnx-yarn --target onnx $yarn" --with "onnx-string --target onnx $string" \
		--with "contrib-yarn --target contrib $yarn" "$work/$model/model.onnx"
	[ $model = llama-1b ] && tokens=${TOKENS:-2048} || tokens=1
	set --
	for name in ops-yarn:lib ops-yarn ops-string:lib onnx-yarn onnx-string contrib-yarn; do
		set -- "$@" "$work/$model/${name%:lib}/model.onnx${name#"${name%:lib}"}"
	done
	echo
	"$python" "$here/bench_definition.py" --threads 2 "$ROPE_OPS_LIBRARY" "$tokens" "${ROUNDS:-3}" "$work/$model/model.onnx" "$@"
done
