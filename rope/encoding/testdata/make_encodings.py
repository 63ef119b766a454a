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


def main():
    parts = [alibi, t5, kerple, sandwich, xpos, sinusoidal]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "encodings.json"), "w") as f:
        f.write("{\n")
        f.write(",\n".join(f'"{part.__name__}": [\n' + ",\n".join(json.dumps(case, separators=(",", ":")) for case in part()) + "\n]" for part in parts))
        f.write("\n}\n")


if __name__ == "__main__":
    main()
