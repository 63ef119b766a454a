"""Cases without a cache through the feature-extraction pipeline of the Go library hugot, whose sessions take
no op library. It takes text and gives the mean of each text's outputs.

    hugot_pipeline.py CASES ONNXRUNTIME PROGRAM ort|go "NAME AND VERSION"
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

from calls import VOCABULARY
from cases import Host, OwnFault, read_all

# A word for each token that calls use.
TOKENIZER = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
    "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
    "model": {"type": "WordLevel", "vocab": {f"t{i}": i for i in range(VOCABULARY)}, "unk_token": "t0"},
}


def main(cases, runtime, program, backend, name):
    host = Host(name)
    for case in map(pooled, read_all(cases)):
        if case.calls:
            host.check(case, lambda case: (run([program, backend, runtime], case.patched, case.calls), None),
                       lambda case: run([program, backend, runtime], case.original, case.calls))
    host.finish()


def pooled(case):
    """The case with each first row (they have no padding) as a text, and the mean of its outputs. All texts go
    into one batch, in which hugot pads the shorter ones on the right."""
    takes_text = case.calls[0]["inputs"].keys() <= {"input_ids", "attention_mask"}
    mean = lambda outputs: {name: value[:1].mean(axis=1) for name, value in outputs.items()}
    case.calls = [call | {kind: mean(call[kind]) for kind in call.keys() & {"outputs", "original"}}
                  for call in case.calls if takes_text]
    for call in case.calls:
        call["inputs"] = {"input_ids": call["inputs"]["input_ids"][0]}
    return case


def run(command, model, calls):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(model, os.path.join(folder, "model.onnx"))
        with open(os.path.join(folder, "tokenizer.json"), "w") as f:
            json.dump(TOKENIZER, f)
        texts = [" ".join(f"t{i}" for i in call["inputs"]["input_ids"]) for call in calls]
        done = subprocess.run([*command, folder], input=json.dumps(texts), capture_output=True, text=True)
    if done.returncode != 0:
        if "does not support ONNX functions" in done.stderr:
            raise OwnFault("its sessions have no ONNX functions")
        raise RuntimeError(done.stderr)
    rows = json.loads(done.stdout)
    return [{name: np.array([row], np.float32) for name in call["outputs"]} for row, call in zip(rows, calls, strict=True)]


if __name__ == "__main__":
    main(*sys.argv[1:])
