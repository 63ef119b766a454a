#!/bin/sh
# Measures what caches of fewer bits cost SmolLM2-135M-Instruct with yarn:factor=4, by the log-loss of the
# same windows of this project's own pages and by pass keys, into build/caches. A run that was interrupted
# goes on.
set -eu
build=${BUILD:-build}
model=$build/smollm2/dynamo18
rewrite=$build/rope-rewrite
out=$build/caches
mkdir -p "$out"
for type in float32 int8 float16; do
	kv=
	[ "$type" = float32 ] || kv="--kv growing:type=$type"
	# shellcheck disable=SC2086 # two words, or none
	[ -f "$model/$type.onnx" ] || "$rewrite" "$model/model.onnx" --scaling yarn:factor=4 $kv -o "$model/$type.onnx" >/dev/null
done
[ -f "$out/text.md" ] || cat docs/*.md >"$out/text.md"

measure() { # folder, flags of eval...
	folder=$out/$1
	shift
	resume=
	[ ! -f "$folder/samples.jsonl" ] || resume=--resume
	# shellcheck disable=SC2086 # several words, and one or none
	"$rewrite" eval $models "$@" -o "$folder" $resume
}

models="$model/float32.onnx $model/int8.onnx $model/float16.onnx"

measure text-2k --task perplexity --text "$out/text.md" --lengths 2k --windows 12
measure text-8k --task perplexity --text "$out/text.md" --lengths 8k --windows 4
measure text-12k --task perplexity --text "$out/text.md" --lengths 12k --windows 3
models="$model/float32.onnx $model/int8.onnx"
measure passkey --task passkey --lengths 2k,8k,12k --depths 90%,95% --samples 20
