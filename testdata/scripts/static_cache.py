"""Make a small export with a cache of fixed size, and what it must give; needs torch 2.11 and transformers 5.17.

    static_cache.py TESTDATA

Writes TESTDATA/models/llama__ts17-static-cache: model.onnx as TorchScript exports transformers' StaticCache (new keys
are scattered into buffers of 24 tokens at cache_position), and golden.npz: logits of one pass over ids [2, 9] without a
cache, as the model is (plain) and under transformers' yarn with factor 4 and 16 original positions (yarn4).
"""
import os
import sys

import numpy as np
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
        cache = StaticCache(config=self.model.config, max_cache_len=CAPACITY)
        layer = cache.layers[0]
        layer.dtype, layer.device, layer.is_initialized = past_key.dtype, past_key.device, True
        layer.keys, layer.values, layer.max_batch_size = past_key.clone(), past_value.clone(), past_key.shape[0]
        layer.cumulative_length = cache_position[0:1].clone()
        out = self.model(input_ids=input_ids, position_ids=cache_position[None], past_key_values=cache, use_cache=True)
        return out.logits, layer.keys, layer.values


if __name__ == "__main__":
    folder = os.path.join(sys.argv[1], "models", "llama__ts17-static-cache")
    os.makedirs(folder, exist_ok=True)
    names = ["input_ids", "cache_position", "past_key", "past_value"]
    past = torch.zeros(2, 1, CAPACITY, 8)
    with torch.no_grad():
        torch.onnx.export(WithStaticCache(model()), (torch.randint(0, 32, (2, 3)), torch.arange(4, 7), past, past),
                          os.path.join(folder, "model.onnx"), dynamo=False, opset_version=17, input_names=names,
                          output_names=["logits", "present_key", "present_value"],
                          dynamic_axes={"input_ids": {0: "batch", 1: "length"}, "cache_position": {0: "length"},
                                        "past_key": {0: "batch"}, "past_value": {0: "batch"}})
        ids = torch.randint(0, 32, (2, 9), generator=torch.Generator().manual_seed(5))
        goldens = {"ids": ids.numpy(), "plain": model()(input_ids=ids).logits.numpy(),
                   "yarn4": model(rope_type="yarn", factor=4.0, original_max_position_embeddings=16)(input_ids=ids).logits.numpy()}
    np.savez(os.path.join(folder, "golden.npz"), **goldens)
    print("wrote", folder, "yarn4 is", np.abs(goldens["yarn4"] - goldens["plain"]).max(), "from plain")
