"""Export the small models by torch.onnx.export(dynamo=True), with a key-value cache.

    export_dynamo.py OUT [ARCHITECTURE ...] [--attention sdpa|eager] [--opset 18|23] [--half]

Writes OUT/models/ARCHITECTURE__dynamoOPSET[-eager][-fp16]/{model.onnx,config.json}. From opset 23 on, attention and
rotation become ONNX's Attention and RotaryEmbedding. --half rounds the weights to float16, then the type of everything.
"""
import argparse
import os

import onnx
import torch
from transformers.cache_utils import DynamicCache, DynamicLayer

import small


class WithCache(torch.nn.Module):
    """The model as a function of tensors only, past keys and values in, present ones out."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, position_ids, past_key_values):
        cache = DynamicCache()
        for key, value in past_key_values:
            layer = DynamicLayer()
            layer.dtype, layer.device = key.dtype, key.device
            layer.keys, layer.values, layer.is_initialized = key, value, True
            cache.layers.append(layer)
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids,
                         past_key_values=cache, use_cache=True)
        return (out.logits, *[t for layer in out.past_key_values.layers for t in (layer.keys, layer.values)])


def without_metadata(model):
    """Drop stack traces and the like (nine tenths of the file, full of local paths); keep the namespaces."""
    def clean(item):
        kept = [(p.key, p.value) for p in getattr(item, "metadata_props", []) if p.key == "namespace"]
        if hasattr(item, "metadata_props"):
            del item.metadata_props[:]
            for key, value in kept:
                item.metadata_props.add(key=key, value=value)
        item.doc_string = ""

    def graph(g):
        clean(g)
        for item in [*g.node, *g.initializer, *g.value_info, *g.input, *g.output]:
            clean(item)
        for node in g.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    graph(attribute.g)

    graph(model.graph)
    for function in model.functions:
        for node in function.node:
            clean(node)
    return model


def export(name, out, attention, opset, half):
    model = small.model(name, out, attention)
    if half:
        model = model.half()
    cfg = model.config
    layers = cfg.num_hidden_layers
    kv_heads = getattr(cfg, "num_key_value_heads", None) or cfg.num_attention_heads
    head_size = getattr(cfg, "head_dim", None) or cfg.hidden_size // cfg.num_attention_heads
    batch, length, past = 3, 7, 5
    generator = torch.Generator().manual_seed(3)
    cache = [tuple(torch.randn(batch, kv_heads, past, head_size, generator=generator).to(model.dtype) for _ in "kv") for _ in range(layers)]
    args = (torch.randint(4, 128, (batch, length), generator=generator), torch.ones(batch, past + length, dtype=torch.int64),
            torch.arange(past, past + length).expand(batch, length).contiguous(), cache)
    axes = ({0: "batch", 1: "sequence"}, {0: "batch", 1: "total_sequence"}, {0: "batch", 1: "sequence"},
            [({0: "batch", 2: "past_sequence"},) * 2 for _ in range(layers)])
    parts = [(i, t) for i in range(layers) for t in ("key", "value")]
    with torch.no_grad():
        program = torch.onnx.export(
            WithCache(model).eval(), args, dynamo=True, opset_version=opset, dynamic_shapes=axes, verbose=False, report=False,
            input_names=["input_ids", "attention_mask", "position_ids"] + [f"past_key_values.{i}.{t}" for i, t in parts],
            output_names=["logits"] + [f"present.{i}.{t}" for i, t in parts])
    folder = os.path.join(out, "models", f"{name}__dynamo{opset}" + ("-eager" if attention == "eager" else "") + ("-fp16" if half else ""))
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "model.onnx")
    program.save(path, external_data=False)
    onnx.save(without_metadata(onnx.load(path)), path)
    cfg.save_pretrained(folder)
    print("wrote", path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("architectures", nargs="*", default=list(small.ARCHITECTURES))
    parser.add_argument("--attention", default="sdpa", choices=["sdpa", "eager"])
    parser.add_argument("--opset", default=18, type=int)
    parser.add_argument("--half", action="store_true")
    a = parser.parse_args()
    for name in a.architectures or small.ARCHITECTURES:
        export(name, a.out, a.attention, a.opset, a.half)
