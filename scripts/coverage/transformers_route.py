"""Exports by transformers' own exporter, where this transformers has one (5.24 and newer)."""
import os

import torch
from transformers import GenerationConfig

try:
    from transformers.exporters.exporter_onnx import OnnxConfig, OnnxExporter
except ImportError:
    OnnxExporter = None
HERE = OnnxExporter is not None  # the other routes are those of older versions

import models
from architectures import ARCHITECTURES
from models import Skip
from routes import route, slim

CAPACITY = 40


@route("hf")
@route("hf-prefill", component="prefill")
@route("hf-step", multi=False)
@route("hf-static", static=True, compared=False)
@route("hf-fused", config=dict(ort_fusions="cpu"))
@route("hf-opset23", config=dict(opset_version=23))
def by_transformers(_, name, folder, config={}, component="decode", multi=True, static=False, compared=True):
    """The component of a text model that continues a cache, or the one graph of an encoder."""
    a = ARCHITECTURES[name]
    if not HERE:
        raise Skip("transformers' exporter is in 5.24 and newer")
    if a.head not in ("causal", "masked", "encoder"):
        raise Skip("another head")
    model = models.build(name, "sdpa")
    positions = models.takes_positions(model)
    cached = a.head == "causal"
    if not cached and component == "prefill":
        raise Skip("it has no cache")
    reference = models.reference(name, model, cached, positions)
    x = models.inputs(name)
    inputs = dict(input_ids=x["ids_pad"][:, :12], attention_mask=x["mask_pad"][:, :12])  # a mask that hides nothing is dropped
    config = OnnxConfig(dynamic=True, **config)
    with torch.no_grad():
        if cached:
            more = dict(generation_config=GenerationConfig(cache_implementation="static", max_cache_len=CAPACITY)) if static else {}
            made = OnnxExporter().export_for_generation(model, inputs, config, multi_token_decode=multi, **more)
        else:
            made, component = OnnxExporter().export(model, inputs, config), "model"
    save(made.components[component].program, os.path.join(folder, "model.onnx"))
    return reference if compared and component != "prefill" and multi else None


def save(program, path):
    import onnx
    import onnx_ir

    onnx.save(onnx_ir.to_proto(program), path)
    slim(path)
