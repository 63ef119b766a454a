#!/usr/bin/env python3
"""Shows where one token spends its time in a model with a long growing cache.

profile-token.py LIBROPE_OPS MODEL.onnx ... [--keys 4096] [--threads 1,2]

Caches hold random numbers: what they are makes no difference to the time. The median of 15 calls is
without the profiler, the shares of the ops are of 12 calls with it.
"""
import argparse
import collections
import json
import os
import statistics
import tempfile
import time

import numpy as np
import onnxruntime as ort

TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int8)": np.int8}


def session(model, library, threads, profile=None):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.register_custom_ops_library(library)
    if profile:
        options.enable_profiling, options.profile_file_prefix = True, profile
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def feed(value, past, rng):
    """What an input holds for one token after `past` others."""
    if value.name == "input_ids":
        return rng.integers(1, 49000, (1, 1))
    if value.name == "attention_mask":
        return np.ones((1, past + 1), np.int64)
    if value.name == "position_ids":
        return np.array([[past]])
    sizes = [1 if i == 0 else d if isinstance(d, int) else past for i, d in enumerate(value.shape)]
    if value.type == "tensor(int8)":
        return rng.integers(-127, 127, sizes).astype(np.int8)
    if value.name.endswith("_scale"):
        return np.full(sizes, 0.02, np.float32)
    return rng.normal(size=sizes).astype(TYPES[value.type])


def bound(s, past):
    rng = np.random.default_rng(0)
    binding = s.io_binding()
    for value in s.get_inputs():
        binding.bind_ortvalue_input(value.name, ort.OrtValue.ortvalue_from_numpy(feed(value, past, rng)))
    for value in s.get_outputs():
        binding.bind_output(value.name, "cpu")
    return binding


def seconds(s, past, calls):
    binding, times = bound(s, past), []
    for _ in range(calls + 3):
        start = time.perf_counter()
        s.run_with_iobinding(binding)
        times.append(time.perf_counter() - start)
    return statistics.median(times[3:])


def shares(s, past):
    seconds(s, past, 9)
    path = s.end_profiling()
    with open(path) as file:
        events = json.load(file)
    os.remove(path)
    total = collections.Counter()
    for e in events:
        if e.get("cat") == "Node" and e["name"].endswith("_kernel_time"):
            total[e["args"]["op_name"]] += e["dur"]
    everything = sum(total.values())
    return [(name, micros / everything) for name, micros in total.most_common(4)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("library")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--keys", type=int, default=4096)
    parser.add_argument("--threads", default="1,2")
    a = parser.parse_args()
    for threads in map(int, a.threads.split(",")):
        for model in a.models:
            ms = 1e3 * seconds(session(model, a.library, threads), a.keys - 1, 15)
            prefix = os.path.join(tempfile.gettempdir(), "profile-token")
            parts = shares(session(model, a.library, threads, prefix), a.keys - 1)
            text = ", ".join(f"{name} {100 * share:.1f} %" for name, share in parts)
            print(f"{os.path.basename(model)}, {threads} threads: {ms:.1f} ms; {text}")


if __name__ == "__main__":
    main()
