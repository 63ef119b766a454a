"""Times single tokens of a model whose layers all have a window, from half a window to four windows and more.

    window.py MODELS LIBRARY [--rounds N] [--tokens N] [--threads N] [--clock C] [--rewrite COMMAND]

MODELS is where models.py wrote `window` (opset 23). Contestants, by turns in every round, each in a process of its own: the
original with its growing cache; the patched model with a growing cache and one of fixed capacity, with the op library and by
the definition. The time is the median of the tokens after each context, and of the rounds.
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

PLACES = [0.5, 1, 2, 3, 4]  # contexts in windows


def onnx(path, library, window, tokens, threads, clock):
    decoder = runs.Decoder(path, library, threads, 1, clock)
    rng = np.random.default_rng(5)

    def step(n):
        ids, end = rng.integers(4, 4096, (1, n)), decoder.held + n
        return decoder.step(ids, np.ones((1, end), np.int64), np.arange(decoder.held, end)[None])[1]

    times = []
    for place in PLACES:
        while decoder.held < place * window:
            step(min(256, int(place * window) - decoder.held))
        step(1)  # the first one finds memory that later ones reuse
        times.append(statistics.median(step(1) for _ in range(tokens)))
    return times


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models")
    p.add_argument("library")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--tokens", type=int, default=24)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--clock", choices=list(runs.CLOCKS), default="processor", help="processor time, or wall for a quiet machine")
    p.add_argument("--rewrite", default="build/rope-rewrite")
    p.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.one:
        return print(json.dumps(onnx(a.one[0], a.one[1] if a.one[1] != "none" else "", shapes.WINDOW, a.tokens, a.threads, a.clock)))
    folder = os.path.join(a.models, "window")
    source, capacity = os.path.join(folder, "model.onnx"), int(PLACES[-1] * shapes.WINDOW) + a.tokens + 1
    paths = {}
    for name, more in {"growing": [], "fixed": ["--kv", f"fixed:capacity={capacity}"]}.items():
        paths[name] = os.path.join(folder, f"{name}.onnx")
        subprocess.run([a.rewrite, source, "-o", paths[name], "--force", *more], check=True, stdout=subprocess.DEVNULL)
    contestants = {"original, growing cache": (source, "none"), "library, growing cache": (paths["growing"], a.library),
                   "library, fixed cache": (paths["fixed"], a.library), "definition, growing cache": (paths["growing"], "none"),
                   "definition, fixed cache": (paths["fixed"], "none")}
    seen = {name: [] for name in contestants}
    for _ in range(a.rounds):
        for name, one in contestants.items():
            own = ["--tokens", str(a.tokens), "--threads", str(a.threads), "--clock", a.clock, "--one", *one]
            out = subprocess.run([sys.executable, __file__, a.models, a.library, *own], check=True, capture_output=True, text=True).stdout
            seen[name].append(json.loads(out.strip().splitlines()[-1]))
    print(f"window {shapes.WINDOW}, capacity {capacity}, {a.threads} thread(s), {a.clock} time, medians of {a.tokens} tokens and {a.rounds} rounds\n")
    print("| per token after | " + " | ".join(f"{place:g} × window" for place in PLACES) + " | 4 × / 1 × |\n|" + "---|" * (len(PLACES) + 2))
    for name, rounds in seen.items():
        times = [statistics.median(t) for t in zip(*rounds)]
        print(f"| {name} | " + " | ".join(f"{1e3 * t:.1f} ms" for t in times) + f" | {times[-1] / times[PLACES.index(1)]:.2f} |")


if __name__ == "__main__":
    main()
