#!/bin/sh
# ray.sh runs examples/ray with SmolLM2 in two replicas, as `make ray` builds and fetches what it needs: what it answers and
# refuses (check.py), then load while a replica is killed (client.py). Exit status 1 if anything failed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
example=$here/../../examples/ray
work=$BUILD/hosts
. "$here/venv.sh"
mkdir -p "$work"
export PYTHONDONTWRITEBYTECODE=1 RAY_USAGE_STATS_ENABLED=0
venv ray -r "$example/requirements.txt"
bin=$(dirname "$python")
"$BUILD/rope-rewrite" "$BUILD/smollm2/dynamo18" -o "$work/ray-model" --force --scaling yarn:factor=2 --weights link >/dev/null

log=$work/ray-serve.log
(cd "$example" && exec env PATH="$bin:$PATH" MODEL="$work/ray-model" OPS="$(readlink -f "$ROPE_OPS_LIBRARY")" REPLICAS=2 \
	serve run --route-prefix / serve:application) >"$log" 2>&1 &
server=$!
# Its own cluster ends with the command.
trap 'kill $server 2>/dev/null; wait $server || true' EXIT
until curl -sf -o /dev/null http://localhost:8000/-/healthz; do
	kill -0 $server 2>/dev/null || { tail -n 20 "$log"; exit 1; }
	sleep 1
done
"$python" "$example/check.py"
"$python" "$example/client.py" "${SECONDS_OF_LOAD:-60}" 4
