"""Models of a realistic shape with random weights, for timing.

    models.py OUT [NAME ...]

Writes OUT/NAME/model.onnx (and config.json): `longrope`, a Phi-3 in miniature with plain rotation, to which the rewriter
gives LongRoPE; `window`, a Mistral whose layers all have a window, at opset 23; `modernbert`, ModernBERT-base without its
head. What is there is not made again. It runs in the environment of testdata/scripts/requirements.txt.
"""
import argparse
import os
import sys

import onnx
import torch
import transformers
from transformers import AutoModel, AutoModelForCausalLM

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "testdata", "scripts"))
from export_dynamo import WithCache, without_metadata  # noqa: E402
from shapes import DECODER, LONG, SHORT, TRAINED, WINDOW  # noqa: E402

PLAIN = dict(rope_type="default", rope_theta=10000.0)
SCALED = dict(rope_type="longrope", rope_theta=10000.0, short_factor=SHORT, long_factor=LONG, original_max_position_embeddings=TRAINED, factor=32.0)


def longrope(parameters=PLAIN):
    torch.manual_seed(1)
    config = transformers.Phi3Config(**DECODER, max_position_embeddings=32 * TRAINED, original_max_position_embeddings=TRAINED,
                                     rope_parameters=dict(parameters))
    return AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").float().eval()


def window():
    torch.manual_seed(2)
    config = transformers.MistralConfig(**DECODER, max_position_embeddings=32768, sliding_window=WINDOW, rope_parameters=dict(PLAIN))
    return AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").float().eval()


def modernbert():
    torch.manual_seed(3)  # ModernBertConfig's defaults are the base model's
    return AutoModel.from_config(transformers.ModernBertConfig(), attn_implementation="sdpa").float().eval()


class Hidden(torch.nn.Module):
    """Token ids and mask in, the last hidden states out."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def export_decoder(model, path, opset):
    c = model.config
    batch, length, past, size = 3, 7, 5, c.hidden_size // c.num_attention_heads
    cache = [tuple(torch.randn(batch, c.num_key_value_heads, past, size) for _ in "kv") for _ in range(c.num_hidden_layers)]
    arguments = (torch.randint(4, 100, (batch, length)), torch.ones(batch, past + length, dtype=torch.int64),
                 torch.arange(past, past + length).expand(batch, length).contiguous(), cache)
    axes = ({0: "batch", 1: "sequence"}, {0: "batch", 1: "total_sequence"}, {0: "batch", 1: "sequence"},
            [({0: "batch", 2: "past_sequence"},) * 2 for _ in cache])
    parts = [f"{i}.{t}" for i in range(c.num_hidden_layers) for t in ("key", "value")]
    export(WithCache(model), arguments, axes, ["input_ids", "attention_mask", "position_ids"] + ["past_key_values." + p for p in parts],
           ["logits"] + ["present." + p for p in parts], path, opset)


def export(module, arguments, axes, inputs, outputs, path, opset):
    with torch.no_grad():
        program = torch.onnx.export(module.eval(), arguments, dynamo=True, opset_version=opset, dynamic_shapes=axes, input_names=inputs,
                                    output_names=outputs, verbose=False, report=False)
    program.save(path, external_data=False)
    onnx.save(without_metadata(onnx.load(path)), path)


def make(name, out):
    folder = os.path.join(out, name)
    path = os.path.join(folder, "model.onnx")
    if os.path.exists(path):
        return
    os.makedirs(folder, exist_ok=True)
    model = {"longrope": longrope, "window": window, "modernbert": modernbert}[name]()
    model.config.save_pretrained(folder)
    partial = path + ".partial"
    if name == "modernbert":
        mask = torch.ones(3, 40, dtype=torch.int64)
        mask[1, 30:] = 0
        axes = {0: "batch", 1: "sequence"}
        export(Hidden(model), (torch.randint(4, 1000, (3, 40)), mask), (axes, axes), ["input_ids", "attention_mask"], ["last_hidden_state"], partial, 18)
    else:
        export_decoder(model, partial, 23 if name == "window" else 18)
    os.rename(partial, path)
    print("wrote", path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("names", nargs="*")
    a = parser.parse_args()
    for name in a.names or ["longrope", "window", "modernbert"]:
        make(name, a.out)
