"""Make small exports with caches of fixed size, and what they must give; needs torch 2.11 and transformers 5.17.

    static_cache.py TESTDATA

Writes TESTDATA/models/llama__ts17-static-cache: model.onnx as TorchScript exports transformers' StaticCache (new keys
are scattered into buffers of 24 tokens at cache_position), and golden.npz: logits of one pass over ids [2, 9] without a
cache, as the model is (plain) and under transformers' yarn with factor 4 and 16 original positions (yarn4). Writes the same of torch.export to
TESTDATA/models/llama__dynamo18-static-cache, whose buffers may have any number of rows.
"""
import os
import sys

import numpy as np
import onnx
import torch
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

CAPACITY = 24


def model(**rope):
    torch.manual_seed(0)
    config = LlamaConfig(hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
                         vocab_size=32, max_position_embeddings=64, attn_implementation="sdpa", initializer_range=0.4,
                         rope_parameters=dict(rope_theta=10000.0, rope_type="default") | rope)
    return LlamaForCausalLM(config).eval()


class WithStaticCache(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, cache_position, past_key, past_value):
        cache = StaticCache(config=self.model.config, max_cache_len=past_key.shape[2])
        layer = cache.layers[0]
        layer.dtype, layer.device, layer.is_initialized = past_key.dtype, past_key.device, True
        layer.keys, layer.values, layer.max_batch_size = past_key.clone(), past_value.clone(), past_key.shape[0]
        layer.cumulative_length = cache_position[0:1].clone()
        out = self.model(input_ids=input_ids, position_ids=cache_position[None], past_key_values=cache, use_cache=True)
        return out.logits, layer.keys, layer.values


NAMES = ["input_ids", "cache_position", "past_key", "past_value"]
RESULTS = ["logits", "present_key", "present_value"]


def torchscript(module, arguments, path):
    torch.onnx.export(module, arguments, path, dynamo=False, opset_version=17, input_names=NAMES, output_names=RESULTS,
                      dynamic_axes={"input_ids": {0: "batch", 1: "length"}, "cache_position": {0: "length"},
                                    "past_key": {0: "batch"}, "past_value": {0: "batch"}})


def dynamo(module, arguments, path):
    cache = {0: "batch", 2: "capacity"}
    program = torch.onnx.export(module, arguments, dynamo=True, opset_version=18, input_names=NAMES, output_names=RESULTS, verbose=False,
                                report=False, dynamic_shapes=({0: "batch", 1: "length"}, {0: "length"}, cache, cache))
    program.save(path, external_data=False)
    m = onnx.load(path)
    for item in [m.graph, *m.graph.node, *m.graph.value_info, *m.graph.input, *m.graph.output, *m.graph.initializer]:
        item.doc_string = ""
        del item.metadata_props[:]
    onnx.save(m, path)


if __name__ == "__main__":
    with torch.no_grad():
        ids = torch.randint(0, 32, (2, 9), generator=torch.Generator().manual_seed(5))
        goldens = {"ids": ids.numpy(), "plain": model()(input_ids=ids).logits.numpy(),
                   "yarn4": model(rope_type="yarn", factor=4.0, original_max_position_embeddings=16)(input_ids=ids).logits.numpy()}
        for route, export in {"ts17": torchscript, "dynamo18": dynamo}.items():
            folder = os.path.join(sys.argv[1], "models", f"llama__{route}-static-cache")
            os.makedirs(folder, exist_ok=True)
            past = [torch.zeros(2, 1, CAPACITY, 8) for _ in range(2)]  # two: torch.export takes one tensor for one input
            export(WithStaticCache(model()), (torch.randint(0, 32, (2, 3)), torch.arange(4, 7), *past), os.path.join(folder, "model.onnx"))
            np.savez(os.path.join(folder, "golden.npz"), **goldens)
            print("wrote", folder)
    print("yarn4 is", np.abs(goldens["yarn4"] - goldens["plain"]).max(), "from plain")
