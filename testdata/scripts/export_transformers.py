"""Export the small models by transformers' own exporter, as export_for_generation saves them.

    export_transformers.py OUT [ARCHITECTURE ...] [--route ROUTE]

Writes OUT/models/ARCHITECTURE__transformers[-ROUTE]/: config.json, export.json, and a graph with its weights for each
component. A text model has prefill.onnx, without a cache, and decode.onnx, with one. An encoder has model.onnx.

Routes beside the usual one, whose decode takes any number of tokens and left padding:
  step    decode takes one token (multi_token_decode=False, the exporter's default)
  static  a cache of fixed size (cache_implementation="static", 64 tokens)
  fused   ONNX Runtime's ops (ort_fusions="cpu")
  opset23 the opset of ONNX's Attention and RotaryEmbedding
"""
import argparse
import os

import onnx
import torch
from transformers import GenerationConfig
from transformers.exporters.exporter_onnx import OnnxConfig, OnnxExporter

import small
from export_dynamo import without_metadata

ROUTES = {
    "": {},
    "step": dict(multi_token_decode=False),
    "static": dict(generation_config=GenerationConfig(cache_implementation="static", max_cache_len=64)),
    "fused": dict(config=dict(ort_fusions="cpu")),
    "opset23": dict(config=dict(opset_version=23)),
}


def sample(length=12, padding=3):
    """Two texts, the second with padding on the left: the exporter drops a mask that hides nothing."""
    ids = torch.randint(4, 128, (2, length), generator=torch.Generator().manual_seed(3))
    mask = torch.ones_like(ids)
    ids[1, :padding] = mask[1, :padding] = 0
    return dict(input_ids=ids, attention_mask=mask)


def export(name, out, route):
    more = dict(ROUTES[route])
    config = OnnxConfig(dynamic=True, **more.pop("config", {}))
    model = small.model(name, out, "eager" if name == "gpt_oss" else "sdpa")
    with torch.no_grad():
        made = OnnxExporter().export_for_generation(model, sample(), config, **{"multi_token_decode": True, **more})
    folder = os.path.join(out, "models", f"{name}__transformers" + (f"-{route}" if route else ""))
    made.save_pretrained(folder)
    for component in made.components:
        path = os.path.join(folder, component + ".onnx")
        onnx.save(without_metadata(onnx.load(path, load_external_data=False)), path)
    print("wrote", folder, *made.components)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("architectures", nargs="*", default=["llama", "qwen3", "gemma3_text", "gpt_oss"])
    parser.add_argument("--route", default="", choices=ROUTES)
    a = parser.parse_args()
    for architecture in a.architectures:
        export(architecture, a.out, a.route)
