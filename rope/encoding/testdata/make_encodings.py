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


POSITIONS = [0, 1, 2, 5, 64, 129, 4095, 131071]  # of the tokens below
HEADS, SIZE, WIDTH = 2, 4, 2


def turned(x, angles):
    """Pairs of neighbouring channels [..., size] as complex numbers, turned by angles [..., pairs]."""
    z = np.asarray(x).reshape(*np.shape(x)[:-1], -1, 2)
    z = (z[..., 0] + 1j * z[..., 1]) * np.exp(1j * angles)
    return np.stack([z.real, z.imag], -1).reshape(np.shape(x))


def splitmix64(x):
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


def attended(q, k, v, bias=None, scale=None, decay=None):
    """Causal attention by PyTorch in float64: [heads, tokens, width]."""
    q, k, v = (torch.tensor(np.ascontiguousarray(x)) for x in (q, k, v))
    hidden = torch.ones(len(POSITIONS), len(POSITIONS), dtype=torch.bool).triu(1)
    mask = torch.zeros(HEADS, *hidden.shape, dtype=torch.float64) if bias is None else torch.tensor(np.array(bias, dtype=np.float64))
    mask = mask.masked_fill(hidden, float("-inf"))
    if decay is None:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale).tolist()
    scores = torch.einsum("hic,hjc,ijc->hij", q, k, torch.tensor(decay)) / SIZE**0.5  # a factor of each channel by distance
    return (torch.softmax(scores + mask, -1) @ v).tolist()


def attention():
    """A causal attention with each encoding of the package, as a whole."""
    rng = np.random.default_rng(4)
    draw = lambda *shape: rng.standard_normal(shape).round(3)
    q, k = draw(2, HEADS, len(POSITIONS), SIZE)
    v = draw(HEADS, len(POSITIONS), WIDTH)
    at = np.array(POSITIONS)
    d = at[:, None] - at
    omega = 10000 ** (-np.arange(0, SIZE, 2) / SIZE)

    def case(encoding, out, positions=POSITIONS, **more):
        """What the encoding alone needs stands in more."""
        return dict(encoding=encoding, positions=[int(p) for p in positions], q=q.tolist(), k=k.tolist(), v=v.tolist(), out=out, **more)

    yield case("none", attended(q, k, v))
    angles = at[:, None] * omega
    yield case("RoPE", attended(turned(q, angles), turned(k, angles), v))
    span, seed = 200000, 3
    drawn = sorted(sorted(range(span), key=lambda p: splitmix64((seed << 32) + p))[:len(POSITIONS)])
    angles = np.array(drawn)[:, None] * omega
    yield case("randomized positions", attended(turned(q, angles), turned(k, angles), v), drawn, range=span, seed=seed)
    rows, columns = at, at[::-1]
    angles = np.concatenate([rows[:, None] * omega[:1], columns[:, None] * omega[:1]], -1)  # half as many frequencies: the first is 1
    yield case("2-D rotation", attended(turned(q, angles), turned(k, angles), v), columns=columns.tolist())
    a, b = draw(2, SIZE)
    angles = at[:, None] * omega
    yield case("RoPE with bias", attended(turned(q + a, angles), turned(k + b, angles), v), a=a.tolist(), b=b.tolist())
    zeta = (np.arange(SIZE // 2) / (SIZE / 2) + 0.4) / 1.4
    seen = np.repeat(zeta ** (np.maximum(d, 0)[..., None] / 512), 2, -1)  # of the whole score, as a product of factors would not stay finite
    yield case("xPos", attended(turned(q, angles), turned(k, angles), v, decay=seen))
    phi = lambda x: torch.nn.functional.elu(torch.tensor(x)).numpy() + 1
    index = list(range(len(POSITIONS)))
    angles = np.array(index)[:, None] * omega
    outer = np.cumsum(np.einsum("hnc,hnv->hncv", turned(phi(k), angles), v), 1)
    total = (phi(q) * np.cumsum(phi(k), 1)).sum(-1, keepdims=True)
    yield case("linear attention with rotation", (np.einsum("hmc,hmcv->hmv", turned(phi(q), angles), outer) / total).tolist(), index)

    mask = torch.ones(1, POSITIONS[-1] + 1, dtype=torch.long)
    slopes = build_alibi_tensor(mask, HEADS, torch.float32)[:, 0, :].double().numpy()[:, at]  # slope · index of the key
    yield case("ALiBi", attended(q, k, v, bias=np.broadcast_to(slopes[:, None, :], (HEADS, *d.shape))))
    learned = draw(32, HEADS)
    buckets = T5Attention._relative_position_bucket(-torch.tensor(d), False, 32, 128).numpy()
    yield case("T5's buckets", attended(q, k, v, bias=learned[buckets].transpose(2, 0, 1), scale=1.0), learned=learned.tolist())
    r1, r2 = np.array([0.8, 1.7]), np.array([0.3, 1.2])
    far = np.abs(d)
    for name, term in (("KERPLE, logarithmic", -r1[:, None, None] * np.log(1 + r2[:, None, None] * far)), ("KERPLE, power", -r1[:, None, None] * far ** r2[:, None, None])):
        yield case(name, attended(q, k, v, bias=term / SIZE**0.5), r1=r1.tolist(), r2=r2.tolist())
    spread = 1 / 10000 ** (np.arange(0, 128, 2) / 128)
    table = np.concatenate([np.sin(at[:, None] * spread), np.cos(at[:, None] * spread)], -1)
    yield case("Sandwich", attended(q, k, v, bias=(table @ table.T) * (HEADS / (8 * np.arange(1, HEADS + 1)))[:, None, None]))

    # Added to embeddings [tokens, size], before projections of each head.
    x, weights = draw(len(POSITIONS), SIZE), draw(3, HEADS, SIZE, SIZE)
    angles = at[:, None] * omega
    table = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(len(POSITIONS), SIZE)
    yield case("sinusoidal", attended(*np.einsum("nc,shcd->shnd", x + table, weights)), x=x.tolist(), weights=weights.tolist())
    torch.manual_seed(5)
    layer = OPTLearnedPositionalEmbedding(len(POSITIONS), SIZE)
    rows = layer(torch.ones(1, len(index), dtype=torch.long), position_ids=torch.tensor([index]))[0].detach().double().numpy()
    yield case("learned absolute", attended(*np.einsum("nc,shcd->shnd", x + rows, weights)), index, x=x.tolist(), weights=weights.tolist(), table=layer.weight.tolist())


def main():
    parts = [alibi, t5, kerple, sandwich, xpos, sinusoidal, learned, rotation2d, rope_bias, linear_attention, attention]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "encodings.json"), "w") as f:
        f.write("{\n")
        f.write(",\n".join(f'"{part.__name__}": [\n' + ",\n".join(json.dumps(case, separators=(",", ":")) for case in part()) + "\n]" for part in parts))
        f.write("\n}\n")


if __name__ == "__main__":
    main()
