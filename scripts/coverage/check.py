"""Runs an export in ONNX Runtime against what transformers computed."""
import numpy as np
import onnxruntime

from architectures import HEAD
from models import LENGTH, PREFILL


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def calls(s, ids, mask, pos, steps, head_size=HEAD):
    """Logits of all tokens, cut into calls at the given places."""
    names = {i.name for i in s.get_inputs()}
    pasts = [i for i in s.get_inputs() if i.name.startswith(("past_key_values", "input."))]
    kinds = {"tensor(float16)": np.float16, "tensor(float)": np.float32, "tensor(int64)": np.int64}
    fixed = lambda v, d: int(v) if str(v).isdigit() else d
    # What has no dimensions is given back as it is: a window of transformers' exporter.
    cache = [np.zeros((len(ids), fixed(i.shape[1], 1), 0, fixed(i.shape[3], head_size)) if i.shape else (), kinds[i.type]) for i in pasts]
    parts = []
    for start, stop in zip(steps, steps[1:]):
        feeds = dict(input_ids=ids[:, start:stop], attention_mask=mask[:, :stop], position_ids=pos[..., start:stop])
        feeds["token_type_ids"] = np.zeros_like(feeds["input_ids"])
        out = s.run(None, {**{k: v for k, v in feeds.items() if k in names}, **{i.name: c for i, c in zip(pasts, cache)}})
        parts.append(out[0])
        cache = out[1:]
    return np.concatenate(parts, 1).astype(np.float32)


WAYS = {"prefill": [0, LENGTH], "chunks": [0, 11, LENGTH], "decode": [0, *range(PREFILL, LENGTH + 1)]}


def compare(path, reference, head_size=HEAD):
    """The largest differences of each way of running, or ONNX Runtime's words. Padded queries carry no meaning. head_size
    is for caches whose shape leaves it open."""
    s, found = session(path), {}
    cached = any(i.name.startswith(("past_key_values", "input.")) for i in s.get_inputs())
    for way, steps in WAYS.items():
        if len(steps) > 2 and not cached:
            continue
        for pad in ("", "_pad"):
            want = reference[("decode" if way == "decode" else "logits") + pad]
            real = reference["mask" + pad].astype(bool)
            try:
                got = calls(s, *(reference[k + pad] for k in ("ids", "mask", "pos")), steps, head_size)
                off = float(np.abs(got - want)[real].max())
                found[way + pad] = off if np.isfinite(off) else "not a number"
            except Exception as e:
                found[way + pad] = str(e).splitlines()[0][:400]
    return found
