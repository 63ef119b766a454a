#!/bin/sh
# serve.sh runs examples/serve with SmolLM2, as `make serve-clients` builds and fetches what it needs, and uses it through
# OpenAI's client for Python and through its page in headless Chromium. CHROMIUM names another browser of the same kind.
# Exit status 1 if anything failed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
example=$root/examples/serve
work=$BUILD/serve
chromium=${CHROMIUM:-chromium}
sh "$here/../need.sh" node npm "$chromium"
. "$here/venv.sh"

mkdir -p "$work/page"
export PYTHONDONTWRITEBYTECODE=1
venv client -r "$example/check/requirements.txt"
node_modules "$example/check" "$work/page"
cp "$example/check/page.mjs" "$work/page/"

"$BUILD/rope-rewrite" "$BUILD/smollm2/dynamo18" -o "$work/model" --force --kv fixed:capacity=4k --logits last --weights link >/dev/null
# SmolLM2's own template shows no tools.
printf %s "$(cat "$example/check/tools.jinja")" >"$work/chat_template.jinja"
mv "$work/chat_template.jinja" "$work/model/"
(cd "$example" && go build -o "$work/server" .)

log=$work/server.log
echo a-key-for-tests >"$work/key"
: >"$log" # what an earlier run left has another address
"$work/server" -model "$work/model" -name smollm2 -listen 127.0.0.1:0 -rows 2 -queue 2 -max-choices 2 -threads 1 -log json -key-file "$work/key" 2>"$log" &
server=$!
trap 'kill $server 2>/dev/null; wait $server || true' EXIT
until url=$(sed -n 's/.*"msg":"ready","url":"\([^"]*\)".*/\1/p' "$log") && [ -n "$url" ]; do
	kill -0 $server 2>/dev/null || { cat "$log"; exit 1; }
	sleep 1
done
failed=0
"$python" "$example/check/client.py" "$url" "$(cat "$work/key")" || failed=1
node "$work/page/page.mjs" "$(command -v "$chromium")" "$url" "$(cat "$work/key")" || failed=1
if [ "$(grep -c '"finish":"cancelled"' "$log")" -ne 2 ]; then
	echo "FAIL  the log must have two answers that were left"
	failed=1
fi
exit $failed
