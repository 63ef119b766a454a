"""Makes small exports of many architectures by many routes, for `make coverage`.

    export.py CACHE [--routes ROUTE,…] [--architectures NAME,…] [--again]

Writes CACHE/ARCHITECTURE__ROUTE/ with model.onnx, reference.npz (what transformers computes) and export.json (how far
ONNX Runtime is from it, or why there is no export). What is there already is not made again; --again retries what failed.
"""
import argparse
import json
import logging
import os
import re
import shutil
import sys
import time
import traceback
import warnings
from importlib import metadata

warnings.filterwarnings("ignore")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import onnx
import torch
import transformers

import check
import routes
import derived, genai, optimum_route, transformers_route  # they add routes
from architectures import ARCHITECTURES, HEAD
from models import Skip

logging.disable(logging.ERROR)
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

FORMAT = 2  # of references: another number has them made anew


PACKAGES = "torch", "transformers", "onnx", "onnxscript", "onnxruntime", "optimum-onnx", "onnxruntime-genai"


def versions():
    """Of the packages that exporters come from, those that are here."""
    here = {d.metadata["Name"].replace("_", "-"): d.version for d in metadata.distributions()}
    return {name: here[name] for name in PACKAGES if name in here}


def make(cache, name, route, again):
    folder = os.path.join(cache, f"{name}__{route}")
    record = os.path.join(folder, "export.json")
    part = os.path.join(cache, ".part-" + f"{name}__{route}")
    shutil.rmtree(part, ignore_errors=True)
    os.makedirs(part)
    if os.path.exists(record):
        old = json.load(open(record))
        if old.get("format") == FORMAT and not ("skipped" in old and again):
            os.rmdir(part)
            return None
        if "skipped" not in old:
            shutil.copy(os.path.join(folder, "model.onnx"), part)
    start, found = time.time(), dict(format=FORMAT, architecture=name, route=route, rotary=ARCHITECTURES[name].rotary, versions=versions())
    try:
        reference = routes.ROUTES[route](cache, name, part)
        path = os.path.join(part, "model.onnx")
        if reference is not None:
            np.savez_compressed(os.path.join(part, "reference.npz"), **reference)
            found["difference"] = check.compare(path, reference, ARCHITECTURES[name].values.get("head_dim", HEAD))
            found["approximate"] = route in routes.APPROXIMATE
        else:
            check.session(path)
        m = onnx.load(path, load_external_data=False)
        found.update(nodes=len(m.graph.node), opsets={o.domain: o.version for o in m.opset_import})
    except Skip as e:
        found["skipped"] = str(e)
    except (Exception, SystemExit) as e:
        found["trace"] = traceback.format_exc()[-3000:]
        while e.__cause__ is not None:  # the exporter's own words hide what went wrong
            e = e.__cause__
        words = [re.sub(r"\x1b\[[0-9;]*m", "", line).replace(part, "") for line in str(e).splitlines() if line.strip()]
        found["skipped"] = f"{type(e).__name__}: {' '.join(words)[:300]}"
    if "skipped" in found:
        for file in os.listdir(part):
            os.remove(os.path.join(part, file))
    found["seconds"] = round(time.time() - start, 1)
    with open(os.path.join(part, "export.json"), "w") as f:
        json.dump(found, f, indent=1)
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(part, folder)
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cache")
    p.add_argument("--routes", default=",".join(sorted(r for r in routes.ROUTES if (r == "optimum") == optimum_route.OLDER and r.startswith("hf") == transformers_route.HERE)))
    p.add_argument("--architectures", default=",".join(ARCHITECTURES))
    p.add_argument("--again", action="store_true")
    a = p.parse_args()
    for route in a.routes.split(","):
        for name in a.architectures.split(","):
            found = make(a.cache, name, route, a.again)
            if found:
                print(f"{name:16} {route:18} {found['seconds']:6} s", found.get("skipped") or found.get("difference"), flush=True)


if __name__ == "__main__":
    sys.exit(main())
