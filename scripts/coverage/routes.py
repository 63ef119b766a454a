"""How exports are made: a route takes (cache, architecture, folder), writes folder/model.onnx and returns the reference."""
import contextlib
import functools
import io
import os

import onnx
import torch

import models
import substitutes
from architectures import ARCHITECTURES, HIDDEN, VOCABULARY
from models import Skip

ROUTES = {}
APPROXIMATE = {"dynamo18-fp16"}  # whose numbers are rounded beyond float32


def route(name, **values):
    def register(f):
        ROUTES[name] = functools.partial(f, **values)
        return f
    return register


@route("dynamo18", opset=18, cache=True)
@route("ts17", dynamo=False, opset=17, cache=False)
@route("dynamo18-nocache", opset=18, cache=False)
@route("ts17-cache", dynamo=False, opset=17, cache=True)
@route("dynamo18-eager", opset=18, cache=True, attention="eager")
@route("dynamo23", opset=23, cache=True)
@route("dynamo23-nocache", opset=23, cache=False)
@route("dynamo18-fp16", opset=18, cache=True, half=True)
@route("ts14-eager", dynamo=False, opset=14, cache=False, attention="eager")
@route("dynamo20-raw", opset=20, cache=True, optimize=False)
def from_torch(_, name, folder, opset, cache, dynamo=True, attention="sdpa", half=False, optimize=True):
    """PyTorch's two exporters."""
    a = ARCHITECTURES[name]
    if a.head == "speech-decoder":
        speech(models.build(name, attention), folder, cache, dynamo, opset, optimize)
        return None
    if cache and a.head not in ("causal", "text"):
        raise Skip("it has no cache")
    model = models.build(name, attention)
    if a.head.startswith("whisper"):
        module, arguments, names = whisper(a, model)
        save(module, arguments, [names[i] for i in range(len(arguments))], ["output"], [{0: "batch"}] * len(arguments), folder, dynamo, opset, optimize)
        return None
    positions = cache and models.takes_positions(model)
    reference = models.reference(name, model, cache, positions)
    if half:
        model = models.half(model)
    batch, length, past = 3, 7, 5
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(4, VOCABULARY, (batch, length), generator=generator)
    flat = {0: "batch", 1: "sequence"}
    if not cache:
        module = models.Plain(model, a.head in ("causal", "text"))
        mask = torch.ones(batch, length, dtype=torch.int64)
        mask[1, :2] = 0
        save(module, (ids, mask), ["input_ids", "attention_mask"], ["logits"], [flat, flat], folder, dynamo, opset, optimize)
        return reference
    module = models.Cached(model, positions)
    mask = torch.ones(batch, past + length, dtype=torch.int64)
    pos = torch.arange(past, past + length).expand(batch, length).contiguous()
    if a.head == "text":
        pos = pos.expand(3, batch, length).contiguous()
    with torch.no_grad():
        first = model(input_ids=ids[:, :past], attention_mask=mask[:, :past], use_cache=True).past_key_values
    caches = [t.clone().contiguous() for t in models.layers(first)]
    count = len(caches) // 2
    parts = [f"{i}.{t}" for i in range(count) for t in ("key", "value")]
    axes = [flat, {0: "batch", 1: "total_sequence"}, {1: "batch", 2: "sequence"} if a.head == "text" else flat] + [{0: "batch", 2: "past_sequence"}] * len(caches)
    save(module, (ids, mask, pos, *caches), ["input_ids", "attention_mask", "position_ids"] + ["past_key_values." + p for p in parts],
         ["logits"] + ["present." + p for p in parts], axes, folder, dynamo, opset, optimize, varied=3)
    return reference


def speech(model, folder, cache, dynamo, opset, optimize):
    """A decoder beside an encoder, with what it makes of the encoder's states once for all (cached) or in this call."""
    generator = torch.Generator().manual_seed(3)
    ids, states = torch.randint(4, VOCABULARY, (3, 7), generator=generator), torch.randn(3, 9, HIDDEN, generator=generator)
    flat = {0: "batch", 1: "sequence"}
    if not cache:
        save(models.PlainSpeech(model), (ids, states), ["input_ids", "encoder_hidden_states"], ["logits"], [flat, {0: "batch", 1: "frames"}],
             folder, dynamo, opset, optimize)
        return
    with torch.no_grad():
        _, first = model(ids[:, :5], states, None, True)
    own, cross = models.layers(first.self_attention_cache), models.layers(first.cross_attention_cache)
    caches = [t.clone().contiguous() for t in own + cross]
    parts = [f"{i}.{t}" for i in range(len(own) // 2) for t in ("key", "value")]
    save(models.CachedSpeech(model), (ids, *caches), ["input_ids"] + ["past_key_values." + p for p in parts] + ["cross_key_values." + p for p in parts],
         ["logits"] + ["present." + p for p in parts], [flat] + [{0: "batch", 2: "past_sequence"}] * len(own) + [{0: "batch", 2: "frames"}] * len(cross),
         folder, dynamo, opset, optimize, varied=1)


CAPACITY = 40


@route("dynamo18-slots", opset=18, dynamo=True)
@route("ts17-slots", opset=17, dynamo=False)
def slots(_, name, folder, opset, dynamo):
    """A cache of fixed size, into which new keys and values are written by position (transformers' StaticCache)."""
    a = ARCHITECTURES[name]
    if a.head != "causal":
        raise Skip("it has no cache")
    model = models.build(name, "sdpa")
    ids = torch.randint(4, VOCABULARY, (3, 7), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        first = model(input_ids=ids, use_cache=True).past_key_values
    caches = [t.new_zeros(t.shape[0], t.shape[1], CAPACITY, t.shape[3]) for t in models.layers(first)]
    parts = [f"{i}.{t}" for i in range(len(caches) // 2) for t in ("key", "value")]
    save(models.Slots(model), (ids, torch.arange(5, 12), *caches), ["input_ids", "cache_position"] + ["past_key_values." + p for p in parts],
         ["logits"] + ["present." + p for p in parts], [{0: "batch", 1: "sequence"}, {0: "sequence"}] + [{0: "batch"}] * len(caches),
         folder, dynamo, opset, True, varied=2, grown=False)
    return None


def whisper(a, model):
    generator = torch.Generator().manual_seed(3)
    if a.head == "whisper-encoder":
        return models.WhisperEncoder(model), (torch.randn(3, 16, 64, generator=generator),), ["input_features"]
    ids = torch.randint(4, VOCABULARY, (3, 7), generator=generator)
    return models.WhisperDecoder(model), (ids, torch.randn(3, 32, HIDDEN, generator=generator)), ["input_ids", "encoder_hidden_states"]


def save(module, arguments, inputs, outputs, axes, folder, dynamo, opset, optimize, varied=None, grown=True):
    """varied is the first argument that belongs to the module's variadic parameter. grown says that what comes back of a cache
    is longer than it was."""
    path = os.path.join(folder, "model.onnx")
    if os.path.exists(path):  # only the reference is made anew
        return
    module = module.eval()
    with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()), substitutes.exportable(module.model, dynamo):
        if dynamo:
            shapes = tuple(axes) if varied is None else (*axes[:varied], tuple(axes[varied:]))
            program = torch.onnx.export(module, arguments, dynamo=True, opset_version=opset, dynamic_shapes=shapes, input_names=inputs,
                                        output_names=outputs, optimize=optimize, verbose=False, report=False)
            program.save(path, external_data=False)
        else:
            named = dict(zip(inputs, axes))
            for name in outputs[1:]:
                named[name] = {0: "batch", 2: "total_sequence"} if grown else {0: "batch"}
            named[outputs[0]] = axes[0]
            torch.onnx.export(module, arguments, path, dynamo=False, opset_version=opset, input_names=inputs, output_names=outputs,
                              dynamic_axes=named)
    slim(path)


def slim(path):
    """Drops what exporters leave for debugging; the graph stays."""
    m = onnx.load(path)

    def clear(item):
        if hasattr(item, "metadata_props"):
            del item.metadata_props[:]
        item.doc_string = ""

    def walk(g):
        clear(g)
        for n in g.node:
            clear(n)
            for a in n.attribute:
                for sub in [a.g] if a.HasField("g") else a.graphs:
                    walk(sub)
        for v in [*g.initializer, *g.value_info, *g.input, *g.output]:
            clear(v)

    walk(m.graph)
    for f in m.functions:
        clear(f)
        for n in f.node:
            clear(n)
    onnx.save(m, path)
