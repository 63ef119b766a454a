"""Export small models whose graph ONNX Runtime GenAI's model builder makes otherwise than the configuration says.

    export_claims.py OUT [NAME ...]

Writes OUT/claims/NAME/{model.onnx,config.json,genai_config.json,golden.npz}. Runs where export_genai.py does. What stands
in the graph is the builder's own doing: nothing is changed behind it. golden.npz is what transformers computes for the
configuration, in float32. The tests of audit read these models.
"""
import argparse
import contextlib
import io
import os
import runpy
import shutil
import sys
import tempfile

import numpy as np
import onnx
import torch

import small
from export_genai import BUILDER, checkpoint

WINDOWED = dict(num_key_value_heads=2, sliding_window=8)
CASES = {
    "llama__genai-linear": ("llama", dict(rope_parameters=dict(rope_type="linear", factor=4.0))),
    "llama__genai-yarn": ("llama", dict(rope_parameters=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16))),
    "qwen2__genai-window": ("qwen2", dict(WINDOWED, use_sliding_window=True, max_window_layers=1)),
    "mistral__genai-window": ("mistral", dict(WINDOWED)),
}
small.OTHERS.update(qwen2={}, mistral={})


def golden(model, path):
    """Inputs, and the logits of one call without padding."""
    given = {k: v for k, v in small.inputs().items() if k in ("ids", "mask", "pos")}
    with torch.no_grad():
        logits = model(input_ids=given["ids"], attention_mask=given["mask"], position_ids=given["pos"], use_cache=False).logits
    np.savez_compressed(path, logits=logits.numpy(), **{k: v.numpy() for k, v in given.items()})


def export(folder, name, override):
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        source, built = os.path.join(work, "checkpoint"), os.path.join(work, "built")
        checkpoint(name, work, source, **override)
        golden(small.model(name, work, **override), os.path.join(folder, "golden.npz"))
        arguments = sys.argv
        sys.argv = ["builder.py", "-m", source, "-i", source, "-o", built, "-p", "fp32", "-e", "cpu", "-c", os.path.join(work, "cache"),
                    "--extra_options", "windowed_kv_cache=false"]  # a cache that keeps all tokens can be run without GenAI
        sys.path.insert(0, os.path.dirname(BUILDER))
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                runpy.run_path(BUILDER, run_name="__main__")
        finally:
            sys.argv = arguments
            sys.path.pop(0)
        onnx.save(onnx.load(os.path.join(built, "model.onnx")), os.path.join(folder, "model.onnx"))  # weights inside
        shutil.copy(os.path.join(built, "genai_config.json"), folder)
        shutil.copy(os.path.join(source, "config.json"), folder)
    print("wrote", folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("names", nargs="*", default=list(CASES))
    a = parser.parse_args()
    for case in a.names:
        export(os.path.join(a.out, "claims", case), *CASES[case])
