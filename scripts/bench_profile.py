"""Says where a model's first token spends its time, by op, in ONNX Runtime's own profile, and its memory.

    python scripts/bench_profile.py LIBROPE_OPS LENGTH MODEL...

One thread, one run after one of 16 tokens, random tokens, each model in a process of its own. The
resident memory is that after loading, and the largest; outputs are not copied.
Models as GenAI's builder or Optimum writes them, with a config.json beside: inputs other
than input_ids are a mask of ones, positions that count, and an empty float32 cache.
"""

import collections
import json
import os
import resource
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime as ort


def feeds(session, length, head_size):
    ids = np.random.default_rng(1).integers(1, 1000, (1, length))
    out = {}
    for i in session.get_inputs():
        if i.name == "attention_mask":
            out[i.name] = np.ones((1, length), np.int64)
        elif i.name == "position_ids":
            out[i.name] = np.arange(length)[None]
        elif i.name == "input_ids":
            out[i.name] = ids
        else:
            out[i.name] = np.zeros((1, i.shape[1], 0, head_size), np.float32)
    return out


def profile(library, length, model, folder):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.register_custom_ops_library(library)
    options.enable_profiling = True
    options.profile_file_prefix = os.path.join(folder, "profile")
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    with open(os.path.join(os.path.dirname(model), "config.json")) as f:
        config = json.load(f)
    head_size = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for tokens in (16, length):
        binding = session.io_binding()
        for name, value in feeds(session, tokens, head_size).items():
            binding.bind_cpu_input(name, value)
        for o in session.get_outputs():
            binding.bind_output(o.name, "cpu")
        session.run_with_iobinding(binding)
    with open(session.end_profiling()) as f:
        events = json.load(f)
    start, end = max((e["ts"], e["ts"] + e["dur"]) for e in events if e["name"] == "model_run")
    total = collections.Counter()
    for e in events:
        if e["cat"] == "Node" and e["name"].endswith("_kernel_time") and start <= e["ts"] <= end:
            total[e["args"]["op_name"]] += e["dur"] / 1e6
    parts = ", ".join(f"{op} {t:.2f} s" for op, t in total.most_common(5))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{model}: {(end - start) / 1e6:.2f} s ({parts}); {loaded / 1024:.0f} MB loaded, {peak / 1024:.0f} MB at most", flush=True)


def main():
    library, length, models = sys.argv[1:3] + [sys.argv[3:]]
    if len(models) > 1:
        for model in models:
            subprocess.run([sys.executable, __file__, library, length, model], check=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        profile(os.path.abspath(library), int(length), models[0], folder)


main()
