"""Goldens of methods on architectures beside llama, on single layers, and of positions that are drawn.

    goldens_others.py OUT

Partial rotation (gpt_neox), normalised queries and keys (qwen3), pairs of neighbours (cohere), layers that alternate
between a window and all keys with a base each (gemma3_text). Scalings are transformers' own; maps and single layers an
eager float64 model whose every score is made from explicit matrices of distances, one for each layer. Writes
OUT/goldens/others.npz (every STEP-th token's logits) and OUT/goldens/others.json. Run export_dynamo.py before, and
goldens.py, whose inputs these are.
"""
import argparse
import importlib
import json
import os

import numpy as np
import torch
import transformers.modeling_utils
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

import goldens_methods as m
import small
from goldens import INPUTS, decoded, full, worst

STEP = 6
PAIRS = {"gpt_neox": 4}
L0 = "original_max_position_embeddings=16"
WINDOW = 8  # gemma3_text's


def factors(name):
    n = PAIRS.get(name, 8)
    return m.SHORT[:n], m.LONG[:n]


def text(numbers):
    return "[" + ";".join(f"{x:g}" for x in numbers) + "]"


def scalings(name):
    short, long = factors(name)
    return {
        "linear": ("linear:factor=4", dict(rope_type="linear", factor=4.0), {}),
        "yarn": ("yarn:factor=3," + L0, m.YARN, {}),
        "llama3": ("llama3:factor=4,low_freq_factor=1,high_freq_factor=4," + L0, m.LLAMA3, {}),
        "dynamic": ("dynamic:factor=2," + L0, dict(rope_type="dynamic", factor=2.0), dict(max_position_embeddings=16)),
        "longrope": (f"longrope:factor=3,{L0},short_factor={text(short)},long_factor={text(long)}",
                     dict(rope_type="longrope", factor=3.0, original_max_position_embeddings=16, short_factor=short, long_factor=long), {}),
    }


SCALINGS = {"qwen3": ("llama3", "dynamic", "longrope"), "gpt_neox": ("llama3", "dynamic", "longrope"),
            "cohere": ("linear", "yarn", "llama3", "dynamic", "longrope")}
# Hugging Face's dictionary by type of layer, as it is given to both.
NESTED = {
    "yarn": dict(sliding_attention=dict(rope_type="default", rope_theta=1000.0), full_attention=dict(rope_theta=10000.0, **m.YARN)),
    "linear_llama3": dict(sliding_attention=dict(rope_type="linear", factor=2.0, rope_theta=1000.0),
                          full_attention=dict(rope_theta=10000.0, **m.LLAMA3)),
}


def splitmix64(x):
    mask = (1 << 64) - 1
    x = (x + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def drawn(positions, span=500, seed=7):
    places = sorted(sorted(range(span), key=lambda p: splitmix64((seed << 32) + p))[:positions.shape[-1]])
    return torch.tensor(places)[positions]


STRING = "string:shift=16,window=4"
# Edits, and for each layer distance and scaling; None is the model's own.
MAPS = {
    "qwen3": {
        "dual-chunk": (["positions dual-chunk:chunk_size=12,local_size=3"], [(m.dual_chunk, None)] * 2),
        "self-extend": (["positions self-extend:window=8,group=4"], [(m.self_extend, None)] * 2),
    },
    "gpt_neox": {
        "leaky-rerope": (["positions leaky-rerope:window=10,factor=4"], [(m.leaky, None)] * 2),
        "yarn+string": (["scaling yarn:factor=3," + L0, "positions " + STRING], [(m.string, "yarn")] * 2),
    },
    "cohere": {
        "string": (["positions " + STRING], [(m.string, None)] * 2),
        "rerope": (["positions rerope:window=10"], [(m.rerope, None)] * 2),
        "yarn+dual-chunk": (["scaling yarn:factor=3," + L0, "positions dual-chunk:chunk_size=12,local_size=3"], [(m.dual_chunk, "yarn")] * 2),
    },
    "gemma3_text": {
        "string@1": (["positions " + STRING + "@1"], [(m.true, None), (m.string, None)]),
        "rerope@1": (["positions rerope:window=10@1"], [(m.true, None), (m.rerope, None)]),
    },
    "llama": {
        "string+gain": (["positions " + STRING + ",attention_factor=1.07"], [(m.string, 1.07)] * 2),
        "yarn@0": (["scaling yarn:factor=3," + L0 + "@0"], [(m.true, "yarn"), (m.true, None)]),
        "yarn@0+rerope@1": (["scaling yarn:factor=3," + L0 + "@0", "positions rerope:window=10@1"], [(m.true, "yarn"), (m.rerope, None)]),
        "string+leaky@1": (["positions " + STRING + "@0", "positions leaky-rerope:window=10,factor=4@1"], [(m.string, None), (m.leaky, None)]),
        "sliding-window": (["mask sliding-window:window=8"], [("window", None)] * 2),
        "randomized": (["positions randomized:range=500,seed=7"], [("drawn", None)] * 2),
    },
}
WHOLE = ("randomized",)  # for whole texts in one call


class Layered:
    """Attention from matrices of distances, frequencies and a gain for each layer. It takes un-rotated queries and keys."""

    def __init__(self, name, out):
        self.model = model = small.model(name, out)
        cfg = model.config
        head = getattr(cfg, "head_dim", None) or cfg.hidden_size // cfg.num_attention_heads
        self.rotary = head // 2 if name == "gpt_neox" else head
        half = self.rotary // 2
        # Which channels turn together.
        self.pairs = [(2 * i, 2 * i + 1) if name == "cohere" else (i, i + half) for i in range(half)]
        self.types = getattr(cfg, "layer_types", None) or ["full_attention"] * 2
        bases = small.BASES.get(name, {})
        self.own = [(self.geometric(bases.get(kind, small.THETA)), 1.0) for kind in self.types]
        scaled = small.model(name, out, rope_parameters={k: m.YARN for k in bases} or m.YARN).base_model.rotary_emb
        self.yarn = None if bases else (scaled.inv_freq.float(), float(scaled.attention_scaling))
        importlib.import_module(type(model).__module__).apply_rotary_pos_emb = lambda q, k, *_, **__: (q, k)
        transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS.register("reference", self)
        ALL_MASK_ATTENTION_FUNCTIONS.register("reference", ALL_MASK_ATTENTION_FUNCTIONS["eager"])
        model.config._attn_implementation = "reference"

    def geometric(self, base):
        return (1.0 / base ** (torch.arange(0, self.rotary, 2).double() / self.rotary)).float()

    def set(self, pad, layers):
        pos, mask = INPUTS["pos" + pad], INPUTS["mask" + pad]
        index = torch.arange(pos.shape[1])
        self.layers = []
        for (distance, scaling), own, kind in zip(layers, self.own, self.types):
            visible = (index[:, None] >= index)[None] & mask[:, None, :].bool()
            if kind == "sliding_attention" or distance == "window":
                visible = visible & (index[:, None] - index < WINDOW)[None]
            p = drawn(index.expand(pos.shape)) if distance == "drawn" else pos  # a draw is for places of the padded row
            d = (m.true if isinstance(distance, str) else distance)(p[:, :, None], p[:, None, :]).double()
            frequencies, gain = self.yarn if scaling == "yarn" else own
            self.layers.append((d, visible, frequencies.double(), scaling if isinstance(scaling, float) else gain))

    def __call__(self, module, query, key, value, attention_mask, scaling=None, **_):
        distance, visible, frequencies, gain = self.layers[module.layer_idx]
        key, value = (t.repeat_interleave(query.shape[1] // t.shape[1], 1).double() for t in (key, value))
        query = query.double()
        keys = visible.shape[2] if key.shape[2] > visible.shape[2] else key.shape[2]
        rows = query.shape[2]
        first = self.first + self.seen(module.layer_idx, rows) - rows
        total = first + rows
        distance, visible = distance[:, first:total, total - keys:total], visible[:, first:total, total - keys:total]
        r = self.rotary
        scores = query[..., r:] @ key[..., r:].transpose(-1, -2)
        for (x, y), w in zip(self.pairs, frequencies):
            angle = (distance * w)[:, None]
            qx, qy, kx, ky = query[..., x, None], query[..., y, None], key[..., None, :, x], key[..., None, :, y]
            scores = scores + gain**2 * (angle.cos() * (qx * kx + qy * ky) + angle.sin() * (qx * ky - qy * kx))
        scores = scores * (query.shape[-1] ** -0.5 if scaling is None else scaling)
        weights = torch.softmax(scores.masked_fill(~visible[:, None], float("-inf")), -1)
        return (torch.nan_to_num(weights) @ value).float().transpose(1, 2).contiguous(), None

    first = 0

    def seen(self, layer, rows):
        """How many tokens the layer has been given so far: with a window the cache is shorter than the text."""
        self.count[layer] = self.count.get(layer, 0) + rows
        return self.count[layer]

    def full(self, pad):
        self.count = {}
        return full(self.model, pad)

    def decoded(self, pad):
        self.count = {}
        return decoded(self.model, pad)


def add(keys, notes, case, note, both, plain):
    """Keeps a case after looking whether it changes anything and whether decoding is the text in one call."""
    architecture, _ = case.split("/")
    for pad, (whole, decode) in both.items():
        keys[case + pad] = whole
        if decode is not None:
            off = worst(decode, whole)
            assert off < 1e-4, (case, pad, off)
            note["decode_against_full" + pad] = off
    note["change"] = worst(keys[case], plain[architecture][""])
    assert note["change"] > 0.05, (case, note)
    notes[case] = note


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    out = parser.parse_args().out
    keys, notes, plain = {}, {}, {}
    for name in ("llama", "qwen3", "gpt_neox", "cohere", "gemma3_text"):
        plain[name] = {pad: full(small.model(name, out), pad) for pad in ("", "_pad")}
    for name in ("cohere", "gemma3_text"):
        for pad in ("", "_pad"):
            keys[name + "/plain" + pad] = plain[name][pad]
        notes[name + "/plain"] = dict(edits=[], oracle="transformers")
    for name, cases in SCALINGS.items():
        for case in cases:
            spec, parameters, other = scalings(name)[case]
            model = small.model(name, out, rope_parameters=parameters, **other)
            by_length = case in m.LENGTHS  # in transformers decoding is then not the text in one call
            both = {pad: (full(model, pad), None if by_length else decoded(model, pad)) for pad in ("", "_pad")}
            add(keys, notes, f"{name}/{case}", dict(edits=["scaling " + spec], oracle="transformers"), both, plain)
    for case, parameters in NESTED.items():
        model = small.model("gemma3_text", out, rope_parameters=parameters)
        both = {pad: (full(model, pad), decoded(model, pad)) for pad in ("", "_pad")}
        add(keys, notes, "gemma3_text/" + case, dict(edits=[], rope_parameters=parameters, oracle="transformers"), both, plain)
    for name, cases in MAPS.items():
        reference = Layered(name, out)
        for pad in ("", "_pad"):  # with true distances it is the model itself
            reference.set(pad, [(m.true, None)] * 2)
            off = worst(reference.full(pad), plain[name][pad])
            assert off < 1e-4, (name, pad, off)
        for case, (edits, layers) in cases.items():
            both = {}
            for pad in ("", "_pad"):
                reference.set(pad, layers)
                both[pad] = reference.full(pad), None if case in WHOLE else reference.decoded(pad)
            add(keys, notes, f"{name}/{case}", dict(edits=edits, oracle="matrices"), both, plain)
    for case, note in notes.items():
        print(case, json.dumps(note))
    np.savez_compressed(os.path.join(out, "goldens", "others.npz"), **{k: v[..., ::STEP, :].astype(np.float32) for k, v in keys.items()})
    with open(os.path.join(out, "goldens", "others.json"), "w") as f:
        json.dump(dict(trained=16, context=48, step=STEP, cases=notes), f, indent=1)
        f.write("\n")
