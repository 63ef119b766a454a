"""Writes encodings.json: what transformers' models compute for their position encodings, and
the formulas of papers in NumPy where transformers has none.

Needs torch, transformers and numpy (written with 2.11.0, 5.17.0 and 2.4.6).

    python make_encodings.py
"""

import json
import os

import numpy as np
import torch
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
from transformers.models.opt.modeling_opt import OPTLearnedPositionalEmbedding
from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLVisionConfig
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLVisionRotaryEmbedding, apply_rotary_pos_emb_vision
from transformers.models.roformer.modeling_roformer import RoFormerSelfAttention
from transformers.models.t5.modeling_t5 import T5Attention

DISTANCES = list(range(0, 40)) + [63, 64, 65, 127, 128, 129, 1000, 4095, 131071]


def alibi():
    """Slopes by BLOOM and by MPT: the bias of the second of two tokens, less that of the first."""
    for heads in [1, 2, 4, 6, 8, 12, 16, 20, 32, 71, 112]:
        bloom = build_alibi_tensor(torch.ones(1, 2, dtype=torch.long), heads, torch.float32)[:, 0, 1]
        mpt = build_mpt_alibi_tensor(heads, 2)[:, 0, 0] * -1
        yield {"heads": heads, "bloom": bloom.tolist(), "mpt": mpt.tolist()}


def t5():
    for both in [False, True]:
        for buckets, farthest in [(32, 128), (64, 256), (16, 100), (32, 512), (320, 800)]:
            distances = [-d for d in reversed(DISTANCES[1:])] + DISTANCES
            relative = -torch.tensor(distances)  # transformers counts from the query to the key
            got = T5Attention._relative_position_bucket(relative, both, buckets, farthest)
            yield {"bidirectional": both, "buckets": buckets, "max_distance": farthest, "distances": distances, "bucket": got.tolist()}


def kerple():
    d = np.array(DISTANCES, dtype=np.float64)
    for r1, r2 in [(1, 1), (0.5, 0.1), (2.5, 3), (0.03, 0.004), (1.5, 2)]:
        yield {"r1": r1, "r2": r2, "log": (-r1 * np.log(1 + r2 * d)).tolist(), "power": (-r1 * d**r2).tolist() if r2 <= 2 else None}


def sandwich():
    """The product of two sinusoidal tables, as the paper derives the bias."""
    heads, end = 8, max(d for d in DISTANCES if d < 4096)
    for size in [8, 128]:
        angles = end / 10000 ** (np.arange(0, size, 2) / size)
        for h in [1, 3, 8]:
            values = []
            for d in DISTANCES:
                keys = (end - d) / 10000 ** (np.arange(0, size, 2) / size)
                values.append(float((np.sin(angles) * np.sin(keys) + np.cos(angles) * np.cos(keys)).sum() / (8 * h / heads)))
            yield {"pairs": size // 2, "heads": heads, "head": h - 1, "bias": values}


def xpos():
    """Algorithm 1: scores of a query and a key of ones without a rotation, and zeta."""
    for size, gamma, base in [(64, 0.4, 512), (8, 0.4, 512), (32, 1.0, 256)]:
        zeta = (np.arange(size // 2) / (size / 2) + gamma) / (gamma + 1)
        decay = [(zeta ** (500 / base) * zeta ** (-(500 - d) / base)).tolist() for d in [0, 1, 17, 400]]
        yield {"pairs": size // 2, "gamma": gamma, "base": base, "zeta": zeta.tolist(), "distances": [0, 1, 17, 400], "decay": decay}


def sinusoidal():
    for size in [2, 8, 64]:
        table = MarianSinusoidalPositionalEmbedding(300, size)
        rows = table.create_weight()
        yield {"size": size, "positions": [0, 1, 7, 255, 299], "rows": [rows[p].tolist() for p in [0, 1, 7, 255, 299]]}


def learned():
    """OPT's table: its rows begin at the third."""
    torch.manual_seed(0)
    for rows in [4, 16, 64]:
        layer = OPTLearnedPositionalEmbedding(rows, 4)
        positions = [0, 1, rows - 1]
        got = layer(torch.ones(1, 3, dtype=torch.long), position_ids=torch.tensor([positions]))[0]
        yield {"table": layer.weight.tolist(), "positions": positions, "rows": got.tolist()}


def rotation2d():
    """Rotated vectors of Qwen2-VL's vision tower."""
    torch.manual_seed(1)
    for size in [8, 16, 80]:
        config = Qwen2VLVisionConfig(embed_dim=size, num_heads=1)
        places = torch.tensor([[0, 0, 3, 17, 60], [0, 5, 0, 11, 59]])
        cos, sin = Qwen2VLVisionRotaryEmbedding(config)(torch.zeros(1), places.T)
        x = torch.randn(5, 1, size)
        got, _ = apply_rotary_pos_emb_vision(x, x, cos, sin)
        yield {"size": size, "rows": places[0].tolist(), "columns": places[1].tolist(), "x": x[:, 0].tolist(), "rotated": got[:, 0].tolist()}


def rotated(x, size):
    """x [tokens, size], float64, rotated by RoFormer's own code at positions 0, 1, 2 …"""
    angles = torch.arange(len(x), dtype=torch.float64)[:, None] * 10000 ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    table = torch.cat([angles.sin(), angles.cos()], dim=-1)
    x = torch.tensor(x)[None, None]
    return RoFormerSelfAttention.apply_rotary_position_embeddings(table[None, None], x, x)[0][0, 0].numpy()


def rope_bias():
    """Scores of all queries and keys."""
    rng = np.random.default_rng(2)
    for size in [4, 8, 32]:
        q, k = rng.standard_normal((2, 9, size))
        a, b = rng.standard_normal((2, size))
        score = rotated(q + a, size) @ rotated(k + b, size).T
        yield {"size": size, "q": q.tolist(), "k": k.tolist(), "a": a.tolist(), "b": b.tolist(), "score": score.tolist()}


def linear_attention():
    """Equation 19 of RoFormer with sums of outer products, as linear attention is computed."""
    rng = np.random.default_rng(3)
    for size, causal in [(4, True), (8, True), (8, False), (32, True)]:
        q, k = rng.standard_normal((2, 7, size))
        v = rng.standard_normal((7, 3))
        phi = lambda x: torch.nn.functional.elu(torch.tensor(x)).numpy() + 1
        outer = np.einsum("nc,nv->ncv", rotated(phi(k), size), v)
        keys = phi(k)
        outer = np.cumsum(outer, 0) if causal else np.broadcast_to(outer.sum(0), outer.shape)
        keys = np.cumsum(keys, 0) if causal else np.broadcast_to(keys.sum(0), keys.shape)
        out = np.einsum("mc,mcv->mv", rotated(phi(q), size), outer) / (phi(q) * keys).sum(1, keepdims=True)
        yield {"size": size, "causal": causal, "q": q.tolist(), "k": k.tolist(), "v": v.tolist(), "out": out.tolist()}


def main():
    parts = [alibi, t5, kerple, sandwich, xpos, sinusoidal, learned, rotation2d, rope_bias, linear_attention]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "encodings.json"), "w") as f:
        f.write("{\n")
        f.write(",\n".join(f'"{part.__name__}": [\n' + ",\n".join(json.dumps(case, separators=(",", ":")) for case in part()) + "\n]" for part in parts))
        f.write("\n}\n")


if __name__ == "__main__":
    main()
