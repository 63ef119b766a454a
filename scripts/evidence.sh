#!/bin/sh
# Measures on SmolLM2-135M-Instruct, which was trained on 8K tokens, what docs/evidence.md shows beyond single runs: how well
# methods predict 12K tokens of this project's own pages, and answers over packed documents. Results come into
# build/evidence as they are measured. A run that was interrupted goes on.
#
#   sh scripts/evidence.sh [text] [packed]
set -eu
build=${BUILD:-build}
model=$build/smollm2/dynamo18/model.onnx
out=$build/evidence
mkdir -p "$out"
[ -f "$out/text.md" ] || cat docs/*.md >"$out/text.md"

measure() { # folder, flags of eval...
	folder=$out/$1
	shift
	resume=
	[ ! -f "$folder/samples.jsonl" ] || resume=--resume
	# shellcheck disable=SC2086 # one word or none
	"$build/rope-rewrite" eval "$model" --method none "$@" -o "$folder" $resume
}

text() {
	set --
	for method in "scaling dynamic:factor=2" "scaling yarn:factor=2" "positions string" \
		"positions self-extend:window=1k,group=2" "positions rerope:window=4k" "positions dual-chunk:chunk_size=6k,local_size=1k" \
		"scaling linear:factor=2" "scaling ntk:alpha=2" \
		"scaling llama3:factor=2,low_freq_factor=1,high_freq_factor=4,original_max_position_embeddings=8192" \
		"scaling yarn:factor=1.5" "scaling yarn:factor=4" "positions string:shift=5k,window=128" "positions string:shift=5k,window=1k" \
		"positions string:shift=6k,window=1k" "scaling log-n" "scaling yarn:factor=2; scaling log-n"; do
		set -- "$@" --method "$method"
	done
	measure text --task perplexity --text "$out/text.md" --lengths 2k,8k,12k --windows 3 "$@"
}

packed() {
	measure packed --task qa_1 --lengths 1k --samples 100 --prompts \
		--method "mask intra-document" --method "mask anchor" --method "mask anchor:restart=true"
}

for part in ${*:-text packed}; do
	"$part"
done
