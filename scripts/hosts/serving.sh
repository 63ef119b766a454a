#!/bin/sh
# serving.sh reads what docs/scaling.md gives to Triton and KServe with the schemas of their clients, as `make serving` asks
# for it. No server is run. Exit status 1 if a schema refuses anything.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
. "$here/../pins.sh"
work=$BUILD/hosts
. "$here/venv.sh"
mkdir -p "$work"
export PYTHONDONTWRITEBYTECODE=1
venv serving "kserve==$PIN_HOSTS_KSERVE" "tritonclient[grpc]==$PIN_HOSTS_TRITONCLIENT" "onnx==$PIN_HOSTS_ONNX"
repository=$work/serving-models
rm -rf "$repository"
mkdir -p "$repository"
"$BUILD/rope-rewrite" "$root/testdata/models/llama__dynamo18/model.onnx" -o "$repository/model.onnx" --force >/dev/null
"$python" "$root/examples/triton/repository.py" "$repository/model.onnx" "$repository" --name chat --ops "$(readlink -f "$ROPE_OPS_LIBRARY")"
"$python" "$here/triton_config.py" "$repository/chat/config.pbtxt"
"$python" "$here/kserve_yaml.py" "$root/docs/scaling.md"
