"""Writes distances.json: attention with a bias by distance, in float64, for the tests of package rope/ref.

Needs torch, transformers and numpy (written with 2.11.0, 5.17.0 and 2.4.6).

    python make_distances.py

ALiBi's outputs are computed in NumPy, since transformers' softmax has float32. The attention layers of BLOOM, whose
distances count the tokens that the padding mask shows, and of MPT, which counts indices, must agree with them in
float32; transformers has no encoder with ALiBi. T5's outputs are those of transformers' own layer in float64. The
queries are the last ones of the text: past of the keys come from a cache.
"""

import json
import os

import numpy as np
import torch
from transformers import BloomConfig, MptConfig, T5Config
from transformers.cache_utils import DynamicCache, DynamicLayer
from transformers.models.bloom import modeling_bloom
from transformers.models.mpt import modeling_mpt
from transformers.models.t5 import modeling_t5

SIZE, BATCH = 4, 2
LIMIT = 2e-6  # of a float32 layer


class Part(torch.nn.Module):
    """In the place of a projection: a part of the hidden states."""

    def __init__(self, start, stop):
        super().__init__()
        self.start, self.stop = start, stop

    def forward(self, x):
        return x[..., self.start:self.stop]


def joined(x):
    """[batch, heads, tokens, size] as hidden states [batch, tokens, heads · size]."""
    return x.transpose(1, 2).flatten(2)


def cache(k, v):
    layer, out = DynamicLayer(), DynamicCache()
    layer.dtype, layer.device, layer.keys, layer.values, layer.is_initialized = k.dtype, k.device, k, v, True
    out.layers.append(layer)
    return out


def bloom(q, k, v, real, visible, past):
    heads = q.shape[1]
    layer = modeling_bloom.BloomAttention(BloomConfig(hidden_size=heads * SIZE, n_head=heads), 0).eval()
    layer.query_key_value = layer.dense = torch.nn.Identity()
    hidden = torch.stack([q, k[:, :, past:], v[:, :, past:]], 3).transpose(1, 2).flatten(2)  # [batch, tokens, heads · 3 · size]
    mask = torch.zeros(visible.shape).masked_fill(~visible, torch.finfo(torch.float32).min)[:, None]
    alibi = modeling_bloom.build_alibi_tensor(real.long(), heads, torch.float32)
    return layer(hidden, torch.zeros(1), alibi, mask, layer_past=cache(k[:, :, :past], v[:, :, :past]))[0]


def mpt(q, k, v, real, visible, past):
    heads = q.shape[1]
    layer = modeling_mpt.MptAttention(MptConfig(d_model=heads * SIZE, n_heads=heads, max_seq_len=64), 0).eval()
    layer.Wqkv = layer.out_proj = torch.nn.Identity()
    hidden = torch.cat([joined(x) for x in (q, k[:, :, past:], v[:, :, past:])], -1)
    bias = modeling_mpt.build_mpt_alibi_tensor(heads, 64)
    return layer(hidden, bias, cache(k[:, :, :past], v[:, :, :past]), ~visible[:, None])[0]


def t5(q, k, v, learned, visible, past, causal, buckets, farthest):
    heads = q.shape[1]
    width = heads * SIZE
    config = T5Config(d_model=3 * width, d_kv=SIZE, num_heads=heads, relative_attention_num_buckets=buckets,
                      relative_attention_max_distance=farthest, is_decoder=causal)
    config._attn_implementation = "eager"
    layer = modeling_t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0, is_causal=causal).double().eval()
    layer.q, layer.k, layer.v, layer.o = Part(0, width), Part(width, 2 * width), Part(2 * width, 3 * width), torch.nn.Identity()
    layer.relative_attention_bias.weight.data = learned
    hidden = torch.cat([joined(x) for x in (q, k[:, :, past:], v[:, :, past:])], -1)
    mask = torch.zeros(visible.shape, dtype=torch.float64).masked_fill(~visible, torch.finfo(torch.float64).min)[:, None]
    return layer(hidden, mask=mask, past_key_values=cache(k[:, :, :past], v[:, :, :past]) if past else None)[0]


def slopes(heads):
    """Section 3 of the paper and its code: those of the next lower power of two, then every second of twice as many."""
    power = 2 ** int(np.log2(heads))
    own = [2.0 ** (-8 * (i + 1) / power) for i in range(power)]
    twice = [2.0 ** (-8 * (i + 1) / (2 * power)) for i in range(2 * power)]
    return np.array(own + twice[0::2][:heads - power])


def by_numpy(q, k, v, slope, counted, real, visible, past):
    """Softmax of q · k / √size − slope · distance over what is visible."""
    place = real.numpy().cumsum(-1) - 1 if counted else np.broadcast_to(np.arange(real.shape[1]), real.shape)
    distance = np.abs(place[:, past:, None] - place[:, None, :])
    scores = np.einsum("bhic,bhjc->bhij", q.numpy(), k.numpy()) / np.sqrt(SIZE) - slope[:, None, None] * distance[:, None]
    scores = np.where(visible.numpy()[:, None], scores, -np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
    return np.einsum("bhij,bhjc->bhic", weights, v.numpy())  # not a number where a query sees nothing


def case(model, name, length, past=0, padding=0, hole=(), heads=4, buckets=8, farthest=16):
    generator = torch.Generator().manual_seed(sum(map(ord, model + name)))
    total, causal = past + length, model not in ("t5 encoder", "alibi encoder")
    draw = lambda rows: torch.randn(BATCH, heads, rows, SIZE, generator=generator, dtype=torch.float64).mul(100).round() / 100
    q, k, v = draw(length), draw(total), draw(total)
    real = torch.ones(BATCH, total, dtype=torch.bool)
    real[1, :padding] = False
    real[:, list(hole)] = False
    index = torch.arange(total)
    visible = real[:, None, :] & ((index[past:, None] >= index) | (not causal))
    sees = visible.any(-1)  # [batch, query]
    out = dict(model=model, name=name, heads=heads, size=SIZE, batch=BATCH, length=length, past=past, causal=causal,
               query=q.flatten().tolist(), key=k.flatten().tolist(), value=v.flatten().tolist(), real=real.flatten().tolist())
    if model.startswith("t5"):
        learned = torch.randn(buckets, heads, generator=generator, dtype=torch.float64).mul(100).round() / 100
        got = t5(q, k, v, learned, visible, past, causal, buckets, farthest).reshape(BATCH, length, heads, SIZE).transpose(1, 2)
        distances = torch.arange(-total if not causal else 0, farthest + 1)
        bucket = modeling_t5.T5Attention._relative_position_bucket(-distances, not causal, buckets, farthest)
        first = torch.cat([torch.tensor([True]), bucket[1:] != bucket[:-1]])
        out.update(starts=distances[first].tolist(), biases=learned[bucket[first]].tolist())
    else:
        counted, slope = model == "bloom", slopes(heads)
        got = torch.tensor(by_numpy(q, k, v, slope, counted, real, visible, past))
        if causal:
            theirs = (bloom if counted else mpt)(q.float(), k.float(), v.float(), real, visible, past).reshape(BATCH, length, heads, SIZE).transpose(1, 2)
            apart = (theirs - got).abs()[sees[:, None, :, None].expand_as(got)].max().item()
            assert apart < LIMIT, (model, name, apart)
            print(f"{model}, {name}: transformers in float32 is {apart:.1g} off")
        out.update(slopes=slope.tolist(), shown=counted)
    got = torch.where(sees[:, None, :, None], got, 0.0)  # as the reference has queries that see nothing
    return {**out, "output": got.flatten().tolist()}


def cases():
    hole = (7, 8, 12)
    for model in ("bloom", "mpt", "t5 decoder"):
        yield case(model, "prefill", 17)
        yield case(model, "left padding", 15, padding=6)
        yield case(model, "hole", 17, hole=hole)
        yield case(model, "left padding and hole", 17, padding=4, hole=hole)
        yield case(model, "decode", 1, past=22)
        yield case(model, "decode, left padding and hole", 1, past=22, padding=5, hole=hole)
        yield case(model, "chunk, left padding and hole", 6, past=13, padding=5, hole=hole)
    for model in ("bloom", "mpt"):
        yield case(model, "six heads", 11, past=4, padding=3, heads=6)
    yield case("t5 decoder", "twelve buckets", 23, heads=3, buckets=12, farthest=20)
    yield case("alibi encoder", "left padding and hole", 17, padding=4, hole=hole)
    yield case("t5 encoder", "both ways", 21)
    yield case("t5 encoder", "left padding and hole", 21, padding=5, hole=hole)
    yield case("t5 encoder", "twelve buckets", 19, heads=3, buckets=12, farthest=13)


def main():
    with torch.no_grad():
        lines = [json.dumps(c, separators=(",", ":")) for c in cases()]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "distances.json"), "w") as f:
        f.write("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
