"""Export a small model for one batch, one length and one past alone, positions as an input.

    export_fixed.py OUT

Writes OUT/models/llama__ts17-fixed: the TorchScript exporter at opset 17, batch 2, 8 new tokens behind 24 cached ones.
Every size is a number in its graph, and the frequencies stand there once for each row of the batch.
"""
import os
import sys

import onnx
import torch

import small
from export_dynamo import WithCache, without_metadata

BATCH, LENGTH, PAST = 2, 8, 24

if __name__ == "__main__":
    model = small.model("llama", sys.argv[1])
    cfg = model.config
    parts = [f"{i}.{t}" for i in range(cfg.num_hidden_layers) for t in ("key", "value")]
    cache = [tuple(torch.zeros(BATCH, cfg.num_key_value_heads, PAST, cfg.head_dim) for _ in "kv") for _ in range(cfg.num_hidden_layers)]
    positions = torch.arange(PAST, PAST + LENGTH).expand(BATCH, LENGTH).contiguous()
    args = (torch.zeros(BATCH, LENGTH, dtype=torch.int64), torch.ones(BATCH, PAST + LENGTH, dtype=torch.int64), positions, cache)
    folder = os.path.join(sys.argv[1], "models", "llama__ts17-fixed")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "model.onnx")
    with torch.no_grad():
        torch.onnx.export(WithCache(model).eval(), args, path, dynamo=False, opset_version=17,
                          input_names=["input_ids", "attention_mask", "position_ids"] + ["past_key_values." + p for p in parts],
                          output_names=["logits"] + ["present." + p for p in parts])
    onnx.save(without_metadata(onnx.load(path)), path)
    cfg.save_pretrained(folder)
    print("wrote", path)
