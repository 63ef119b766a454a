"""Scores the samples of `rope-rewrite eval` again, without any of its code, and repeats some answers with ONNX Runtime alone.

    rope-rewrite eval FOLDER --task ruler --prompts -o RESULTS     (or suggest, whose scores alone are computed again)
    python cmd/internal/evaluation/testdata/rescore.py RESULTS [--model MODEL.onnx --folder FOLDER --variant NAME --samples 200]

The first part needs RESULTS alone: each score follows from the answers wanted and the one that was given, by the rules of
RULER's authors (string_match_all, string_match_part) or by the number of answers that a task needs; each mean score of
results.json follows from the scores. With a model, answers are computed anew from the prompt's tokens, which
--prompts writes and whose SHA-256 each sample has: the whole prompt in one call, then token by token. The tokens are also read:
the answers wanted must stand in the text. MODEL.onnx is the original model for the variant none, else what
`rope-rewrite` wrote for the method (--library is the op's). Fails where one sample differs.
Made with onnxruntime 1.31, tokenizers 0.23 and numpy 2.4, and evaluate.py beside it.
"""

import argparse
import collections
import hashlib
import json
import pathlib
import random
import sys

PART = ("qa_1", "qa_2")
ALL = ("niah_single_1", "niah_single_2", "niah_single_3", "niah_multikey_1", "niah_multikey_2", "niah_multikey_3",
       "niah_multivalue", "niah_multiquery", "vt", "cwe", "fwe")  # fmt: skip


def score(task: str, wanted: list[str], answer: str, need: int) -> float:
    """The share of what was asked for that is in an answer."""
    if task in ALL:
        return sum(w.lower() in answer.lower() for w in wanted) / len(wanted)
    if task in PART:
        return float(any(w.lower() in answer.lower() for w in wanted))
    return float(sum(w in answer for w in wanted) >= need)


def rescore(title: dict, samples: list[dict], results: dict) -> tuple[int, int]:
    """Compares scores and means; returns how many scores there are, and how many differ."""
    different, means, tasks = 0, collections.defaultdict(list), collections.Counter()
    for s in samples:
        need = title["Forms"][s["task"]]["Need"]
        if s["task"] == "kv":
            need = 1
        here = score(s["task"], s["wanted"], s.get("answer", ""), need)
        means[s["variant"], s["task"], s["length"], s["depth"]].append(here)
        tasks[s["task"]] += 1
        if abs(here - s["score"]) > 1e-12 or s["right"] != (here == 1):
            different += 1
            print(f"{s['task']}, {s['length']} tokens, sample {s['index']}: score {s['score']}, here {here}")
    depths = "cells" in results  # of eval; those of suggest are over all depths
    for c in results["cells" if depths else "measured"]:
        cell = (c["variant"], c["task"], c["length"])
        keys = [k for k in means if k[:3] == cell and (not depths or k[3] == c["depth"])]
        scores = [x for k in keys for x in means.pop(k)]
        here = sum(scores) / len(scores)
        if len(scores) != c["samples"] or abs(here - c["score"]) > 1e-12 or not c["low"] <= here <= c["high"]:
            different += 1
            print(f"{c['task']}, {c['length']} tokens: mean {c['score']} of {c['samples']}, here {here} of {len(scores)}")
    for m in results.get("means", []):
        here = [c["score"] for c in results["cells"] if (c["variant"], c["length"]) == (m["variant"], m["length"]) and c["task"] in ALL + PART]
        if len(here) != len(ALL + PART) or abs(sum(here) / len(here) - m["score"]) > 1e-12:
            different += 1
            print(f"mean of {m['variant']} at {m['length']} tokens: {m['score']}, here {sum(here) / len(here)} of {len(here)} tasks")
    for key in means:
        different += 1
        print(f"{key} is not in results.json")
    print(", ".join(f"{task} {n}" for task, n in tasks.items()))
    return len(samples), different


def repeat(a: argparse.Namespace, title: dict, samples: list[dict]) -> tuple[int, int]:
    """Computes answers anew; returns how many, and how many differ."""
    import evaluate
    import tokenizers

    model, ends = evaluate.Model(a.model, a.library), evaluate.ends(a.folder)
    tokenizer = tokenizers.Tokenizer.from_file(str(a.folder / "tokenizer.json"))
    samples = [s for s in samples if s["variant"] == a.variant and s["length"] <= a.most]
    samples = random.Random(a.seed).sample(samples, min(a.samples, len(samples)))
    different, close = 0, 0
    for s in samples:
        name = f"{s['task']}, {s['length']} tokens, sample {s['index']}"
        if "ids" not in s:
            sys.exit(f"{name} has no tokens: run eval with --prompts")
        if len(s["ids"]) != s["tokens"] or hashlib.sha256(",".join(map(str, s["ids"])).encode()).hexdigest() != s["prompt"]:
            different += 1
            print(f"{name}: the tokens are not those of the prompt")
            continue
        text = tokenizer.decode(s["ids"])
        if missing := [w for w in s["wanted"] if w not in text]:
            different += 1
            print(f"{name}: {missing} cannot be found in the text")
        out, margin = model.answer(s["ids"], title["Forms"][s["task"]]["Tokens"], ends, s.get("documents"))
        here, said = tokenizer.decode(out).strip(), s.get("answer", "").strip()
        # eval ends where it finds everything; before that the answers are the same.
        if not here.startswith(said) or s["score"] < 1 and here != said:
            if margin < 1e-3:  # rounding may choose another token
                close += 1
                continue
            different += 1
            print(f"{name}: {said!r} by eval, {here!r} here")
    if close:
        print(f"{close} answers differ where two tokens are as likely but for rounding")
    return len(samples), different


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("results", type=pathlib.Path)
    p.add_argument("--model")
    p.add_argument("--folder", type=pathlib.Path, help="of the tokenizer")
    p.add_argument("--library", help="of the op, for a rewritten model")
    p.add_argument("--variant", default="none")
    p.add_argument("--samples", type=int, default=200)
    p.add_argument("--most", type=int, default=10**9, help="longest prompt, in tokens")
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    title, *samples = [json.loads(x) for x in (a.results / "samples.jsonl").read_text().splitlines()]
    samples = [s for s in samples if s["task"] != "perplexity"]
    n, different = rescore(title, samples, json.loads((a.results / "results.json").read_text()))
    print(f"scores: {n} computed again, {different} differ")
    if a.model:
        n, other = repeat(a, title, samples)
        print(f"answers: {n} computed again, {other} differ")
        different += other
    if different or not n:
        sys.exit(1)


if __name__ == "__main__":
    main()
