"""Times the first call of models with and without the op library, by turns.

usage: bench_definition.py [--threads N] LIBRARY TOKENS ROUNDS MODEL[:lib]...

Each run is a process of its own: it makes a session, calls it once with TOKENS new tokens
and an empty cache (not at all with 0), and gives the time of the session's making and of the
call, and the peak memory after each. With one thread, the default, time is processor time;
with more it is wall-clock time, and the processor time of the call stands beside it. MODEL:lib
registers LIBRARY first. The table has medians, and medians of the ratios to the first model in
the same round; each run is printed to stderr as it ends.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(library, tokens, model, threads):
    import numpy as np
    import onnxruntime as ort

    clock = time.process_time if threads == 1 else time.perf_counter
    path, _, registered = model.partition(":")
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    if registered:
        options.register_custom_ops_library(library)
    start = clock()
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    made, held = clock() - start, peak()
    if tokens == 0:
        return print(made, held, 0, 0, held)
    types = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64, "tensor(int32)": np.int32}
    feeds = {}
    for i in session.get_inputs():
        if "past" in i.name:
            feeds[i.name] = np.zeros([1, i.shape[1], 0, head_size(path)], types[i.type])
        elif i.name == "input_ids":
            feeds[i.name] = np.random.default_rng(0).integers(1, 30000, (1, tokens)).astype(types[i.type])
        elif i.name == "attention_mask":
            feeds[i.name] = np.ones((1, tokens), types[i.type])
        elif i.name == "position_ids":
            feeds[i.name] = np.arange(tokens, dtype=types[i.type])[None]
        else:
            sys.exit(f"{path} wants the input {i.name}, which this program does not feed")
    start, busy = clock(), time.process_time()
    session.run(["logits"], feeds)
    print(made, held, clock() - start, time.process_time() - busy, peak())


def head_size(path):
    """Some exports do not say it in the shapes of their caches; a patched model may lie in a folder beside them."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.exists(os.path.join(folder, "config.json")):
        folder = os.path.dirname(folder)
    with open(os.path.join(folder, "config.json")) as f:
        config = json.load(f)
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("library")
    parser.add_argument("tokens", type=int)
    parser.add_argument("rounds", type=int)
    parser.add_argument("models", nargs="+")
    a = parser.parse_args()
    if a.rounds == 0:
        return run(a.library, a.tokens, a.models[0], a.threads)
    seen = {m: [] for m in a.models}
    for _ in range(a.rounds):
        for m in a.models:
            command = [sys.executable, __file__, "--threads", str(a.threads), a.library, str(a.tokens), "0", m]
            out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            seen[m].append([float(x) for x in out.stdout.split()])
            print(m, out.stdout.strip(), file=sys.stderr, flush=True)
    kind = "one thread, processor time" if a.threads == 1 else f"{a.threads} threads, wall-clock time (and processor time)"
    print(f"{a.tokens} tokens, {kind}, medians of {a.rounds}\n")
    print("| model | session | its peak memory | first call | ratio | peak memory |\n|---|---|---|---|---|---|")
    for m in a.models:
        made, held, called, busy, most = (statistics.median(x) for x in zip(*seen[m]))
        if a.tokens == 0:
            print(f"| {m} | {made:.2f} s | {held:.0f} MB | | | |")
            continue
        ratio, busy_ratio = (statistics.median(x[k] / first[k] for x, first in zip(seen[m], seen[a.models[0]])) for k in (2, 3))
        more = ("", "") if a.threads == 1 else (f" ({busy:.2f} s)", f" ({busy_ratio:.2f})")
        print(f"| {m} | {made:.2f} s | {held:.0f} MB | {called:.2f} s{more[0]} | {ratio:.2f}{more[1]} | {most:.0f} MB |")


main()
