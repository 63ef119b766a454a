"""Goldens of the small models: transformers for the scaling methods, an eager float64 reference for STRING.

    goldens.py OUT [ARCHITECTURE ...]

Writes OUT/goldens/ARCHITECTURE.npz and OUT/goldens/goldens.json (parameters, and what was checked on the way).
"""
import argparse
import json
import os

import numpy as np
import torch
import transformers.modeling_utils
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

import small

INPUTS = small.inputs()
PAD = 10  # tokens of padding in the second row of the *_pad inputs
SHIFT, WINDOW = 16, 4
METHODS = {
    "plain": {},
    "linear4": dict(rope_type="linear", factor=4.0),
    "yarn4": dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16),
    "theta500k": dict(rope_type="default", rope_theta=500000.0),
}
SMALLER = ("plain", "yarn4")  # what the architectures beside llama get, to keep testdata small


def run(model, pad="", start=0, stop=None, cache=None):
    """Logits of tokens start … stop−1, after those in the cache."""
    ids, mask, pos = (INPUTS[k + pad] for k in ("ids", "mask", "pos"))
    with torch.no_grad():
        return model(input_ids=ids[:, start:stop], attention_mask=mask[:, :stop], position_ids=pos[:, start:stop],
                     past_key_values=cache, use_cache=cache is not None)


def full(model, pad=""):
    logits = run(model, pad).logits.numpy()
    return logits[1, PAD:] if pad else logits  # padded queries carry no meaning


def decoded(model, pad="", prefill=32):
    """The same by a prefill and single steps with transformers' own cache."""
    from transformers.cache_utils import DynamicCache

    cache = DynamicCache()
    parts = [run(model, pad, 0, prefill, cache).logits]
    for t in range(prefill, INPUTS["ids"].shape[1]):
        parts.append(run(model, pad, t, t + 1, cache).logits)
    logits = torch.cat(parts, 1).numpy()
    return logits[1, PAD:] if pad else logits


class Reference:
    """Attention whose every score is qᵀ R(−δ) k in float64, δ an explicit matrix of distances.

    It takes un-rotated queries and keys, so nothing of transformers' rotation is in it, and δ needs no bands,
    spans or key positions: it is the method's definition, entry by entry.
    """

    def __init__(self, model):
        cfg = model.config
        head_size = getattr(cfg, "head_dim", None) or cfg.hidden_size // cfg.num_attention_heads
        self.rotary = int(head_size * (cfg.rope_parameters.get("partial_rotary_factor") or 1.0))
        self.frequencies = (1.0 / small.THETA ** (torch.arange(0, self.rotary, 2).double() / self.rotary)).float()
        self.distance = self.visible = None

    def set(self, pad, position_map):
        pos, mask = INPUTS["pos" + pad], INPUTS["mask" + pad]
        index = torch.arange(pos.shape[1])
        self.distance = position_map((pos[:, :, None] - pos[:, None, :]).double())
        self.visible = (index[:, None] >= index)[None] & mask[:, None, :].bool()

    def __call__(self, module, query, key, value, attention_mask, scaling=None, **_):
        key, value = (t.repeat_interleave(query.shape[1] // t.shape[1], 1).double() for t in (key, value))
        query = query.double()
        rows, keys = query.shape[2], key.shape[2]
        distance = self.distance[:, keys - rows:keys, :keys]
        visible = self.visible[:, keys - rows:keys, :keys]
        r, half = self.rotary, self.rotary // 2
        scores = query[..., r:] @ key[..., r:].transpose(-1, -2)
        for i in range(half):
            angle = (distance * self.frequencies[i].double())[:, None]
            qx, qy, kx, ky = query[..., i, None], query[..., i + half, None], key[..., None, :, i], key[..., None, :, i + half]
            scores = scores + angle.cos() * (qx * kx + qy * ky) + angle.sin() * (qx * ky - qy * kx)
        scores = scores * (query.shape[-1] ** -0.5 if scaling is None else scaling)
        weights = torch.softmax(scores.masked_fill(~visible[:, None], float("-inf")), -1)
        return (torch.nan_to_num(weights) @ value).float().transpose(1, 2).contiguous(), None


def reference_model(name, out):
    import importlib

    model = small.model(name, out)
    reference = Reference(model)
    importlib.import_module(type(model).__module__).apply_rotary_pos_emb = lambda q, k, *_, **__: (q, k)
    transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS.register("reference", reference)
    ALL_MASK_ATTENTION_FUNCTIONS.register("reference", ALL_MASK_ATTENTION_FUNCTIONS["eager"])
    model.config._attn_implementation = "reference"
    return model, reference


def string(distance):
    """STRING, eq. 4: near distances as they are, far ones shifted back by S − W."""
    return torch.where(distance < SHIFT, distance, distance - SHIFT + WINDOW)


def worst(a, b):
    return float(np.abs(a - b).max())


def goldens(name, out):
    keys, notes = {}, {}
    methods = METHODS if name == "llama" else SMALLER
    for method in methods:
        parameters = METHODS[method]
        model = small.model(name, out, rope_parameters=parameters)
        for pad in ("", "_pad"):
            keys[method + pad] = full(model, pad)
        notes[method] = dict(parameters=parameters, gain=float(getattr(model.base_model.rotary_emb, "attention_scaling", 1.0)),
                             change=worst(keys[method], keys["plain"]),
                             decode_against_full=max(worst(decoded(model, p), keys[method + p]) for p in ("", "_pad")))
    model, reference = reference_model(name, out)
    for pad in ("", "_pad"):  # the reference with true distances is the model itself
        for what, position_map in (("reference_identity", lambda d: d), ("string_beyond_length", lambda d: torch.where(d < 48, d, d - 44))):
            reference.set(pad, position_map)
            notes[what + pad] = worst(full(model, pad), keys["plain" + pad])
            assert notes[what + pad] < 1e-4, (what, pad, notes)
        reference.set(pad, string)
        keys["string" + pad] = full(model, pad)
    notes["string"] = dict(parameters=dict(shift=SHIFT, window=WINDOW), change=worst(keys["string"], keys["plain"]))
    notes["string"]["decode_against_full"] = 0.0
    for pad in ("", "_pad"):
        reference.set(pad, string)
        notes["string"]["decode_against_full"] = max(notes["string"]["decode_against_full"], worst(decoded(model, pad), keys["string" + pad]))
    for method in (*methods, "string"):
        assert notes[method]["decode_against_full"] < 1e-4, (method, notes[method])
    return keys, notes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("architectures", nargs="*")
    a = parser.parse_args()
    folder = os.path.join(a.out, "goldens")
    os.makedirs(folder, exist_ok=True)
    summary = {}
    for name in a.architectures or small.ARCHITECTURES:
        keys, summary[name] = goldens(name, a.out)
        np.savez_compressed(os.path.join(folder, name + ".npz"), **{k: v.numpy() for k, v in INPUTS.items()},
                            **{k: v.astype(np.float32) for k, v in keys.items()})
        print(name, json.dumps(summary[name]))
    with open(os.path.join(folder, "goldens.json"), "w") as f:
        json.dump(summary, f, indent=1)
        f.write("\n")
