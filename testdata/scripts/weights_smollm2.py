"""Fills a model.onnx.data with the weights of a GGUF file.

    PYTHONPATH=BUILD/gguf weights_smollm2.py MODEL.gguf weights.json OUT

weights.json says what lies where: {"bytes": N, "tensors": [[offset, [names in the checkpoint], transposed], ...]}, several
names joined along the last axis. Everything is float32. scripts/fetch-python.sh gguf fetches what this imports;
go run ./cmd/dev/smollm2 fetch runs both. OUT appears whole or not at all.
"""
import json
import os
import re
import sys

import numpy as np
from gguf import GGUFReader, dequantize

# The part of a GGUF name behind blk.N. and the checkpoint's behind model.layers.N.
LAYER = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
}
WHOLE = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
HEADS = {"attn_q": "llama.attention.head_count", "attn_k": "llama.attention.head_count_kv"}


class Checkpoint:
    """Tensors by the names that Hugging Face's checkpoint has."""

    def __init__(self, path):
        self.reader = GGUFReader(path)
        self.tensors = {t.name: t for t in self.reader.tensors}

    def tensor(self, name):
        layer = re.fullmatch(r"model\.layers\.(\d+)\.(.+)\.weight", name)
        kind = LAYER.get(layer[2]) if layer else None
        stored = self.tensors.get(f"blk.{layer[1]}.{kind}.weight" if kind else WHOLE.get(name))
        if stored is None:
            sys.exit(f"the checkpoint has no tensor {name}")
        values = np.atleast_2d(dequantize(stored.data, stored.tensor_type).astype("<f4", copy=False))
        if kind in HEADS:
            # GGUF has the two channels of a rotary pair as neighbours (2x, 2x+1), the checkpoint half a head apart.
            heads = int(self.reader.get_field(HEADS[kind]).contents())
            values = values.reshape(heads, -1, 2, values.shape[-1]).swapaxes(1, 2).reshape(values.shape)
        return values


def fill(out, spec, checkpoint):
    for offset, names, transposed in spec["tensors"]:
        parts = [checkpoint.tensor(name) for name in names]
        if out.tell() > offset:
            sys.exit(f"weights.json: {names[0]} begins before its neighbour ends")
        out.seek(offset)  # what is skipped reads as zeros
        out.write(np.concatenate([p.T if transposed else p for p in parts], axis=1).tobytes())
    if out.tell() > spec["bytes"]:
        sys.exit("weights.json: the tensors are longer than the file")
    out.truncate(spec["bytes"])


def main(gguf, spec, path):
    with open(spec, encoding="utf-8") as file:
        spec = json.load(file)
    part = path + ".part"
    try:
        with open(part, "wb") as out:
            fill(out, spec, Checkpoint(gguf))
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.remove(part)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
