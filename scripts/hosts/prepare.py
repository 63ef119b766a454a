"""Patches the models of methods.txt and writes the cases: calls of each, and what it gives with the op library.

    prepare.py ROPE_REWRITE LIBRARY TESTDATA CASES
"""
import json
import os
import re
import shutil
import subprocess
import sys

import onnxruntime

from calls import run_all
from cases import Case, difference

FLOAT32_LIMIT = 1e-4  # as rope-rewrite validate has it
TARGETS = {"onnx": [], "contrib": ["--context", "4096"]}  # beside ops, with what they need to be told


def main(rewriter, library, testdata, cases):
    shutil.rmtree(cases, ignore_errors=True)
    folders, limits, plain = [], {}, {}
    for path, method, arguments in table():
        model = os.path.basename(path)
        case = Case(os.path.join(cases, model, method), {"model": model, "method": method, "arguments": arguments,
                                                         "ops": 0, "limit": None, "calls": []})
        os.makedirs(case.folder)
        shutil.copy(os.path.join(testdata, path, "model.onnx"), case.original)
        report = subprocess.run([rewriter, case.original, "-o", case.patched, "--json", *arguments], check=True, stdout=subprocess.PIPE)
        case.ops = sum(site["status"] == "rewritten" for site in json.loads(report.stdout)["layers"])
        for target in TARGETS:
            case.targets[target] = write_target(rewriter, case, target)
        case.calls = run_all(session(case.patched, library))
        if method == "none":
            add_original(case)
            limits[model] = limit(case)
            plain[model] = case
        elif arguments[0] != "--kv" and same(case, plain[model]):
            sys.exit(f"rope-rewrite: {method} on {model} changes nothing that the calls show; choose other parameters in methods.txt.")
        case.limit = limits[model]
        case.write()
        folders.append(os.path.join(model, method))
    with open(os.path.join(cases, "cases.json"), "w") as f:
        json.dump(folders, f, indent=1)


def write_target(rewriter, case, target):
    """Writes a case for another target. Without a method --target onnx leaves an original as it is: it is given
    the model with the op, which becomes the op's body."""
    source, arguments = case.original, case.arguments + TARGETS[target]
    if target == "onnx" and case.method == "none":
        source, arguments = case.patched, ["--restore"]
    done = subprocess.run([rewriter, source, "-o", os.path.join(case.folder, target + ".onnx"), "--json", "--target", target, *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode == 2:
        return {"refused": done.stderr.strip()}
    if done.returncode != 0:
        sys.exit(f"rope-rewrite: --target {target} ended with {done.returncode} on {case.folder}: {done.stderr[-400:]}")
    needs = re.search(r"ONNX Runtime is 1\.(\d+) or newer", " ".join(json.loads(done.stdout)["warnings"]))
    return {"needs": int(needs[1]) if needs else 0}


def table():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "methods.txt")) as f:
        for line in f:
            words = line.split()
            if words and words[0] != "#":
                yield words[0], words[1], words[2:]


def session(path, library=None):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if library:
        options.register_custom_ops_library(library)
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def add_original(case):
    original = session(case.original)
    names = [o.name for o in original.get_outputs()]
    for call in case.calls:
        call["original"] = dict(zip(names, original.run(None, call["inputs"])))


def same(case, other):
    return all(difference(a["outputs"], b["outputs"]) <= other.limit for a, b in zip(case.calls, other.calls))


def limit(case):
    """Of a case without a method. In 16 bits another way of computing the same may be off by twice what the
    exporter's own is off."""
    if not case.half:
        return FLOAT32_LIMIT
    return 2 * max(difference(call["original"], call["outputs"], call["inputs"]["attention_mask"]) for call in case.calls)


if __name__ == "__main__":
    main(*sys.argv[1:])
