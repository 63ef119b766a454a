"""Goldens of texts that outgrow the trained length while they are generated, in a batch, under LongRoPE.

    goldens_longrope.py OUT

An eager decoder in NumPy, from the formulas alone: its cache holds keys as they come, and each call turns all of them
anew by the frequencies of that call: θ_i / long_factor_i if any real token of the batch stands at a position ≥ the
trained length, else θ_i / short_factor_i. Writes OUT/goldens/longrope.npz and longrope.json:

    ids, mask, pos     four texts of LENGTH places with padding on the left, so that each crosses in another call
    NAME/run           logits of a prefill of PREFILL places and single tokens after it, float64
    NAME/alone         the same with each text by itself: the others' lengths no longer count
    NAME/fresh         one call with all of it, which takes the long factors for all tokens
    errors             how far the same decoder in float32 is from these, by NAME and case

Padding has zeros. Weights are those of export_dynamo.py (NAME llama) and of scripts/coverage (NAME phi3_longrope).
"""
import argparse
import json
import math
import os
import sys

import numpy as np
import torch

import small

HERE = os.path.dirname(os.path.abspath(__file__))
L0, LENGTH, PREFILL, PADDING = 16, 32, 14, [0, 2, 5, 9]


class Eager:
    """A Llama or Phi-3 from a state dict, in one type throughout."""

    stale = False  # True keeps keys as their own call turned them, which is what most exports and hosts do

    def __init__(self, model, short, long, gain, dtype):
        config = model.config
        self.weights = {k: v.detach().double().numpy().astype(dtype) for k, v in model.state_dict().items()}
        self.layers, self.heads, self.kv_heads = config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads
        self.size = getattr(config, "head_dim", None) or config.hidden_size // self.heads
        self.eps, self.gain, self.dtype = config.rms_norm_eps, dtype(gain), dtype
        theta = 10000.0 ** (-np.arange(0, self.size, 2) / self.size)
        # Frequencies are numbers in float32, as every exporter stores them.
        self.short, self.long = ((theta / np.array(f)).astype(np.float32).astype(dtype) for f in (short, long))

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True, dtype=self.dtype) + self.dtype(self.eps)) * self.weights[name]

    def product(self, x, name):
        return x @ self.weights[name + ".weight"].T

    def projections(self, x, at):
        if at + "self_attn.qkv_proj.weight" in self.weights:
            n, k = self.heads * self.size, self.kv_heads * self.size
            return np.split(self.product(x, at + "self_attn.qkv_proj"), [n, n + k], -1)
        return [self.product(x, at + f"self_attn.{p}_proj") for p in "qkv"]

    def hidden(self, x, at):
        if at + "mlp.gate_up_proj.weight" in self.weights:
            gate, up = np.split(self.product(x, at + "mlp.gate_up_proj"), 2, -1)
        else:
            gate, up = self.product(x, at + "mlp.gate_proj"), self.product(x, at + "mlp.up_proj")
        return self.product(gate / (1 + np.exp(-gate)) * up, at + "mlp.down_proj")

    def turned(self, x, positions, frequencies):
        """x [batch, heads, tokens, size]; channel i turns with channel i + size/2."""
        angle = positions.astype(self.dtype)[:, None, :, None] * frequencies
        cos, sin, half = np.cos(angle) * self.gain, np.sin(angle) * self.gain, self.size // 2
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def call(self, ids, mask, pos, cache):
        """Logits of the last ids.shape[1] places of mask and pos; cache is a list of raw keys and values, which grows."""
        reach = pos[mask == 1].max() + 1
        frequencies = self.long if reach > L0 else self.short
        batch, new = ids.shape
        total = mask.shape[1]
        x = self.weights["model.embed_tokens.weight"][ids]
        visible = (np.arange(total) <= np.arange(total - new, total)[:, None])[None] & (mask[:, None] == 1)
        for layer in range(self.layers):
            at = f"model.layers.{layer}."
            h = self.norm(x, at + "input_layernorm.weight")
            q, k, v = (p.reshape(batch, new, -1, self.size).transpose(0, 2, 1, 3) for p in self.projections(h, at))
            if self.stale:
                k = self.turned(k, pos[:, total - new:], frequencies)
            if len(cache) > layer:
                k, v = (np.concatenate(pair, 2) for pair in zip(cache[layer], (k, v)))
                cache[layer] = k, v
            else:
                cache.append((k, v))
            q = self.turned(q, pos[:, total - new:], frequencies)
            if not self.stale:
                k = self.turned(k, pos, frequencies)
            k, v = (np.repeat(t, self.heads // self.kv_heads, 1) for t in (k, v))
            scores = q @ k.transpose(0, 1, 3, 2) / self.dtype(math.sqrt(self.size))
            scores = np.where(visible[:, None], scores, -np.inf)
            most = scores.max(-1, keepdims=True)
            e = np.exp(scores - np.where(np.isinf(most), 0, most))
            sums = e.sum(-1, keepdims=True)
            out = (e / np.where(sums == 0, 1, sums)) @ v
            x = x + self.product(out.transpose(0, 2, 1, 3).reshape(batch, new, -1), at + "self_attn.o_proj")
            x = x + self.hidden(self.norm(x, at + "post_attention_layernorm.weight"), at)
        return self.product(self.norm(x, "model.norm.weight"), "lm_head")

    def calls(self, ids, mask, pos, lengths):
        cache, parts, start = [], [], 0
        for n in lengths:
            stop = start + n
            parts.append(self.call(ids[:, start:stop], mask[:, :stop], pos[:, :stop], cache))
            start = stop
        return np.concatenate(parts, 1) * mask[..., None]


def inputs():
    generator = np.random.default_rng(17)
    mask = np.ones((len(PADDING), LENGTH), np.int64)
    for row, n in enumerate(PADDING):
        mask[row, :n] = 0
    ids = np.where(mask == 1, generator.integers(4, small.SHAPE["vocab_size"], mask.shape), 0)
    return ids, mask, np.maximum(mask.cumsum(-1) - 1, 0)


def cases(eager, ids, mask, pos):
    steps = [PREFILL] + [1] * (LENGTH - PREFILL)
    alone = np.zeros((*ids.shape, eager.weights["lm_head.weight"].shape[0]), eager.dtype)
    for row, n in enumerate(PADDING):
        one = [x[row:row + 1, n:] for x in (ids, mask, pos)]
        alone[row, n:] = eager.calls(*one, [PREFILL - n] + steps[1:])
    return {"run": eager.calls(ids, mask, pos, steps), "alone": alone, "fresh": eager.calls(ids, mask, pos, [LENGTH])}


def models(out):
    """NAME, the model, its factors and gain."""
    short, long = [1.0 + 0.05 * i for i in range(8)], [1.0 + 0.6 * i for i in range(8)]
    yield "llama", small.model("llama", out), short, long, math.sqrt(1 + math.log(3) / math.log(L0))
    sys.path.insert(0, os.path.join(HERE, "..", "..", "scripts", "coverage"))
    import models as coverage

    phi3 = coverage.build("phi3_longrope", "eager")
    p = phi3.config.rope_parameters
    yield "phi3_longrope", phi3, p["short_factor"], p["long_factor"], phi3.model.rotary_emb.attention_scaling


def against_transformers(model, eager, ids, mask, pos):
    """One call is what transformers computes, when the model's own rotation is the one of the call."""
    with torch.no_grad():
        want = model(input_ids=torch.tensor(ids), attention_mask=torch.tensor(mask), position_ids=torch.tensor(pos)).logits.numpy()
    return float(np.abs(eager.calls(ids, mask, pos, [ids.shape[1]]) - want * mask[..., None]).max())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    out = parser.parse_args().out
    os.makedirs(os.path.join(out, "goldens"), exist_ok=True)
    ids, mask, pos = inputs()
    arrays, notes = dict(ids=ids, mask=mask, pos=pos), dict(trained=L0, prefill=PREFILL, padding=PADDING, models={})
    for name, model, short, long, gain in models(out):
        exact, plain = (cases(Eager(model, short, long, gain, t), ids, mask, pos) for t in (np.float64, np.float32))
        note = dict(short_factor=short, long_factor=long, gain=gain, errors={k: float(np.abs(exact[k] - plain[k]).max()) for k in exact})
        if name == "llama":
            ones = Eager(model, [1.0] * 8, [1.0] * 8, 1.0, np.float64)
            note["against_transformers"] = against_transformers(model, ones, ids, mask, pos)
        else:
            note["against_transformers"] = against_transformers(model, Eager(model, short, long, gain, np.float64), ids, mask, pos)
        assert note["against_transformers"] < 1e-4, note
        crossing = [L0 + n for n in PADDING]  # the place of each row's first token beyond the trained length
        real = np.arange(LENGTH)[None] >= np.array(PADDING)[:, None]
        off = np.abs(exact["run"] - exact["alone"]).max(-1)
        assert off[:, :L0][real[:, :L0]].max() < 1e-9, "before any text crosses, no text knows of the others"
        note["run_to_alone"] = {str(c): float(off[r, L0:].max()) for r, c in enumerate(crossing)}
        # From the call in which the first text crosses, beside one call with all tokens: largest difference, and how
        # many tokens have the same most likely next one.
        eager = Eager(model, short, long, gain, np.float64)
        eager.stale = True
        stale = eager.calls(ids, mask, pos, [PREFILL] + [1] * (LENGTH - PREFILL))
        for case, got in (("run", exact["run"]), ("stale", stale)):
            got, want = got[:, L0:], exact["fresh"][:, L0:]
            note[case + "_to_fresh"] = dict(largest=float(np.abs(got - want).max()), median=float(np.median(np.abs(got - want).max(-1))),
                                            same_token=float((got.argmax(-1) == want.argmax(-1)).mean()))
        note["range"] = float(exact["run"].max() - exact["run"].min())
        notes["models"][name] = note
        print(name, json.dumps(note), "crossing", crossing)
        arrays.update({f"{name}/{k}": v.astype(np.float32) for k, v in exact.items()})
    np.savez_compressed(os.path.join(out, "goldens", "longrope.npz"), **arrays)
    with open(os.path.join(out, "goldens", "longrope.json"), "w") as f:
        json.dump(notes, f, indent=1)
        f.write("\n")
