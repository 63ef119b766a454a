#!/usr/bin/env python3
"""Shows where one token spends its time in a model with a long cache, or a prompt in one with none.

profile-token.py LIBROPE_OPS MODEL.onnx ... [--keys 4096] [--prompt] [--threads 1,2]

Caches hold random numbers: what they are makes no difference to the time. One of fixed capacity is bound to past and
present. The median of 15 calls is without the profiler, the shares of the ops are of 12 calls with it. With --prompt
one call has all the keys as its tokens; it is run once before.
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


def feed(value, past, count, rng):
    """What an input holds for `count` tokens after `past` others."""
    if value.name == "input_ids":
        return rng.integers(1, 49000, (1, count))
    if value.name == "attention_mask":
        return np.ones((1, past + count), np.int64)
    if value.name == "position_ids":
        return np.arange(past, past + count)[None]
    if value.name == "cache_length":
        return np.array([past], np.int32)
    sizes = [1 if i == 0 else d if isinstance(d, int) else past for i, d in enumerate(value.shape)]
    if value.type == "tensor(int8)":
        return rng.integers(-127, 127, sizes).astype(np.int8)
    if value.name.endswith("_scale"):
        return np.full(sizes, 0.02, np.float32)
    return rng.normal(size=sizes).astype(TYPES[value.type])


def bound(s, past, count):
    rng = np.random.default_rng(0)
    binding = s.io_binding()
    fixed = any(value.name == "cache_length" for value in s.get_inputs())
    buffers = {}
    for value in s.get_inputs():
        fed = ort.OrtValue.ortvalue_from_numpy(feed(value, past, count, rng))
        binding.bind_ortvalue_input(value.name, fed)
        if fixed and len(value.shape) > 2:
            buffers[value.name.replace("past_key_values", "present")] = fed
    for value in s.get_outputs():
        if value.name in buffers:
            binding.bind_ortvalue_output(value.name, buffers[value.name])
        else:
            binding.bind_output(value.name, "cpu")
    return binding


def seconds(s, past, count, calls, before=3):
    binding, times = bound(s, past, count), []
    for _ in range(calls + before):
        start, busy = time.perf_counter(), time.process_time()
        s.run_with_iobinding(binding)
        times.append((time.perf_counter() - start, time.process_time() - busy))
    return [statistics.median(kind) for kind in zip(*times[before:])]


def shares(s, past, count, calls, before):
    seconds(s, past, count, calls, before)
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
    parser.add_argument("--prompt", action="store_true")
    parser.add_argument("--threads", default="1,2")
    a = parser.parse_args()
    past, count = (0, a.keys) if a.prompt else (a.keys - 1, 1)
    calls, before = (1, 1) if a.prompt else (15, 3)
    for threads in map(int, a.threads.split(",")):
        for model in a.models:
            clock, processor = seconds(session(model, a.library, threads), past, count, calls, before)
            prefix = os.path.join(tempfile.gettempdir(), "profile-token")
            parts = shares(session(model, a.library, threads, prefix), past, count, 1 if a.prompt else 9, before)
            text = ", ".join(f"{name} {100 * share:.1f} %" for name, share in parts)
            name = os.path.join(*os.path.abspath(model).split(os.sep)[-2:])
            print(f"{name}, {threads} threads: {1e3 * clock:.1f} ms (processor {1e3 * processor:.1f}); {text}", flush=True)


if __name__ == "__main__":
    main()
