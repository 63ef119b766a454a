#!/bin/sh
# sbom.sh SOURCES FILE VERSION writes the list of components (CycloneDX): Go's modules by cyclonedx-gomod, and Highway.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../pins.sh"
cd "$1"
CGO_ENABLED=1 go run "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$PIN_CYCLONEDX" mod -json -licenses -noserial -test=false \
	-output "$2.part" . >/dev/null
python3 - "$2.part" "$2" "$3" "$PIN_HIGHWAY_VERSION" <<'PY'
import json, sys, os, datetime
source, target, version, highway = sys.argv[1:]
with open(source) as f:
    bom = json.load(f)
bom["metadata"]["timestamp"] = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc).isoformat()
bom["metadata"]["component"]["version"] = version
bom.setdefault("components", []).append({
    "bom-ref": "highway", "type": "library", "name": "highway", "version": highway, "purl": f"pkg:generic/highway@{highway}",
    "licenses": [{"license": {"id": "Apache-2.0"}}],
})
with open(target, "w") as f:
    json.dump(bom, f, indent=2, sort_keys=True)
    f.write("\n")
PY
rm "$2.part"
