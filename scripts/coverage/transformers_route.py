"""Exports by transformers' own exporter, where this transformers has one (5.24 and newer)."""
import os

import onnx
import torch
from transformers import GenerationConfig

try:
    import onnx_ir
    from transformers.exporters.exporter_onnx import OnnxConfig, OnnxExporter
except ImportError:
    OnnxExporter = None
HERE = OnnxExporter is not None  # the other routes are those of older versions

import models
from architectures import ARCHITECTURES
from models import Skip
from routes import CAPACITY, route, slim


@route("hf")
@route("hf-prefill", component="prefill")
@route("hf-step", multi=False)
@route("hf-static", static=True)
@route("hf-fused", config=dict(ort_fusions="cpu"))
@route("hf-opset23", config=dict(opset_version=23))
def by_transformers(_, name, folder, config={}, component="decode", multi=True, static=False):
    """The component of a text model that continues a cache, or the one graph of an encoder."""
    a = ARCHITECTURES[name]
    if not HERE:
        raise Skip("transformers' exporter is in 5.24 and newer")
    if a.head not in ("causal", "masked", "encoder"):
        raise Skip("another head")
    model = models.build(name, "sdpa")
    cached = a.head == "causal"
    if not cached and component == "prefill":
        raise Skip("it has no cache")
    x = models.inputs(name)
    inputs = dict(input_ids=x["ids_pad"][:, :12], attention_mask=x["mask_pad"][:, :12])  # a mask that hides nothing is dropped
    config = OnnxConfig(dynamic=True, **config)
    with torch.no_grad():
        if cached:
            more = dict(generation_config=GenerationConfig(cache_implementation="static", max_cache_len=CAPACITY)) if static else {}
            made = OnnxExporter().export_for_generation(model, inputs, config, multi_token_decode=multi, **more)
        else:
            made, component = OnnxExporter().export(model, inputs, config), "model"
    path = os.path.join(folder, "model.onnx")
    onnx.save(onnx_ir.to_proto(made.components[component].program), path)
    slim(path)
    compared = component != "prefill" and multi and not static
    return models.reference(name, model, cached, models.takes_positions(model)) if compared else None
