"""The calls that a model is tried with: a first one, a chunk after a past, a single token, two rows of which
the second is padded on the left, and a token after those."""
import numpy as np

from cases import PAST, PRESENT

VOCABULARY = 64  # all models have at least as many tokens
SEPARATOR = 7  # between documents, where a model counts them
FIRST, CHUNK, PADDED, PADDING, LONG = 11, 5, 9, 4, 37


def run_all(session):
    """Runs the calls, each with the cache that the one before it gave; returns their inputs and outputs."""
    inputs = {i.name: i for i in session.get_inputs()}
    random = np.random.default_rng(7)
    steps = [("prefill", 1, FIRST, 0), ("chunk", 1, CHUNK, 0), ("token", 1, 1, 0),
             ("padded", 2, PADDED, PADDING), ("padded token", 2, 1, PADDING)]
    if not any(name.startswith(PAST) for name in inputs):
        steps = [("short", 1, FIRST, 0), ("long", 1, LONG, 0), ("padded", 2, PADDED, PADDING)]
    calls, past, cache = [], 0, {}
    for name, batch, length, padding in steps:
        if not cache or name in ("prefill", "padded"):
            past, cache = 0, empty_cache(inputs, batch)
        feeds = feeds_of(inputs, random, batch, past, length, padding) | cache
        outputs = dict(zip((o.name for o in session.get_outputs()), session.run(None, feeds)))
        calls.append({"name": name, "inputs": feeds, "outputs": outputs})
        past += length
        cache = {PAST + n.split(".", 1)[1]: value for n, value in outputs.items() if n.startswith(PRESENT + ".")}
    return calls


def feeds_of(inputs, random, batch, past, length, padding):
    index = np.arange(past + length)
    mask = np.ones((batch, past + length), np.int64)
    mask[-1, :padding] = 0
    positions = np.broadcast_to(index[past:], (batch, length)).copy()
    positions[-1] = np.maximum(positions[-1] - padding, 0)
    ids = random.integers(3, VOCABULARY, (batch, length))
    ids[:, 3::5] = SEPARATOR
    feeds = {
        "input_ids": ids,
        "attention_mask": mask,
        "position_ids": positions,
        "document_ids": np.broadcast_to(np.minimum(index // 3, 3), (batch, past + length)).astype(np.int64),
        "cache_length": np.full(batch, past, np.int32),
    }
    return {name: value for name, value in feeds.items() if name in inputs}


def empty_cache(inputs, batch):
    """Past keys and values: none of them, or a buffer where the model names its capacity."""
    types = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
    return {name: np.zeros((batch, i.shape[1], i.shape[2] if isinstance(i.shape[2], int) else 0, i.shape[3]), types[i.type])
            for name, i in inputs.items() if name.startswith(PAST)}
