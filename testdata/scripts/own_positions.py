"""Make small exports that compute the positions of tokens themselves, and what they must give; needs torch 2.11 and transformers 5.17.

    own_positions.py TESTDATA

Writes to TESTDATA/models, each with golden.npz:

    llama__dynamo18-counted     torch.export with a cache: a cumulative sum of the padding mask, minus 1, and 1 where padded
    llama__ts17-counted         TorchScript without a cache: the same sum times the mask, and 4 more
    llama__dynamo18-from-end    torch.export without a cache: indices minus the length of the call, all below 0

golden.npz has ids and mask [2, 40], the second row padded on the left, and logits of transformers in float64, which is
given the positions: plain, under linear with factor 2 (linear2) and under yarn with factor 4 and 16 original positions (yarn4).
"""
import os
import sys

import numpy as np
import onnx
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.cache_utils import DynamicCache, DynamicLayer

import small

LAYERS, VOCABULARY = 2, 32
METHODS = {"plain": {}, "linear2": dict(rope_type="linear", factor=2.0), "yarn4": dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16)}


def model(**rope):
    torch.manual_seed(0)
    config = LlamaConfig(hidden_size=16, intermediate_size=24, num_hidden_layers=LAYERS, num_attention_heads=2, num_key_value_heads=1,
                         vocab_size=VOCABULARY, max_position_embeddings=64, attn_implementation="sdpa",
                         rope_parameters=dict(rope_theta=10000.0, rope_type="default") | rope)
    m = LlamaForCausalLM(config).float().eval()
    small.randomise(m)
    return m


def bare(m):
    """Without the traces of the export, which are most of the file."""
    for item in [m.graph, *m.graph.node, *m.graph.value_info, *m.graph.input, *m.graph.output, *m.graph.initializer]:
        item.doc_string = ""
        del item.metadata_props[:]
    return m


def counted(mask):
    return (mask.cumsum(-1) - 1).masked_fill(mask == 0, 1)


def counted_from_4(mask):
    return mask.cumsum(-1) * mask + 4


def from_end(mask):
    length = mask.shape[1]
    return (torch.arange(length, device=mask.device) - length)[None, :]


class Counted(torch.nn.Module):
    """With a cache: past keys and values in, present ones out."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, past_key_values):
        cache = DynamicCache()
        for key, value in past_key_values:
            layer = DynamicLayer()
            layer.dtype, layer.device = key.dtype, key.device
            layer.keys, layer.values, layer.is_initialized = key, value, True
            cache.layers.append(layer)
        past = past_key_values[0][0].shape[2]
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, position_ids=counted(attention_mask)[:, past:],
                         past_key_values=cache, use_cache=True)
        return (out.logits, *[t for layer in out.past_key_values.layers for t in (layer.keys, layer.values)])


class WithoutCache(torch.nn.Module):
    def __init__(self, model, positions):
        super().__init__()
        self.model, self.positions = model, positions

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask, position_ids=self.positions(attention_mask), use_cache=False).logits


def with_cache(path):
    batch, length, past = 3, 7, 5
    cache = [tuple(torch.randn(batch, 1, past, 8) for _ in "kv") for _ in range(LAYERS)]
    parts = [(i, t) for i in range(LAYERS) for t in ("key", "value")]
    program = torch.onnx.export(
        Counted(model()), (torch.randint(0, VOCABULARY, (batch, length)), torch.ones(batch, past + length, dtype=torch.int64), cache),
        dynamo=True, opset_version=18, verbose=False, report=False,
        dynamic_shapes=({0: "batch", 1: "sequence"}, {0: "batch", 1: "total_sequence"}, [({0: "batch", 2: "past_sequence"},) * 2] * LAYERS),
        input_names=["input_ids", "attention_mask"] + [f"past_key_values.{i}.{t}" for i, t in parts],
        output_names=["logits"] + [f"present.{i}.{t}" for i, t in parts])
    program.save(path, external_data=False)


def without_cache(path, route, positions):
    names, axes = ["input_ids", "attention_mask"], {0: "batch", 1: "sequence"}
    arguments = (torch.randint(0, VOCABULARY, (3, 7)), torch.ones(3, 7, dtype=torch.int64))
    module = WithoutCache(model(), positions).eval()
    if route == "ts17":
        torch.onnx.export(module, arguments, path, dynamo=False, opset_version=17, input_names=names, output_names=["logits"],
                          dynamic_axes={k: axes for k in names + ["logits"]})
    else:
        program = torch.onnx.export(module, arguments, dynamo=True, opset_version=18, dynamic_shapes=(axes, axes), verbose=False,
                                    report=False, input_names=names, output_names=["logits"])
        program.save(path, external_data=False)


if __name__ == "__main__":
    ids = torch.randint(1, VOCABULARY, (2, 40), generator=torch.Generator().manual_seed(5))
    mask = torch.ones_like(ids)
    mask[1, :11] = 0
    for route, positions in {"dynamo18-counted": counted, "ts17-counted": counted_from_4, "dynamo18-from-end": from_end}.items():
        folder = os.path.join(sys.argv[1], "models", "llama__" + route)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "model.onnx")
        with torch.no_grad():
            if route == "dynamo18-counted":
                with_cache(path)
            else:
                without_cache(path, route.split("-")[0], positions)
            goldens = {name: model(**rope).double()(input_ids=ids, attention_mask=mask, position_ids=positions(mask)).logits.float().numpy()
                       for name, rope in METHODS.items()}
        onnx.save(bare(onnx.load(path)), path)
        np.savez_compressed(os.path.join(folder, "golden.npz"), ids=ids.numpy(), mask=mask.numpy(), **goldens)
        seen = mask.bool().numpy()
        print("wrote", folder, {name: float(np.abs(x - goldens["plain"])[seen].max()) for name, x in goldens.items()})
