"""Throughput of ModernBERT on texts of different lengths: padded batches beside texts packed into rows.

    packed.py MODELS LIBRARY [--texts N] [--batch N] [--row N] [--rounds N] [--threads N] [--clock C] [--rewrite COMMAND]

MODELS is where models.py wrote `modernbert`. Lengths are log-normal (median 100 tokens, sigma 0.7), at least 8 and at most
512, from one seed. The padded model takes the texts in batches, each as wide as its longest text, in the order in which they
come and sorted by length, which is what a program can do that may wait for all of them. The packed model takes rows of at
most --row tokens, filled first fit in the order in which texts come, one row in a call. All contestants run by turns in every
round, in one process; the time is the median of the rounds. Before that, the texts of the first row are compared with the
same texts alone in the original.
"""
import argparse
import os
import statistics
import subprocess

import numpy as np

import runs


def texts(count, seed=23):
    rng = np.random.default_rng(seed)
    lengths = np.clip(np.exp(rng.normal(np.log(100), 0.7, count)), 8, 512).astype(int)
    return [rng.integers(4, 50000, n) for n in lengths]


def padded(some, size):
    """Batches of texts, each as wide as its longest."""
    calls = []
    for start in range(0, len(some), size):
        batch = some[start:start + size]
        ids, mask = (np.zeros((len(batch), max(map(len, batch))), np.int64) for _ in "im")
        for row, t in enumerate(batch):
            ids[row, :len(t)], mask[row, :len(t)] = t, 1
        calls.append(dict(input_ids=ids, attention_mask=mask))
    return calls


def packed(some, room):
    """Rows of at most room tokens, first fit; and where each text begins: (call, place)."""
    rows, places = [], []
    for t in some:
        row = next((i for i, r in enumerate(rows) if sum(map(len, r)) + len(t) <= room), None)
        if row is None:
            row = len(rows)
            rows.append([])
        places.append((row, sum(map(len, rows[row]))))
        rows[row].append(t)
    return [dict(input_ids=np.concatenate(r)[None], attention_mask=np.ones((1, sum(map(len, r))), np.int64),
                 document_ids=np.concatenate([np.full(len(t), i + 1) for i, t in enumerate(r)])[None]) for r in rows], places


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models")
    p.add_argument("library")
    p.add_argument("--texts", type=int, default=64)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--row", type=int, default=1024)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--clock", choices=list(runs.CLOCKS), default="processor", help="processor time, or wall for a quiet machine")
    p.add_argument("--rewrite", default="build/rope-rewrite")
    a = p.parse_args()
    clock = runs.CLOCKS[a.clock]
    folder = os.path.join(a.models, "modernbert")
    source, target = os.path.join(folder, "model.onnx"), os.path.join(folder, "packed.onnx")
    subprocess.run([a.rewrite, source, "-o", target, "--force", "--mask", "intra-document-reset", "--documents", "input"], check=True, stdout=subprocess.DEVNULL)
    some = texts(a.texts)
    tokens = sum(map(len, some))
    rows, places = packed(some, a.row)
    original, library, definition = runs.session(source, "", a.threads), runs.session(target, a.library, a.threads), runs.session(target, "", a.threads)
    contestants = {"padded, as they come": (original, padded(some, a.batch)),
                   "padded, sorted by length": (original, padded(sorted(some, key=len), a.batch)),
                   "padded, one text a call": (original, padded(some, 1)),
                   "packed, op library": (library, rows), "packed, definition": (definition, rows)}
    for name, session in (("op library", library), ("definition", definition)):
        got, off = session.run(None, rows[0])[0][0], 0.0
        for t, (_, start) in [(t, place) for t, place in zip(some, places) if place[0] == 0]:
            want = original.run(None, padded([t], 1)[0])[0][0]
            off = max(off, np.abs(got[start:start + len(t)] - want).max() / np.ptp(want))
        print(f"texts of the first row are off by {off:.1e} of the range from the same texts alone in the original ({name})")
    seen = {name: [] for name in contestants}
    for _ in range(a.rounds):
        for name, (session, calls) in contestants.items():
            start = clock()
            for call in calls:
                session.run(None, call)
            seen[name].append(clock() - start)
    print(f"\n{a.texts} texts, {tokens} tokens (mean {tokens / a.texts:.0f}, longest {max(map(len, some))}); batches of {a.batch}, rows of at most {a.row}; "
          f"{a.threads} thread(s), {a.clock} time, medians of {a.rounds}\n")
    print("| | places computed / tokens | time | tokens/s | throughput / padded, as they come |\n|---|---|---|---|---|")
    first = statistics.median(seen["padded, as they come"])
    for name, (_, calls) in contestants.items():
        t = statistics.median(seen[name])
        print(f"| {name} | {sum(c['input_ids'].size for c in calls) / tokens:.2f} | {t:.2f} s | {tokens / t:.0f} | {first / t:.2f} |")


if __name__ == "__main__":
    main()
