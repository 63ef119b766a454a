"""What transformers computes from each config.json that a rewrite writes: goldens, and the check of a version.

    config_claims.py OUT CONFIGS [--write]

CONFIGS holds NAME.newer.json (rope_parameters) and NAME.older.json (rope_scaling), as TestTransformersAgrees writes
them with -update; OUT has the weights of small.py, which makes them where they are missing. Each configuration is read
as users read it, by AutoConfig and AutoModelForCausalLM, gets llama's weights, and decodes a text that is three times
the trained length. --write writes CONFIGS/goldens.npz; without it the logits are compared with that file.
transformers 4 reads the older form alone.
"""
import argparse
import glob
import os

import numpy as np
import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.cache_utils import DynamicCache

import small

PREFILL, STEP, LIMIT = 12, 4, 1e-4


def weights_for(model, weights):
    """Llama's weights as other architectures name them. Biases that llama lacks are 0."""
    out = dict(weights)
    for name, tensor in model.state_dict().items():
        if name in out:
            continue
        prefix, last = name.rsplit(".", 2)[0], name.rsplit(".", 2)[1]
        if last == "qkv_proj":
            out[name] = torch.cat([weights[f"{prefix}.{p}_proj.weight"] for p in "qkv"])
        elif last == "gate_up_proj":
            out[name] = torch.cat([weights[f"{prefix}.{p}_proj.weight"] for p in ("gate", "up")])
        elif name.endswith(".bias"):
            out[name] = torch.zeros_like(tensor)
        else:
            raise SystemExit(f"{type(model).__name__} has {name}, which llama has not")
    return {name: out[name] for name in model.state_dict()}


def decoded(path, weights, ids):
    """Logits of a prefill and single steps; and of one call, which must be the same."""
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(path), attn_implementation="eager").float().eval()
    model.load_state_dict(weights_for(model, weights))
    with torch.no_grad():
        whole = model(input_ids=ids).logits
        cache = DynamicCache(config=model.config)
        parts = [model(input_ids=ids[:, :PREFILL], past_key_values=cache, use_cache=True).logits]
        for t in range(PREFILL, ids.shape[1]):
            parts.append(model(input_ids=ids[:, t : t + 1], past_key_values=cache, use_cache=True).logits)
    logits = torch.cat(parts, 1)
    off = float((logits - whole).abs().max())
    assert off < LIMIT, (path, "decoding is not one call", off)
    return logits[0, ::STEP].numpy()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("configs")
    parser.add_argument("--write", action="store_true")
    a = parser.parse_args()
    if not os.path.exists(small.checkpoint(a.out, "llama")):
        small.model("llama", a.out)
    weights = load_file(small.checkpoint(a.out, "llama"))
    ids = small.inputs()["ids"][:1]
    file = os.path.join(a.configs, "goldens.npz")
    goldens = {"ids": ids.numpy()} if a.write else dict(np.load(file))
    paths = sorted(glob.glob(os.path.join(a.configs, "*.newer.json" if small.TRANSFORMERS_5 else "*.older.json")))
    paths += sorted(glob.glob(os.path.join(a.configs, "*.older.json"))) if small.TRANSFORMERS_5 else []
    for path in paths:
        name = os.path.basename(path).split(".")[0]
        logits = decoded(path, weights, ids)
        off = float(np.abs(logits - goldens.setdefault(name, logits)).max())
        print(f"{os.path.basename(path):36} {off:.1e}")
        assert off < LIMIT, (path, off)
    print(f"{len(paths)} configurations: transformers {small.transformers.__version__} computes what the rewritten models compute")
    if a.write:
        np.savez_compressed(file, **goldens)
