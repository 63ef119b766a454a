#!/bin/sh
# browser.sh runs examples/browser in headless Chromium, as `make browser` builds and fetches what it needs, and compares
# its tokens with ONNX Runtime's. CHROMIUM names another browser of the same kind. Exit status 1 if anything failed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
work=$BUILD/browser
chromium=${CHROMIUM:-chromium}
sh "$root/scripts/need.sh" node npm "$chromium"
. "$here/venv.sh"

rm -rf "$work/models"
mkdir -p "$work/page" "$work/models/small" "$work/models/wrong"
cp "$root"/examples/browser/*.* "$work/page/"
node_modules "$root/examples/browser" "$work/page"

patch() { # from, to, flag...
	from=$1 to=$work/models/$2
	shift 2
	"$BUILD/rope-rewrite" "$from" -o "$to" --weights link "$@" >/dev/null
}
smollm2=$BUILD/smollm2/dynamo18
patch "$smollm2" ops --scaling yarn:factor=2
patch "$smollm2" onnx --scaling yarn:factor=2 --target onnx --logits last
small=$work/models/small
cp "$root"/testdata/models/llama__dynamo18/model.onnx "$root"/testdata/models/llama__dynamo18/config.json "$root"/testdata/lm/* "$small/"
# The page's tokenizer wants every part of a tokenizer.json to be there.
sed -i 's/^{/{"post_processor": null, /' "$small/tokenizer.json"
patch "$small" small-ops --scaling yarn:factor=4,original_max_position_embeddings=16
patch "$small" small-onnx --scaling yarn:factor=4,original_max_position_embeddings=16 --target onnx
cp "$small/model.onnx" "$work/models/wrong/"

(cd "$root" && go build -o "$work/generate" ./examples/generate)
"$chromium" --version 2>/dev/null
node "$work/page/check.mjs" "$(command -v "$chromium")" "$work/generate" "$work/models"
