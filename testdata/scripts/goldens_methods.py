"""Goldens of position maps, temperatures, combinations and the scalings that goldens.py leaves out.

    goldens_methods.py OUT

Scalings are transformers' own, end to end. Maps are the eager float64 reference of goldens.py with its matrix of
distances and its mask made entry by entry from each method's definition. Writes OUT/goldens/methods.npz (every
STEP-th token's logits, to keep testdata small) and OUT/goldens/methods.json (specs, and what was checked on the way).
"""
import argparse
import json
import math
import os
import sys

import numpy as np
import torch

from goldens import INPUTS, Reference, decoded, full, reference_model, worst
import small

STEP = 4
L0, CONTEXT = 16, 48  # trained context and the one asked for, in all cases

YARN = dict(rope_type="yarn", factor=3.0, original_max_position_embeddings=L0)
SHORT, LONG = [1.0 + 0.05 * i for i in range(8)], [1.0 + 0.6 * i for i in range(8)]
LLAMA3 = dict(rope_type="llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=L0)
# Spec, the dictionary that transformers gets, and what else of its configuration changes.
SCALINGS = {
    "llama3": ("llama3:factor=4,low_freq_factor=1,high_freq_factor=4,original_max_position_embeddings=16", LLAMA3, {}),
    "dynamic": ("dynamic:factor=2,original_max_position_embeddings=16",
                dict(rope_type="dynamic", factor=2.0), dict(max_position_embeddings=L0)),
    "longrope": ("longrope:factor=3,original_max_position_embeddings=16,short_factor=[%s],long_factor=[%s]" % (
        ";".join(f"{x:g}" for x in SHORT), ";".join(f"{x:g}" for x in LONG)),
        dict(rope_type="longrope", factor=3.0, original_max_position_embeddings=L0, short_factor=SHORT, long_factor=LONG), {}),
    "longrope_short": ("longrope:factor=3,original_max_position_embeddings=48,short_factor=[%s],long_factor=[%s]" % (
        ";".join(f"{x:g}" for x in SHORT), ";".join(f"{x:g}" for x in LONG)),
        dict(rope_type="longrope", factor=3.0, original_max_position_embeddings=48, short_factor=SHORT, long_factor=LONG), {}),
    "proportional": ("proportional:partial_rotary_factor=0.5,factor=2", dict(rope_type="proportional", partial_rotary_factor=0.5, factor=2.0), {}),
    "yarn_context": ("yarn:original_max_position_embeddings=16", YARN, {}),
}
# What depends on the run's length in transformers: its own decoding is not its own prefill.
LENGTHS = ("dynamic", "longrope")


def rerope(p, q, w=10):
    return (p - q).clamp(max=w)


def leaky(p, q, w=10, k=4.0):
    d = (p - q).double()
    return torch.where(d < w, d, w + (d - w) / k)


def self_extend(p, q, w=8, g=4):
    return torch.where(p - q < w, p - q, p // g - q // g + w - w // g)


def dual_chunk(p, q, size=12, local=3):
    chunk = size - local
    back = p // chunk - q // chunk
    near = (p % chunk + chunk).clamp(max=size)
    return torch.where(back == 0, p % chunk, torch.where(back == 1, near, torch.full_like(p, min(2 * chunk - 1, size)))) - q % chunk


def string(p, q, s=16, w=4):
    return torch.where(p - q < s, p - q, p - q - s + w)


def streaming(p, q, first=2, window=8):
    """Positions inside a cache of `first` keys and a window: the query never stands beyond first + window − 1."""
    return torch.where(p - q < window, p - q, p.clamp(max=first + window - 1) - q)


def first_keys(index, real, first=2, window=8):
    return (index[:, None] - index < window)[None] | (real.cumsum(-1) <= first)[:, None, :]


def log_n(p):
    return (torch.log(p.double() + 1) / math.log(L0)).clamp(min=1)


def llama4(p, a=0.5, f=8):
    return 1 + a * torch.log1p(((p + 1) // f).double())


def dca_temperature(p):
    return torch.full(p.shape, max(1.0, 0.1 * math.log(CONTEXT / L0) + 1)).double()


def near_string(p, q):
    return string(p, q, s=8)


def true(p, q):
    return p - q


def window(index, real):
    return (index[:, None] - index < 20)[None]


def first_key(index, real):
    return first_keys(index, real, first=1)


def anchor(ids):
    return (ids[:, :, None] == ids[:, None, :]) | (ids[:, None, :] == 0)


# axis:spec of each edit, distance, and what differs from plain: temperature of the query's position, YaRN, mask.
MAPS = {
    "rerope": (["positions rerope:window=10"], rerope, {}),
    "leaky-rerope": (["positions leaky-rerope:window=10,factor=4"], leaky, {}),
    "self-extend": (["positions self-extend:window=8,group=4"], self_extend, {}),
    "dual-chunk": (["positions dual-chunk:chunk_size=12,local_size=3"], dual_chunk, {}),
    "dual-chunk_temperature": (["positions dual-chunk:chunk_size=12,local_size=3,original_max_position_embeddings=16"], dual_chunk,
                               dict(temperature=dca_temperature)),
    "log-n": (["scaling log-n:original_max_position_embeddings=16"], true, dict(temperature=log_n)),
    "temperature": (["scaling temperature:attn_scale=0.5,floor_scale=8"], true, dict(temperature=llama4)),
    "yarn+string": (["scaling yarn:factor=3,original_max_position_embeddings=16", "positions string:shift=L/3,window=4"], string, dict(yarn=True)),
    "yarn+dual-chunk": (["scaling yarn:factor=3,original_max_position_embeddings=16", "positions dual-chunk:chunk_size=12,local_size=3"],
                        dual_chunk, dict(yarn=True)),
    "yarn+rerope": (["scaling yarn:factor=3,original_max_position_embeddings=16", "positions rerope:window=10"], rerope, dict(yarn=True)),
    "string+sliding-window": (["positions string:shift=16,window=4", "mask sliding-window:window=20"], string, dict(mask=window)),
    "first-keys_cache": (["mask first-keys:count=2,window=8,positions=cache"], streaming, dict(mask=first_keys)),
    "anchor+yarn": (["scaling yarn:factor=3,original_max_position_embeddings=16", "mask anchor"], true, dict(yarn=True, documents=anchor)),
    "anchor+string": (["positions string:shift=8,window=4", "mask anchor"], near_string, dict(documents=anchor)),
    "anchor+sliding-window": (["mask anchor", "mask sliding-window:window=20"], true, dict(mask=window, documents=anchor)),
    "anchor+first-keys": (["mask first-keys:count=1,window=8", "mask anchor"], true, dict(mask=first_key, documents=anchor)),
    "yarn+log-n": (["scaling yarn:factor=3,original_max_position_embeddings=16", "scaling log-n:original_max_position_embeddings=16"], true,
                   dict(yarn=True, temperature=log_n)),
}


RUN_PREFILL = 12  # tokens of the first call of a run that is decoded, below the trained context


def by_reach(name, plain):
    """Frequencies of a call that reaches `length` positions, for length=run, and the gain."""
    theta, n = plain.double(), 2 * len(plain)

    def dynamic(length, factor=2.0):
        alpha = factor * max(length, L0) / L0 - (factor - 1)
        return theta * alpha ** (-torch.arange(0, n, 2).double() / (n - 2))

    def dynamic_linear(length):
        return theta * L0 / max(length, L0)

    def longrope(length):
        return theta / torch.tensor(LONG if length > L0 else SHORT).double()

    gain = math.sqrt(1 + math.log(3) / math.log(L0)) if name == "longrope" else 1.0
    return {"dynamic": dynamic, "dynamic-linear": dynamic_linear, "longrope": longrope}[name], gain


RUNS = {
    "dynamic": "dynamic:factor=2,original_max_position_embeddings=16,length=run",
    "dynamic-linear": "dynamic-linear:original_max_position_embeddings=16,length=run",
    "longrope": SCALINGS["longrope"][0] + ",length=run",
}


def formulas():
    """Scalings that transformers does not have: frequencies in float64 by rope/testdata/make_scaling.py."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "rope", "testdata"))
    import make_scaling as m

    n, base = 16, small.THETA
    listed = [1.5, 0.7, 0.3, 0.1, 0.05, 0.02, 0.01, 0.005]
    context = "factor=3,original_max_position_embeddings=16"
    return {
        "ntk": ("ntk:alpha=3", m.default(n, base * 3 ** (n / (n - 2)))),
        "dynamic-linear": ("dynamic-linear:original_max_position_embeddings=16", m.default(n, base) / 3),
        "partial-ntk": ("partial-ntk:" + context, m.partial_ntk(n, base, L0, 3)),
        "ntk-by-parts": ("ntk-by-parts:" + context, m.ntk_by_parts(n, base, L0, 3)),
        "yarn_ratio": ("yarn:ramp=ratio,attention_factor=1," + context, m.yarn_ratio(n, base, L0, 3)),
        "beta-ary": ("beta-ary:factor=3", m.beta_ary(n, base, 3)),
        "resonance": ("resonance", m.resonance(n, base)),
        "nope": ("nope", np.zeros(n // 2)),
        "frequencies": ("frequencies:inv_freq=[%s]" % ";".join(map(str, listed)), np.array(listed)),
    }


class Mapped(Reference):
    """Reference with a gain on the rotated channels, a temperature of the query's position, and frequencies that may
    depend on how far a call reaches. transformers' cache holds what it is given: un-rotated keys."""

    temperature = None  # [batch, length]
    gain = 1.0
    reach = None  # length → frequencies

    def __call__(self, module, query, key, value, attention_mask, **rest):
        rows, keys = query.shape[2], key.shape[2]
        if self.reach is not None:
            self.frequencies = self.reach(int(self.positions[:, keys - rows:keys].max()) + 1).float()
        query = query.double().clone()
        query[..., :self.rotary] *= self.gain**2
        if self.temperature is not None:
            query *= self.temperature[:, None, keys - rows:keys, None]
        return super().__call__(module, query, key, value, attention_mask, **rest)


def prepare(reference, case, pad, yarn):
    _, distance, other = MAPS[case]
    pos = INPUTS["pos" + pad]
    index = torch.arange(pos.shape[1])
    reference.set(pad, lambda d: d)
    reference.distance = distance(pos[:, :, None], pos[:, None, :]).double()
    if "mask" in other:
        reference.visible = reference.visible & other["mask"](index, INPUTS["mask" + pad])
    if "documents" in other:
        from goldens_masks import documents

        reference.visible = reference.visible & other["documents"](documents(pad))
    reference.temperature = other["temperature"](pos) if "temperature" in other else None
    reference.frequencies, reference.gain = yarn if "yarn" in other else (reference.plain, 1.0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    out = parser.parse_args().out
    os.makedirs(os.path.join(out, "goldens"), exist_ok=True)
    keys, notes = {}, {}
    plain = {pad: full(small.model("llama", out), pad) for pad in ("", "_pad")}
    for case, (spec, parameters, other) in SCALINGS.items():
        model = small.model("llama", out, rope_parameters=parameters, **other)
        for pad in ("", "_pad"):
            keys[case + pad] = full(model, pad)
        notes[case] = dict(edits=["scaling " + spec], oracle="transformers", change=worst(keys[case], plain[""]))
        if case not in LENGTHS:
            notes[case]["decode_against_full"] = worst(decoded(model), keys[case])
            assert notes[case]["decode_against_full"] < 1e-4, (case, notes[case])
    scaled = small.model("llama", out, rope_parameters=YARN).base_model.rotary_emb
    yarn = scaled.inv_freq.float(), float(scaled.attention_scaling)

    model, _ = reference_model("llama", out)
    reference = Mapped(model)
    import transformers.modeling_utils

    transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS.register("reference", reference)
    reference.plain = reference.frequencies
    for pad in ("", "_pad"):
        reference.set(pad, lambda d: d)
        assert worst(full(model, pad), plain[pad]) < 1e-4
    for case, (edits, _, _) in MAPS.items():
        notes[case] = dict(edits=edits, oracle="explicit matrices in float64")
        for pad in ("", "_pad"):
            prepare(reference, case, pad, yarn)
            keys[case + pad] = full(model, pad)
            off = worst(decoded(model, pad), keys[case + pad])
            assert off < 1e-4, (case, pad, off)
            notes[case]["decode_against_full" + pad] = off
        notes[case]["change"] = worst(keys[case], plain[""])
        assert notes[case]["change"] > 0.5, (case, notes[case])
    for case, (spec, frequencies) in formulas().items():
        notes[case] = dict(edits=["scaling " + spec], oracle="formula and matrices in float64")
        reference.frequencies, reference.gain, reference.temperature = torch.tensor(frequencies).float(), 1.0, None
        for pad in ("", "_pad"):
            reference.set(pad, lambda d: d)
            keys[case + pad] = full(model, pad)
        notes[case]["change"] = worst(keys[case], plain[""])
    for name, spec in RUNS.items():
        case = name + "_run"
        notes[case] = dict(edits=["scaling " + spec], oracle="raw keys in float64, turned by each call's frequencies")
        for pad in ("", "_pad"):
            reference.set(pad, lambda d: d)
            reference.temperature, reference.positions = None, INPUTS["pos" + pad]
            reference.reach, reference.gain = by_reach(name, reference.plain)
            whole = full(model, pad)
            if name in SCALINGS:  # one call is what transformers computes
                assert worst(whole, keys[name + pad]) < 1e-4, (case, pad, worst(whole, keys[name + pad]))
            keys[case + "_full" + pad] = whole
            keys[case + pad] = decoded(model, pad, RUN_PREFILL)
            notes[case]["decode_against_one_call" + pad] = worst(keys[case + pad], whole)
        reference.reach = None
    for case, note in notes.items():
        print(case, json.dumps(note))
    np.savez_compressed(os.path.join(out, "goldens", "methods.npz"),
                        **{k: v[..., ::STEP, :].astype(np.float32) for k, v in keys.items()})
    with open(os.path.join(out, "goldens", "methods.json"), "w") as f:
        json.dump(dict(trained=L0, context=CONTEXT, step=STEP, run_prefill=RUN_PREFILL, cases=notes), f, indent=1)
        f.write("\n")
