"""Completes a list of Go modules (CycloneDX) by what else a release holds.

    sbom.py LIST TARGET VERSION go=VERSION highway=VERSION zig=VERSION llvm=VERSION
"""
import datetime
import json
import os
import sys

LLVM = "Apache-2.0 WITH LLVM-exception"


def component(name, version, license, description):
    return {
        "bom-ref": name, "type": "library", "name": name, "version": version, "purl": f"pkg:generic/{name}@{version}",
        "description": description, "licenses": [{"expression": license}],
    }


def main(source, target, version, *versions):
    of = dict(v.split("=") for v in versions)
    of["llvm"] = ".".join(str(int(part)) for part in of["llvm"].split("."))  # 22.01.08, as its header has it
    with open(source) as f:
        bom = json.load(f)
    when = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    bom["metadata"]["timestamp"] = when.isoformat()
    bom["metadata"]["component"]["version"] = version
    bom.setdefault("components", []).extend([
        component("go", of["go"], "BSD-3-Clause", "Go's library and runtime, in the command"),
        component("highway", of["highway"], "Apache-2.0 OR BSD-3-Clause", "vectors, in the op library"),
        component("libcxx", of["llvm"], LLVM, "C++'s library, in the op library"),
        component("libcxxabi", of["llvm"], LLVM, "exceptions of C++, in the op library"),
        component("libunwind", of["llvm"], LLVM, "exceptions of C++, in the op library"),
        component("zig", of["zig"], "MIT", "the compiler, and its small routines in all that it builds"),
        component("glibc", "2.28", "LGPL-2.1-or-later", "how programs start, in what is for Linux"),
        component("mingw-w64", of["zig"], "ZPL-2.1 AND LicenseRef-public-domain", "as zig brings it: how programs start, in what is for Windows"),
    ])
    with open(target, "w") as f:
        json.dump(bom, f, indent=2, sort_keys=True)
        f.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
