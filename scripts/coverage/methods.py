"""What transformers computes with a scaling of the rotation, for `make coverage`.

    methods.py CACHE [--architectures NAME,…]

Writes CACHE/ARCHITECTURE.methods.npz: ids, mask, pos and logits as in reference.npz, and "logits SPEC" and "logits_pad
SPEC" for every method below, in float64 (angles in float32, as always), and "exported SPEC": how far ONNX Runtime is
from that with an export of the scaled model itself, where there is one. SPEC is what `rope-rewrite --scaling` takes; every
layer has the method. Where parameters stand for each type of layers, "SPEC of full_attention" gives it to those alone. The
rewriter never sees these numbers: it patches the export of the unscaled model.
"""
import argparse
import logging
import os
import tempfile
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
import transformers

import check
import models
import routes
from architectures import ARCHITECTURES

logging.disable(logging.ERROR)
transformers.logging.set_verbosity_error()

ORIGINAL = 16  # so that sequences of 32 tokens go beyond what the model is said to be trained on
METHODS = [
    dict(rope_type="linear", factor=4.0),
    dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=ORIGINAL),
    dict(rope_type="llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=ORIGINAL),
]


def spec(method):
    values = ",".join(f"{k}={v:g}" for k, v in method.items() if k != "rope_type")
    return f"{method['rope_type']}:{values}"


def scaled(parameters, method, only=None):
    """rope_parameters with the method, for one type of layers only if one is named, or None where transformers has no place
    for it."""
    if not parameters:
        return None
    if "full_attention" in parameters:
        return {kind: scaled(p, method) if only in (None, kind) else p for kind, p in parameters.items()}
    return {**parameters, **method} if parameters.get("rope_type", "default") == "default" else None


def logits(name):
    """Of both inputs of an architecture, as it is configured now."""
    model = models.build(name, "eager")
    y = models.reference(name, model, False, models.takes_positions(model))
    return {pad: y["logits" + pad] for pad in ("", "_pad")}


def exported(name):
    """How far ONNX Runtime is off that runs an export of the architecture as it is configured now; None if there is none."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            reference = routes.ROUTES["ts17"](None, name, folder)
            off = check.compare(os.path.join(folder, "model.onnx"), reference)
        except Exception:  # what export.py says of the route
            return None
    return max((v for v in off.values() if isinstance(v, float)), default=None)


def compute(name):
    """The arrays of an architecture, and a line that says how far its methods move the logits, or why there is none."""
    a = ARCHITECTURES[name]
    parameters = a.values.get("rope_parameters")
    if not a.rotary or a.head not in ("causal", "masked", "text") or scaled(parameters, METHODS[0]) is None:
        return None, "transformers has no place for a scaling in it, or it carries one"
    out = {k: v.numpy() for k, v in models.inputs(name).items()}
    plain, said = logits(name), []
    for pad in plain:
        out["logits" + pad] = plain[pad]
    whole = "full_attention"
    for method, only in [(m, o) for m in METHODS for o in ([None, whole] if whole in parameters else [None])]:
        a.values["rope_parameters"] = scaled(parameters, method, only)
        key = spec(method) + (f" of {only}" if only else "")
        try:
            found, own = logits(name), exported(name)
        except Exception as e:  # each configuration has a way of its own to refuse a method
            e = e.__cause__ or e
            said.append(f"{key}: {type(e).__name__}: {str(e).splitlines()[-1].strip()[:100]}")
            continue
        finally:
            a.values["rope_parameters"] = parameters
        said.append(f"{key} moves logits by {np.abs(found[''] - plain['']).max():.2g}")
        if own is not None:
            out[f"exported {key}"] = np.float32([own])
        for pad in found:
            out[f"logits{pad} {key}"] = found[pad]
    return out, "; ".join(said)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cache")
    p.add_argument("--architectures", default=",".join(ARCHITECTURES))
    a = p.parse_args()
    for name in a.architectures.split(","):
        out, said = compute(name)
        print(f"{name:16} {said}", flush=True)
        if out is None:
            continue
        path = os.path.join(a.cache, name + ".methods.npz")
        with open(path + ".part", "wb") as f:
            np.savez_compressed(f, **out)
        os.rename(path + ".part", path)


if __name__ == "__main__":
    main()
