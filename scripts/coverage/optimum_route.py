"""Optimum's exporter; it needs an older transformers than the other routes, hence an environment of its own."""
import contextlib
import io
import os

import transformers

import models
from architectures import ARCHITECTURES
from models import Skip
from routes import route, slim

OLDER = int(transformers.__version__.split(".")[0]) < 5


@route("optimum")
def optimum(_, name, folder):
    if not OLDER:
        raise Skip("another environment makes it (requirements-optimum.txt)")
    from optimum.exporters.onnx import onnx_export_from_model
    task = {"causal": "text-generation-with-past", "masked": "fill-mask", "encoder": "feature-extraction"}.get(ARCHITECTURES[name].head)
    if task is None:
        raise Skip("Optimum exports it only as a whole of several models")
    try:
        model = models.build(name, "sdpa")
    except ValueError as e:
        if "Unrecognized model identifier" in str(e):
            raise Skip("Optimum's transformers does not know the architecture") from None
        raise
    if not os.path.exists(os.path.join(folder, "model.onnx")):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            try:
                onnx_export_from_model(models.build(name, "sdpa"), folder, task=task, do_validation=False, no_post_process=False)
            except ValueError as e:
                if "unsupported architecture" in str(e):
                    raise Skip("Optimum does not know the architecture") from None
                raise
    for leftover in os.listdir(folder):
        if leftover != "model.onnx":
            os.remove(os.path.join(folder, leftover))
    path = os.path.join(folder, "model.onnx")
    slim(path)
    import onnx
    positions = "position_ids" in [i.name for i in onnx.load(path).graph.input]
    return models.reference(name, model, ARCHITECTURES[name].head == "causal", positions)
