"""Export the small models without a key-value cache: token ids and attention mask in, logits out.

    export_nocache.py OUT dynamo18|dynamo23|ts17 [ARCHITECTURE ...]

dynamo18 and dynamo23 are torch.onnx.export(dynamo=True) at opset 18 and 23, ts17 the older TorchScript exporter at opset 17. Writes
OUT/models/ARCHITECTURE__dynamo18-nocache, …23-nocache or OUT/models/ARCHITECTURE__ts17.
"""
import argparse
import os

import onnx
import torch

import small
from export_dynamo import without_metadata


class WithoutCache(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits


def export(name, out, route):
    model = small.model(name, out)
    batch, length = 3, 7
    generator = torch.Generator().manual_seed(3)
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[1, :2] = 0
    args = (torch.randint(4, 128, (batch, length), generator=generator), mask)
    names = dict(input_names=["input_ids", "attention_mask"], output_names=["logits"])
    axes = {0: "batch", 1: "sequence"}
    folder = os.path.join(out, "models", name + ("__ts17" if route == "ts17" else f"__{route}-nocache"))
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "model.onnx")
    with torch.no_grad():
        if route != "ts17":
            program = torch.onnx.export(WithoutCache(model).eval(), args, dynamo=True, opset_version=int(route[-2:]),
                                        dynamic_shapes=(axes, axes), verbose=False, report=False, **names)
            program.save(path, external_data=False)
        else:
            torch.onnx.export(WithoutCache(model).eval(), args, path, dynamo=False, opset_version=17,
                              dynamic_axes={k: axes for k in ("input_ids", "attention_mask", "logits")}, **names)
    onnx.save(without_metadata(onnx.load(path)), path)
    model.config.save_pretrained(folder)
    print("wrote", path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("route", choices=["dynamo18", "dynamo23", "ts17"])
    parser.add_argument("architectures", nargs="*")
    a = parser.parse_args()
    for name in a.architectures or small.ARCHITECTURES:
        export(name, a.out, a.route)
