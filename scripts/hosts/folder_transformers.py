"""Folders that transformers' exporter wrote and what rope-rewrite made of them, in transformers' own runtime.

    folder_transformers.py ROPE_REWRITE TESTDATA LIBRARY WORK

A first call by the folder's prefill and single tokens by its decode, in a batch with padding on the left, with the op
library registered and without it, must give the logits of TESTDATA/goldens: transformers' as exported and under YaRN,
and the reference of STRING.
"""
import os
import shutil
import subprocess
import sys
import warnings

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
warnings.filterwarnings("ignore")

import numpy as np
import onnxruntime
import torch
import transformers
from transformers.exporters.base import ExportedModel

BOUND = 1e-4  # of the goldens, as in the tests of the rewriter
PREFILL = 32
EVERY = 6  # so many tokens have one row of logits in others.npz
WHOLE = {"plain": [], "yarn4": ["--scaling", "yarn:factor=4,original_max_position_embeddings=16"],
         "string": ["--positions", "string:shift=16,window=4"]}
WINDOWED = {"plain": [], "yarn": ["--scaling", "yarn:factor=3,original_max_position_embeddings=16@1"],
            "string@1": ["--positions", "string:shift=16,window=4@1"]}
CASES = {"llama": WHOLE, "qwen3": WHOLE, "gemma3_text": WINDOWED}


def main(rewriter, testdata, library, work):
    transformers.logging.set_verbosity_error()
    good = True
    inputs, others = (np.load(os.path.join(testdata, "goldens", f"{name}.npz")) for name in ("llama", "others"))
    for architecture, methods in CASES.items():
        golden = others if methods is WINDOWED else np.load(os.path.join(testdata, "goldens", architecture + ".npz"))
        for method, flags in methods.items():
            to = os.path.join(work, f"{architecture}-{method}")
            shutil.rmtree(to, ignore_errors=True)
            subprocess.run([rewriter, os.path.join(testdata, "models", architecture + "__transformers"), "-o", to, *flags],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            key, step = (f"{architecture}/{method}", EVERY) if methods is WINDOWED else (method, 1)
            for name, ops in (("with the library", library), ("by its definition", None)):
                off = max(distance(run(to, ops, inputs, pad), golden[key + pad], inputs["mask_pad"] if pad else None, step) for pad in ("", "_pad"))
                good &= off <= BOUND
                print(f"{'pass' if off <= BOUND else 'FAIL'}  transformers {transformers.__version__}: {architecture}, {method}, {name}: "
                      f"off by {off:.1e}", flush=True)
    sys.exit(0 if good else 1)


def run(folder, library, inputs, pad):
    """Logits of all tokens: those of a first call, and one by one."""
    options = onnxruntime.SessionOptions()
    if library:
        options.register_custom_ops_library(library)
    model = ExportedModel.from_pretrained(folder, device="cpu", session_options=options)
    ids, mask, pos = (torch.from_numpy(inputs[k + pad]) for k in ("ids", "mask", "pos"))
    parts, cache = [], transformers.DynamicCache(config=model.config)
    for start, stop in zip([0, *range(PREFILL, ids.shape[1])], range(PREFILL, ids.shape[1] + 1)):
        step = dict(input_ids=ids[:, start:stop], attention_mask=mask[:, :stop], position_ids=pos[:, start:stop])
        out = model.runners["decode" if start else "prefill"](**step, cache=cache)
        parts.append(out.logits.clone())
        cache = out.cache
    return torch.cat(parts, 1).numpy()


def distance(logits, golden, mask, step):
    """With padding, the golden has the real tokens of the second row."""
    kept = logits[:, ::step] if mask is None else logits[1, int((mask[1] == 0).sum())::step]
    return float(np.abs(kept - golden).max())


if __name__ == "__main__":
    main(*sys.argv[1:])
