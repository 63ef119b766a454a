"""Check the goldens against the exports with ONNX Runtime; needs numpy, onnx and onnxruntime only.

    check.py TESTDATA

plain: the export as it is, in one pass, as prefill of 32 with single steps after it, with and without padding.
A model without a cache takes one pass only. Of float16 models only plain is checked. Of models with a golden.npz of
their own, plain is checked under mask, and hole, where it is there, under mask_hole. Models without either are left out.
linear4, yarn4, theta500k: the export with its inv_freq constant replaced and its cos and sin multiplied by the gain,
both from the formulas. (STRING has no such plain-ONNX form; its reference is checked by goldens.py.)
"""
import glob
import json
import math
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

LIMIT = 1e-4
HALF_LIMIT = 0.1  # of a whole model in float16; logits reach 7
BASE, SHIFTED_BASE, FACTOR, ORIGINAL = 10000.0, 500000.0, 4.0, 16


def frequencies(n, base=BASE):
    return base ** (-np.arange(0, n, 2) / n)


def yarn(n):
    """YaRN with β_fast 32, β_slow 1, the ramp's ends rounded outwards."""
    turn = lambda beta: n * math.log(ORIGINAL / (beta * 2 * math.pi)) / (2 * math.log(BASE))
    low, high = max(math.floor(turn(32)), 0), min(math.ceil(turn(1)), n - 1)
    ramp = np.clip((np.arange(n // 2) - low) / (max(high - low, 0) or 0.001), 0, 1)
    plain = frequencies(n)
    return plain * (1 - ramp) + plain / FACTOR * ramp, 0.1 * math.log(FACTOR) + 1


def methods(n):
    return {"plain": None, "linear4": (frequencies(n) / FACTOR, 1.0), "theta500k": (frequencies(n, SHIFTED_BASE), 1.0), "yarn4": yarn(n)}


def with_frequencies(path, new, gain):
    """The model with another inv_freq, and cos and sin multiplied by gain."""
    model = onnx.load(path)
    graph, done = model.graph, 0
    tensors = [t for t in graph.initializer] + [a.t for node in graph.node if node.op_type == "Constant" for a in node.attribute if a.name == "value"]
    for tensor in tensors:
        value = numpy_helper.to_array(tensor)
        if value.size == new.size and value.dtype == np.float32 and np.allclose(value.ravel(), frequencies(2 * new.size), rtol=1e-5):
            tensor.CopyFrom(numpy_helper.from_array(new.astype(np.float32).reshape(value.shape), tensor.name))
            done += 1
        # GroupQueryAttention gathers from tables of cos and sin instead.
        for function in (np.cos, np.sin):
            if value.ndim == 2 and value.shape[1] == new.size and value.dtype == np.float32:
                angles = np.arange(len(value), dtype=np.float32)[:, None]
                if np.allclose(value, function(angles * frequencies(2 * new.size).astype(np.float32)), atol=1e-5):
                    table = gain * function(angles * new.astype(np.float32))
                    tensor.CopyFrom(numpy_helper.from_array(table.astype(np.float32), tensor.name))
                    done += 1
    assert done, f"{path}: no inv_freq constant and no tables"
    nodes = list(graph.node)
    del graph.node[:]
    graph.initializer.append(numpy_helper.from_array(np.float32(gain), "golden_gain"))
    for node in nodes:
        graph.node.append(node)
        if node.op_type in ("Cos", "Sin"):
            name = node.output[0]
            node.output[0] = name + "_without_gain"
            graph.node[-1].CopyFrom(node)
            graph.node.append(helper.make_node("Mul", [node.output[0], "golden_gain"], [name]))
    return model.SerializeToString()


def run(session, g, pad, steps, head_size):
    """Logits of all tokens, cut into calls at the given places."""
    ids, mask, pos = g["ids" + pad], g["mask" + pad], g["pos" + pad]
    if counted(session):  # no padding on the left, and one row at a time where a later call has several tokens
        rows = [(ids[b][m == 1][None], np.ones((1, m.sum()), np.int64)) for b, m in enumerate(mask)]
        return np.concatenate([calls(session, i, m, m.cumsum(-1) - 1, [s for s in steps if s < m.sum()] + [m.sum()], head_size)
                               for i, m in rows])
    return calls(session, ids, mask, pos, steps, head_size)


def counted(session):
    """Whether the model counts the tokens of its rows: it has a cache and no positions."""
    names = [i.name for i in session.get_inputs()]
    return "position_ids" not in names and any(n.startswith("past_key_values.") for n in names)


def calls(session, ids, mask, pos, steps, head_size):
    pasts = [i for i in session.get_inputs() if i.name.startswith("past_key_values.")]
    sizes = [i.shape[3] if isinstance(i.shape[3], int) else head_size for i in pasts]
    cache = {i.name: np.zeros((len(ids), i.shape[1], 0, n), np.float16 if "float16" in i.type else np.float32) for i, n in zip(pasts, sizes)}
    names, parts = [o.name for o in session.get_outputs()], []
    for start, stop in zip(steps, steps[1:]):
        feeds = dict(input_ids=ids[:, start:stop], attention_mask=mask[:, :stop], **cache)
        if "position_ids" in [i.name for i in session.get_inputs()]:
            feeds["position_ids"] = pos[:, start:stop]
        out = dict(zip(names, session.run(None, feeds)))
        cache = {k: out[k.replace("past_key_values", "present")] for k in cache}
        parts.append(out["logits"])
    logits = np.concatenate(parts, 1)
    return logits[mask.astype(bool)]


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def own(folder):
    """The golden.npz of a model or, in float16, of the same model in float32; None where there is none."""
    path = os.path.join(folder.removesuffix("-fp16"), "golden.npz")
    return path if os.path.exists(path) else None


def check_own(folder):
    """The same of a model with a golden.npz; the graph counts its positions."""
    g, session, worst = np.load(own(folder)), session_of(os.path.join(folder, "model.onnx")), {}
    for key, mask in (("plain", "mask"), ("hole", "mask_hole")):
        if key not in g or mask not in g:
            continue
        ids, mask = g["ids"], g[mask]
        length = ids.shape[1]
        cached = any(i.name.startswith("past_key_values.") for i in session.get_inputs())
        ways = ([0, length], [0, 32, *range(33, length + 1)], [0, 7, 20, length])[:3 if cached else 1]
        worst[key] = max(float(np.abs(calls(session, ids, mask, None, steps, None) - g[key][mask.astype(bool)]).max()) for steps in ways)
    print(os.path.basename(folder), {k: f"{v:.1e}" for k, v in worst.items()})
    return bool(worst) and max(worst.values()) <= (HALF_LIMIT if folder.endswith("-fp16") else LIMIT)


def check(folder, root):
    name = os.path.basename(folder)
    if own(folder):
        return check_own(folder)
    g = np.load(os.path.join(root, "goldens", name.split("__")[0] + ".npz"))
    cfg = json.load(open(os.path.join(folder, "config.json")))
    head_size = cfg.get("head_dim") or cfg["hidden_size"] // cfg["num_attention_heads"]
    partial = cfg.get("rotary_pct") or (cfg.get("rope_parameters") or {}).get("partial_rotary_factor") or 1.0
    half = name.endswith("-fp16")
    path, worst = os.path.join(folder, "model.onnx"), {}
    for method, edit in methods(int(head_size * partial)).items():
        if method not in g or half and edit:
            continue
        session = session_of(with_frequencies(path, *edit) if edit else path)
        errors = []
        for pad in ("", "_pad"):
            want = g[method].reshape(-1, g[method].shape[-1])
            if pad:  # the first row of the padded batch is the first row of the plain one
                want = np.concatenate([g[method][0], g[method + pad]])
            cached = any(i.name.startswith("past_key_values.") for i in session.get_inputs())
            for steps in ([0, 48], [0, 32, *range(33, 49)], [0, 7, 20, 48])[:3 if cached else 1]:
                errors.append(float(np.abs(run(session, g, pad, steps, head_size) - want).max()))
        worst[method] = max(errors)
    print(name, {k: f"{v:.1e}" for k, v in worst.items()})
    return max(worst.values()) <= (HALF_LIMIT if half else LIMIT)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folders = sorted(glob.glob(os.path.join(sys.argv[1], "models", "*")))
    # Other weights, other inputs, frequencies that are folded away, a batch of 1.
    folders = [f for f in folders if not f.endswith(("-int4", "-int8", "-merged", "-static", "-static-cache", "-fixed", "23-nocache"))]
    folders = [f for f in folders if not os.path.basename(f).startswith("gptj")]  # its golden has some tokens only
    known = lambda f: os.path.exists(os.path.join(sys.argv[1], "goldens", os.path.basename(f).split("__")[0] + ".npz"))
    folders = [f for f in folders if own(f) or known(f)]  # others' are in others.npz and layers.npz
    results = [check(folder, sys.argv[1]) for folder in folders]
    print(f"{sum(results)} of {len(results)} models agree with their goldens within {LIMIT}, float16 ones within {HALF_LIMIT}")
    sys.exit(0 if results and all(results) else 1)
