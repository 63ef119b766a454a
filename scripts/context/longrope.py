"""Times each token of a generation across LongRoPE's threshold.

    longrope.py MODELS LIBRARY [--rounds N] [--tokens N] [--trained N] [--threads N] [--clock C] [--rewrite COMMAND]

MODELS is where models.py wrote `longrope`. A batch of four texts with padding on the left reaches the trained length in
four different calls. Contestants, by turns in every round, each in a process of its own: the patched model with the op
library, with a growing cache and one of fixed capacity; both by the definition, without the library; and with the cache
computed anew, in one call with all tokens, when the first row crosses. The time of a token is the median of the rounds;
what counts is the slowest token / the median.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

import numpy as np

import runs
import shapes

BATCH, APART, BEFORE = 4, 6, 12  # rows, tokens between their crossings, tokens before the first one


def inputs(trained, tokens):
    width = trained - BEFORE
    mask = np.ones((BATCH, width + tokens), np.int64)
    for row in range(BATCH):
        mask[row, :row * APART] = 0
    ids = np.random.default_rng(5).integers(4, 4096, mask.shape)
    return width, np.where(mask == 1, ids, 0), mask, np.maximum(mask.cumsum(-1) - 1, 0)


def onnx(path, library, trained, tokens, threads, clock, anew):
    width, ids, mask, positions = inputs(trained, tokens)
    decoder = runs.Decoder(path, library, threads, BATCH, clock)

    def step(start, stop):
        return decoder.step(ids[:, start:stop], mask[:, :stop], positions[:, start:stop])[1]

    for start in range(0, width, 512):  # in pieces, as the logits of all tokens at once are large
        step(start, min(width, start + 512))
    times = []
    for i in range(width, width + tokens):
        if anew and i == trained:  # the token at this place is the first beyond
            decoder.reset()
            times.append(step(0, i + 1))
        else:
            times.append(step(i, i + 1))
    return times


def patch(a, folder):
    source = os.path.join(a.models, "longrope", "model.onnx")
    spec = "longrope:length=run,factor=32,original_max_position_embeddings=%d,short_factor=[%s],long_factor=[%s]" % (
        a.trained, ";".join(f"{x:g}" for x in shapes.SHORT), ";".join(f"{x:g}" for x in shapes.LONG))
    paths = {}
    for name, more in {"growing": [], "fixed": ["--kv", f"fixed:capacity={a.trained + a.tokens}"]}.items():
        paths[name] = os.path.join(folder, f"{name}-{a.trained}-{a.tokens}.onnx")
        subprocess.run([a.rewrite, source, "-o", paths[name], "--force", "--scaling", spec, *more], check=True, stdout=subprocess.DEVNULL)
    return paths


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models")
    p.add_argument("library")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--tokens", type=int, default=48)
    p.add_argument("--trained", type=int, default=4096)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--clock", choices=list(runs.CLOCKS), default="processor", help="processor time, or wall for a quiet machine")
    p.add_argument("--rewrite", default="build/rope-rewrite")
    p.add_argument("--one", nargs=3, help=argparse.SUPPRESS)  # a contestant in its own process
    a = p.parse_args()
    if a.one:
        path, library, way = a.one
        return print(json.dumps(onnx(path, library if library != "none" else "", a.trained, a.tokens, a.threads, a.clock, way == "anew")))
    paths = patch(a, os.path.join(a.models, "longrope"))
    contestants = {f"{host}, {cache} cache": (paths[cache], library, "on")
                   for host, library in (("library", a.library), ("definition", "none")) for cache in paths}
    contestants["library, growing cache, computed anew"] = (paths["growing"], a.library, "anew")
    seen = {name: [] for name in contestants}
    for _ in range(a.rounds):
        for name, one in contestants.items():
            own = ["--tokens", str(a.tokens), "--trained", str(a.trained), "--threads", str(a.threads), "--clock", a.clock, "--one", *one]
            out = subprocess.run([sys.executable, __file__, a.models, a.library, *own], check=True, capture_output=True, text=True).stdout
            seen[name].append(json.loads(out.strip().splitlines()[-1]))
    crossings = [BEFORE + row * APART for row in range(BATCH)]
    print(f"{BATCH} rows, trained length {a.trained}, {a.tokens} tokens, crossing at the tokens {crossings}; {a.threads} thread(s), {a.clock} time, medians of {a.rounds}\n")
    print("| | median token | slowest token | slowest / median | the call in which the first row crosses / median |\n|---|---|---|---|---|")
    for name, rounds in seen.items():
        tokens = [statistics.median(t) for t in zip(*rounds)]
        middle = statistics.median(tokens)
        print(f"| {name} | {1e3 * middle:.1f} ms | {1e3 * max(tokens):.1f} ms | {max(tokens) / middle:.2f} | {tokens[crossings[0]] / middle:.2f} |")


if __name__ == "__main__":
    main()
