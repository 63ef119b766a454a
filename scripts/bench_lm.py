#!/usr/bin/env python3
"""Times one model in the Go package lm, in Python's ONNX Runtime and in ONNX Runtime GenAI, by turns.

    bench_lm.py SMOLLM2 FOLDER [--context N] [--tokens N] [--rounds N] [--threads N]

SMOLLM2 is the built cmd/dev/smollm2, FOLDER holds a model of GenAI's builder (model.onnx, genai_config.json). Each
contestant is a process of its own: a prompt of N tokens in one call, then single tokens, the best one each time. Times
are those of the processor. The Python needs onnxruntime and onnxruntime-genai of the same version of ONNX Runtime.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time


def texts(n):
    return [(7 * i * i + 13 * i) % 40000 + 100 for i in range(n)]


def lm(a):
    task = {"model": os.path.join(a.folder, "model.onnx"), "threads": a.threads, "texts": [texts(a.context)], "steps": a.tokens, "chunk": a.context}
    out = subprocess.run([a.smollm2, "probe"], input=json.dumps(task), check=True, capture_output=True, text=True).stdout
    s = json.loads(out)["steps"]
    return s["prompt_cpu"], s["cpu"]


def python(a):
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = a.threads
    session = onnxruntime.InferenceSession(os.path.join(a.folder, "model.onnx"), options)
    names = [i.name for i in session.get_inputs()]
    with open(os.path.join(a.folder, "config.json")) as f:
        config = json.load(f)
    size = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    past = {i.name: np.zeros((1, i.shape[1], 0, size), np.float32) for i in session.get_inputs() if len(i.shape) == 4}
    outputs = [o.name for o in session.get_outputs()]

    def step(ids, held):
        nonlocal past
        feeds = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, held + len(ids)), np.int64), **past}
        if "position_ids" in names:
            feeds["position_ids"] = np.arange(held, held + len(ids))[None]
        logits, *present = session.run(outputs, feeds)
        past = dict(zip(past, present))
        return int(logits[0, -1].argmax())

    empty = dict(past)
    step(texts(16), 0)
    past = empty
    return timed(a, step)


def genai(a):
    import onnxruntime_genai as og

    with open(os.path.join(a.folder, "genai_config.json")) as f:
        config = json.load(f)
    config["model"]["decoder"].setdefault("session_options", {})["intra_op_num_threads"] = a.threads
    config["search"]["past_present_share_buffer"] = False  # lm and Python grow their caches
    place = os.path.join(a.folder, "bench")
    os.makedirs(place, exist_ok=True)
    for name in os.listdir(a.folder):
        path = os.path.join(place, name)
        if name not in ("bench", "genai_config.json") and not os.path.lexists(path):
            os.symlink(os.path.join(os.path.abspath(a.folder), name), path)
    with open(os.path.join(place, "genai_config.json"), "w") as f:
        json.dump(config, f)
    model = og.Model(place)
    params = og.GeneratorParams(model)
    params.set_search_options(max_length=a.context + a.tokens + 8, do_sample=False)
    og.Generator(model, params).append_tokens(texts(16))
    generator = og.Generator(model, params)

    def step(ids, held):
        if held == 0:
            generator.append_tokens(ids)
        generator.generate_next_token()
        return 0

    return timed(a, step)


def timed(a, step):
    start = time.process_time()
    token = step(texts(a.context), 0)
    prompt = time.process_time() - start
    held = a.context
    for _ in range(2):
        token = step([token], held)
        held += 1
    start = time.process_time()
    for _ in range(a.tokens):
        token = step([token], held)
        held += 1
    return prompt, (time.process_time() - start) / a.tokens


CONTESTANTS = {"lm (Go)": lm, "ONNX Runtime (Python)": python, "ONNX Runtime GenAI": genai}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("smollm2")
    p.add_argument("folder")
    p.add_argument("--context", type=int, default=512)
    p.add_argument("--tokens", type=int, default=64)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--one", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.one:
        return print(json.dumps(CONTESTANTS[a.one](a)))
    seen = {name: [] for name in CONTESTANTS}
    for _ in range(a.rounds):
        for name in CONTESTANTS:
            out = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--one", name], check=True, capture_output=True, text=True).stdout
            seen[name].append(json.loads(out.strip().splitlines()[-1]))
    middle = {name: [statistics.median(r[k] for r in rounds) for k in (0, 1)] for name, rounds in seen.items()}
    base = middle["ONNX Runtime (Python)"]
    print(f"a prompt of {a.context} tokens, then {a.tokens} single ones; {a.threads} thread(s), processor time, medians of {a.rounds}\n")
    print("| | prompt | / Python | token | / Python |\n|---|---|---|---|---|")
    for name, (prompt, token) in middle.items():
        print(f"| {name} | {prompt:.2f} s | {prompt / base[0]:.3f} | {1e3 * token:.2f} ms | {token / base[1]:.3f} |")


if __name__ == "__main__":
    main()
