"""Writes drift.json: what NumPy measures, for the tests of package drift.

    python make_drift.py

The formulas are those of Wang et al. (arXiv:2411.13476), section 3, with products added up in
float32, channel after channel. Numbers of query and key are given as float32.
"""

import json
import os

import numpy as np

HEADS, KV_HEADS, LENGTH, SIZE, ROTARY = 4, 2, 12, 16, 8
FREQUENCIES = 10000.0 ** (-np.arange(ROTARY // 2) / (ROTARY // 2))


def bfloat16(x):
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def turn(x, positions, wide):
    """Rotates [heads, length, size]; half layout, the channels behind ROTARY stay."""
    angle = positions[:, None].astype(np.float64) * FREQUENCIES
    if wide:
        cos, sin = np.cos(angle), np.sin(angle)
        x = x.astype(np.float64)
    else:
        angle = angle.astype(np.float32).astype(np.float64)
        cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    a, b = x[..., : ROTARY // 2], x[..., ROTARY // 2 : ROTARY]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., ROTARY:]], -1)


def products(a, b):
    """a bᵀ, added up channel by channel in the type of a and b."""
    out = np.zeros((a.shape[0], a.shape[1], b.shape[1]), a.dtype)
    for c in range(a.shape[2]):
        out = out + a[:, :, None, c] * b[:, None, :, c]
    return out


def scores(query, key, positions, arithmetic):
    wide = arithmetic == "float64"
    q = turn(query, positions, wide)
    k = np.repeat(turn(key, positions, wide), HEADS // KV_HEADS, 0)
    if arithmetic == "bfloat16":
        q, k = bfloat16(q), bfloat16(k)
    if arithmetic == "float16":
        q, k = q.astype(np.float16).astype(np.float32), k.astype(np.float16).astype(np.float32)
    if arithmetic == "split":
        qh, kh = bfloat16(q), bfloat16(k)
        ql, kl = bfloat16(q - qh), bfloat16(k - kh)
        return (products(qh, kh) + products(qh, kl) + products(ql, kh)).astype(np.float64)
    return products(q, k).astype(np.float64)


def weights(a, window):
    i, j = np.arange(LENGTH)[:, None], np.arange(LENGTH)
    seen = (j <= i) & ((i - j < window) | (window == 0))
    s = np.where(seen, a / np.sqrt(SIZE), -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def drift(a, b, window):
    columns = np.abs(weights(a, window) - weights(b, window)).sum(1)  # [heads, keys]
    d = (columns / (LENGTH - np.arange(LENGTH))).sum()
    return d, np.abs(a[:, :, 0] - b[:, :, 0]).sum() / LENGTH


rng = np.random.default_rng(1)
query = rng.standard_normal((HEADS, LENGTH, SIZE)).astype(np.float32)
key = (2 * rng.standard_normal((KV_HEADS, LENGTH, SIZE))).astype(np.float32)
cases = []
for window in (0, 5):
    for arithmetic in ("float64", "float32", "bfloat16", "float16", "split"):
        still = scores(query, key, np.arange(LENGTH), arithmetic)
        for shift in (1, 16, 1024):
            d, first = drift(still, scores(query, key, np.arange(LENGTH) + shift, arithmetic), window)
            cases.append({"window": window, "arithmetic": arithmetic, "shift": shift, "weights": d, "first_key": first})
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "drift.json"), "w") as f:
    json.dump({
        "heads": HEADS, "kv_heads": KV_HEADS, "length": LENGTH, "size": SIZE, "inv_freq": FREQUENCIES.tolist(),
        "query": [float(str(x)) for x in query.flatten()], "key": [float(str(x)) for x in key.flatten()], "cases": cases,
    }, f, indent=0)
    f.write("\n")
