"""Writes hf.json: what transformers computes, for the tests of package rope.

Needs torch and transformers (written with 2.11.0 and 5.17.0); only this script does.

    python make_hf.py

cases      inv_freq and attention_scaling of transformers' rope functions
by_length  the same of those that depend on the length of the context
attention  outputs of transformers' llama rotary embedding and of the eager attention of llama,
           gemma2 (softcap) and gpt_oss (sinks), under masks of transformers.masking_utils
"""

import json
import os

import torch
import transformers
from transformers import LlamaConfig, masking_utils
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.gemma2 import modeling_gemma2 as gemma2
from transformers.models.gpt_oss import modeling_gpt_oss as gpt_oss
from transformers.models.llama import modeling_llama as llama


def floats(tensor):
    """Shortest decimals that read back as the same float32 numbers."""
    return [float(str(x)) for x in tensor.to(torch.float32).flatten().numpy()]


def config(head_dim, parameters, context, heads=4, kv_heads=2):
    return LlamaConfig(
        hidden_size=heads * head_dim, num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=head_dim,
        max_position_embeddings=context, rope_parameters=dict(parameters), attn_implementation="eager",
    )


def frequencies(head_dim, parameters, context, length=None):
    c = config(head_dim, parameters, context)
    if parameters["rope_type"] == "default":  # the llama class has no partial rotation: give the rotated width
        dim = int(head_dim * parameters.get("partial_rotary_factor", 1.0))
        plain = {k: v for k, v in parameters.items() if k != "partial_rotary_factor"}
        return llama.LlamaRotaryEmbedding.compute_default_rope_parameters(config(dim, plain, context))
    return ROPE_INIT_FUNCTIONS[parameters["rope_type"]](c, "cpu", seq_len=length)


def case(head_dim, theta, partial=None, context=8192, length=None, **parameters):
    common = {"rope_theta": theta}
    if partial is not None:
        common["partial_rotary_factor"] = partial
    full = {**parameters, **common}
    base, _ = frequencies(head_dim, {"rope_type": "default", **common}, context)
    inv_freq, scaling = frequencies(head_dim, full, context, length)
    out = {
        "head_dim": head_dim, "rope_parameters": full,
        "default_inv_freq": floats(base), "inv_freq": floats(inv_freq), "attention_scaling": float(scaling),
    }
    return out if length is None else {**out, "context": context, "length": length}


SHAPES = [
    (64, 10000.0, None), (64, 100000.0, None), (80, 10000.0, 0.4), (80, 10000.0, None), (96, 10000.0, None),
    (96, 10000.0, 0.75), (128, 500000.0, None), (128, 1000000.0, 0.5), (16, 10000.0, None), (256, 10000.0, 0.25),
]


def cases():
    for head_dim, theta, partial in SHAPES:
        yield case(head_dim, theta, partial, rope_type="default")
        for factor in (1.0, 2.0, 8.0, 3.7):
            yield case(head_dim, theta, partial, rope_type="linear", factor=factor)
        for factor in (1.0, 1.5, 4.0, 32.0, 64.0):
            for original in (2048, 8192):
                yield case(head_dim, theta, partial, rope_type="yarn", factor=factor, original_max_position_embeddings=original)
        for factor, original, low, high in ((8.0, 8192, 1.0, 4.0), (32.0, 8192, 1.0, 4.0), (4.0, 512, 2.0, 3.0)):
            yield case(head_dim, theta, partial, rope_type="llama3", factor=factor, low_freq_factor=low, high_freq_factor=high,
                       original_max_position_embeddings=original)
        four = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=4096)
        yield case(head_dim, theta, partial, **four, truncate=False)
        yield case(head_dim, theta, partial, **four, attention_factor=1.25)
        yield case(head_dim, theta, partial, **four, mscale=0.707, mscale_all_dim=1.0)
        yield case(head_dim, theta, partial, **four, mscale=1.0)
        yield case(head_dim, theta, partial, **four, mscale=1.0, mscale_all_dim=0.0)
        yield case(head_dim, theta, partial, **four, beta_fast=64.0, beta_slow=2.0, truncate=False)
        yield case(head_dim, theta, partial, **four, beta_fast=1.0, beta_slow=1.0)
    for theta in (50000000.0, 1234.5, 2.0, 10000.0 * 4.0 ** (64 / 62)):
        yield case(64, theta, rope_type="default")
    yield case(16, 10000.0, rope_type="yarn", factor=4.0, original_max_position_embeddings=16)
    for theta, original in ((10000.0, 4), (10000.0, 6), (10000.0, 7), (10.0, 2048), (2.0, 8192)):  # ramps that end outside the pairs
        yield case(64, theta, rope_type="yarn", factor=4.0, original_max_position_embeddings=original)
    yield case(64, 10000.0, rope_type="yarn", factor=40.0, original_max_position_embeddings=4096,
               mscale=1.0, mscale_all_dim=1.0, beta_fast=32, beta_slow=1)


DOCUMENTS = [[1] * 4 + [2] * 5 + [3] * 4, [1] * 7 + [3] * 2 + [2] * 4]


def by_length():
    for head_dim, theta, partial in SHAPES:
        pairs = int(head_dim * (partial or 1.0)) // 2
        for length in (1000, 2048, 2049, 5000, 131072):
            for factor in (1.0, 2.0, 8.0):
                yield case(head_dim, theta, partial, context=2048, length=length, rope_type="dynamic", factor=factor)
            longrope = dict(
                rope_type="longrope", original_max_position_embeddings=2048,
                short_factor=[1 + i / 64 for i in range(pairs)], long_factor=[1 + i * i / 8 for i in range(pairs)])
            yield case(head_dim, theta, partial, context=131072, length=length, factor=64.0, **longrope)
            yield case(head_dim, theta, partial, context=131072, length=length, attention_factor=1.25, **longrope)


def attention(name, parameters, length, past=0, padding=0, start=0, softcap=None, bias=False, sinks=False, window=0, documents=None, restart=False):
    """Eager attention on random q, k, v; past keys are rotated as the model's cache holds them."""
    torch.manual_seed(len(name))
    batch, heads, kv_heads, head_dim = 2, 4, 2, 16
    c = config(head_dim, parameters, 64, heads, kv_heads)
    rotary = llama.LlamaRotaryEmbedding(c)
    total = past + length
    query = torch.randn(batch, heads, total, head_dim)
    key, value = torch.randn(batch, kv_heads, total, head_dim), torch.randn(batch, kv_heads, total, head_dim)
    real = torch.ones(batch, total, dtype=torch.bool)
    real[1, :padding] = False
    positions = (real.long().cumsum(-1) - 1).clamp(min=0) + start
    ids = torch.tensor(DOCUMENTS) if documents else torch.zeros(batch, total, dtype=torch.long)
    if restart:
        positions = torch.tensor([[int((row[:i] == row[i]).sum()) for i in range(total)] for row in ids])
    cos, sin = rotary(value, positions)
    rotated_query, rotated_key = llama.apply_rotary_pos_emb(query, key, cos, sin)
    rule = masking_utils.sliding_window_causal_mask_function(window) if window else masking_utils.causal_mask_function
    rule = masking_utils.and_masks(rule, masking_utils.packed_sequence_mask_function(ids))
    row, index = torch.arange(batch), torch.arange(total)
    visible = rule(row[:, None, None], row[:1], index[:, None], index) & real[:, None, :]
    mask = torch.where(visible, 0.0, torch.finfo(torch.float32).min)[:, None]
    added = torch.randn(batch, heads, total, total) if bias else None
    if bias:
        mask = torch.where(visible[:, None], added, mask)

    class Module:
        num_key_value_groups = heads // kv_heads
        training = False

    Module.sinks = torch.randn(heads) if sinks else None
    eager = gpt_oss if sinks else gemma2 if softcap else llama
    output, _ = eager.eager_attention_forward(
        Module(), rotated_query[:, :, past:], rotated_key, value, mask[:, :, past:], scaling=head_dim**-0.5, softcap=softcap)
    modified = {"softcap": softcap, "window": window, "restart": restart}
    if bias:
        modified["bias"] = floats(added[:, :, past:])
    if sinks:
        modified["sinks"] = floats(Module.sinks)
    if documents:
        modified["documents"] = ids.flatten().tolist()
    return {
        "name": name, **{k: v for k, v in modified.items() if v}, "rope_parameters": parameters, "default_inv_freq": floats(frequencies(head_dim, {"rope_type": "default", "rope_theta": parameters["rope_theta"]}, 64)[0]),
        "batch": batch, "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "length": length, "past": past,
        "query": floats(query[:, :, past:]), "key": floats(key[:, :, past:]), "value": floats(value[:, :, past:]),
        "past_key": floats(rotated_key[:, :, :past]), "past_value": floats(value[:, :, :past]),
        "positions": positions[:, past:].flatten().tolist(), "key_mask": real.flatten().tolist(),
        "present_key": floats(rotated_key), "output": floats(output.transpose(1, 2)),
    }


def main():
    torch.set_num_threads(1)
    plain = {"rope_type": "default", "rope_theta": 10000.0}
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 10000.0}
    linear = {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}
    out = {
        "made_with": {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__},
        "cases": list(cases()),
        "by_length": list(by_length()),
        "attention": [
            attention("plain prefill", plain, 13),
            attention("plain prefill, left padding", plain, 13, padding=5),
            attention("plain decode", plain, 1, past=12),
            attention("plain prefill far out", plain, 13, start=131000),
            attention("yarn chunk, left padding", yarn, 4, past=9, padding=3),
            attention("linear prefill", linear, 13),
            attention("gemma2's softcap", plain, 13, padding=3, softcap=1.5),
            attention("gemma2's softcap and a bias after it, decode", plain, 2, past=11, softcap=1.5, bias=True),
            attention("gpt_oss's sinks", plain, 13, padding=2, sinks=True),
            attention("gpt_oss's sinks and window, decode", plain, 1, past=12, sinks=True, window=5),
            attention("documents", plain, 13, documents=True),
            attention("documents, chunk", plain, 5, past=8, documents=True),
            attention("documents with positions of their own", plain, 13, documents=True, restart=True),
            attention("documents with positions of their own, decode", plain, 1, past=12, documents=True, restart=True),
        ],
    }
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "hf.json"), "w") as f:
        f.write("{\n")
        f.write('"made_with": ' + json.dumps(out["made_with"]))
        for key in ("cases", "by_length", "attention"):
            f.write(f',\n"{key}": [\n' + ",\n".join(json.dumps(x) for x in out[key]) + "\n]")
        f.write("\n}\n")


main()
