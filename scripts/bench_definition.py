"""Times the first call of models with and without the op library, by turns.

usage: bench_definition.py LIBRARY TOKENS ROUNDS MODEL[:lib]...

Each run is a process of its own with one thread: it makes a session, calls it once with
TOKENS new tokens and an empty cache, and gives the processor time of the session's making and
of the call, and the peak memory. MODEL:lib registers LIBRARY first. The table has medians,
and ratios to the first model.
"""
import json
import os
import resource
import statistics
import subprocess
import sys
import time


def run(library, tokens, model):
    import numpy as np
    import onnxruntime as ort

    path, _, registered = model.partition(":")
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    if registered:
        options.register_custom_ops_library(library)
    start = time.process_time()
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    made = time.process_time() - start
    types = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64, "tensor(int32)": np.int32}
    feeds = {}
    for i in session.get_inputs():
        if "past" in i.name:
            feeds[i.name] = np.zeros([1, i.shape[1], 0, head_size(path)], types[i.type])
        elif i.name == "input_ids":
            feeds[i.name] = np.random.default_rng(0).integers(1, 40000, (1, tokens)).astype(types[i.type])
        elif i.name == "attention_mask":
            feeds[i.name] = np.ones((1, tokens), types[i.type])
        elif i.name == "position_ids":
            feeds[i.name] = np.arange(tokens, dtype=types[i.type])[None]
        else:
            sys.exit(f"{path} wants the input {i.name}, which this program does not feed")
    start = time.process_time()
    session.run(["logits"], feeds)
    print(made, time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def head_size(path):
    """Some exports do not say it in the shapes of their caches."""
    with open(os.path.join(os.path.dirname(path), "config.json")) as f:
        config = json.load(f)
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def main():
    library, tokens, rounds, models = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    if rounds == 0:
        return run(library, tokens, models[0])
    seen = {m: [] for m in models}
    for _ in range(rounds):
        for m in models:
            out = subprocess.run([sys.executable, __file__, library, str(tokens), "0", m], check=True, capture_output=True, text=True)
            seen[m].append([float(x) for x in out.stdout.split()])
    first = None
    print(f"{tokens} tokens, one thread, medians of {rounds}\n")
    print("| model | session | first call | ratio | peak memory |\n|---|---|---|---|---|")
    for m in models:
        made, called, peak = (statistics.median(x) for x in zip(*seen[m]))
        first = first or called
        print(f"| {m} | {made:.2f} s | {called:.2f} s | {called / first:.2f} | {peak:.0f} MB |")


main()
