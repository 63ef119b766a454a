#!/bin/sh
# latest.sh exports the ten most used architectures by the newest release of every exporter, rewrites them and writes
# docs/results/latest.md, with the versions that pip gave. EXPORTERS and OPTIMUM are Pythons that have the packages
# already (the second Optimum's, whose exporter needs an older transformers); without them both are made in build/latest.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$BUILD/latest
architectures=llama,qwen2,qwen3,mistral,gemma2,gemma3,phi3,gpt_oss_4096,deepseek_v3,modernbert
export PYTHONDONTWRITEBYTECODE=1

environment() { # name, package...: the newest of these, also where older ones are there
	[ -x "$work/$1/bin/python" ] || python3 -m venv "$work/$1"
	python=$work/$1/bin/python
	shift
	"$python" -m pip --disable-pip-version-check install --quiet --upgrade "$@"
}

mkdir -p "$work"
[ -n "${EXPORTERS:-}" ] || { environment exporters torch transformers onnx onnxscript onnxruntime onnxruntime-genai && EXPORTERS=$python; }
[ -n "${OPTIMUM:-}" ] || { environment optimum optimum-onnx onnxscript onnxruntime && OPTIMUM=$python; }
rm -rf "$work/exports"
"$EXPORTERS" "$here/export.py" "$work/exports" --architectures "$architectures" \
	--routes dynamo18,dynamo18-nocache,dynamo23,ts17,ts17-cache,hf,hf-opset23,hf-fused,genai-fp32
"$OPTIMUM" "$here/export.py" "$work/exports" --architectures "$architectures" --routes optimum
cd "$here/../.."
go run ./cmd/dev/coverage -jobs "$JOBS" -title "The newest exporters" -o docs/results/latest.md "$work/exports"
