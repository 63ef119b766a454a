"""What `rope-rewrite eval` measures, without any of its code: numbers are drawn and each prompt of the tasks passkey and
needles is built from its form, ONNX Runtime's Python package runs the model, numpy makes log-probabilities, and scipy
the interval of a perplexity (Student's t).

    python cmd/internal/evaluation/testdata/evaluate.py     # writes trials.json and samples.json beside it
    python cmd/internal/evaluation/testdata/evaluate.py MODEL.onnx FOLDER RESULTS VARIANT [--text FILE]

The second repeats the samples of a variant in RESULTS (eval's -o) with the tokenizer and chat template in FOLDER: the
whole prompt in one call, then token by token, and each window in one call. MODEL.onnx is the original model for
the variant none, else what `rope-rewrite` wrote for the method. Prints what eval and this script found, by task and
length, and fails where one sample differs.

trials.json has the prompts at five lengths by the tokenizer and chat template of SmolLM2, each with its answers and the
SHA-256 of its token ids, written with commas between them; those of the shortest length with the ids themselves.
samples.json has answers and perplexities of a small model at five lengths.
Made with tokenizers 0.23, jinja2 3.1, pyyaml 6, numpy 2.4, onnxruntime 1.31 and scipy 1.16.
"""

import argparse
import bisect
import collections
import datetime
import hashlib
import json
import pathlib
import re
import sys

import jinja2
import numpy as np
import onnxruntime as ort
import tokenizers
import yaml
from scipy import stats

here = pathlib.Path(__file__).parent
testdata = here.parents[3] / "testdata"
SLACK = 8  # tokens that two samples of a cell may differ by
BLOCK, LAST = 256, 512  # tokens that a number of a window's curve is about, and that the last perplexity is about
CITIES = "London Paris Berlin Madrid Rome Vienna Moscow Tokyo Delhi Cairo Sydney Toronto Chicago Boston Dublin Lisbon".split()
W64, W128 = (1 << 64) - 1, (1 << 128) - 1


class Random:
    """PCG-DXSM with 128 bits of state (O'Neill), and numbers below n by the upper half of a product (Lemire)."""

    def __init__(self, high: int, low: int):
        self.state = high << 64 | low

    def bits(self) -> int:
        multiplier, increment = 2549297995355413924 << 64 | 4865540595714422341, 6364136223846793005 << 64 | 1442695040888963407
        self.state = (self.state * multiplier + increment) & W128
        high, low = self.state >> 64, self.state & W64
        high ^= high >> 32
        high = high * 0xDA942042E4DD58B5 & W64
        high ^= high >> 48
        return high * (low | 1) & W64

    def below(self, n: int) -> int:
        if n & (n - 1) == 0:
            return self.bits() & (n - 1)
        product = self.bits() * n
        if product & W64 < n:
            while product & W64 < (1 << 64) % n:
                product = self.bits() * n
        return product >> 64

    def shuffled(self, n: int) -> list[int]:
        list_ = list(range(n))
        for i in range(n - 1, 0, -1):
            j = self.below(i + 1)
            list_[i], list_[j] = list_[j], list_[i]
        return list_


def random(task: str, length: int, depth: float, sample: int, seed: int) -> Random:
    h = seed
    for b in f"{task} {length} {repr(float(depth)).removesuffix('.0')} {sample}".encode():
        h = (h ^ b) * 1099511628211 & W64  # FNV-1a
    return Random(seed, h)


def number(rng: Random) -> str:
    return str(10000 + rng.below(90000))


def passkey(form: dict, rng: Random) -> tuple[list[str], list[str], dict]:
    key = number(rng)
    return [form["needle"].replace("{key}", key)], [key], {}


def needles(form: dict, rng: Random) -> tuple[list[str], list[str], dict]:
    hidden, keys, names = [], [], []
    for at in rng.shuffled(len(CITIES))[: form["needles"]]:
        name, key = CITIES[at], number(rng)
        hidden.append(form["needle"].replace("{name}", name).replace("{key}", key))
        keys.append(key)
        names.append(name)
    return hidden, keys, {"name": names[0], "names": ", ".join(names)}


def filled(text: str, values: dict) -> str:
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


TASKS = {"passkey": passkey, "needles": needles}


class Prompts:
    """Makes the prompts of a model's folder, in plain text where it has no chat template."""

    def __init__(self, folder: pathlib.Path, seed: int):
        self.seed = seed
        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        file = folder / "chat_template.jinja"
        self.template = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(file.read_text()) if file.exists() else None
        self.forms = {t: yaml.safe_load((here.parent / "task/forms" / f"{t}.yaml").read_text()) for t in TASKS}
        self.units = {}  # sentences of the haystack, by task and length

    def ids(self, form: dict, puzzle: tuple, units: int, depth: float) -> list[int]:
        hidden, _, asked = puzzle
        sentences = re.findall(r".+?[.!?]\s+", form["haystack"])
        text, at = form["before"], 0
        for i, needle in enumerate(hidden):
            until = int((depth + (1 - depth) * i / len(hidden)) * units + 0.5)
            text += "".join(sentences[k % len(sentences)] for k in range(at, until)) + needle
            at = max(at, until)
        text += "".join(sentences[k % len(sentences)] for k in range(at, units)) + "\n\n" + filled(form["question"], asked)
        answer = filled(form["answer"], asked)
        if self.template is None:
            return self.tokenizer.encode(text + "\n" + answer).ids
        date = datetime.date.today().strftime("%d %b %Y")
        chat = self.template.render(messages=[{"role": "user", "content": text}], add_generation_prompt=True, bos_token="<|im_start|>", eos_token="<|im_end|>", date_string=date)
        return self.tokenizer.encode(chat + answer, add_special_tokens=False).ids

    def trial(self, task: str, length: int, depth: float, sample: int) -> tuple[list[int], list[str]]:
        """The ids of a prompt, and the answers that are hidden in it."""
        form, draw = self.forms[task], TASKS[task]
        if (task, length) not in self.units:
            first, room = draw(form, random(task, length, 0, 0, self.seed)), length - form["tokens"] - SLACK
            long = lambda n: len(self.ids(form, first, n, 0)) > room
            self.units[task, length] = bisect.bisect_left(range(length), True, key=long) - 1
        puzzle = draw(form, random(task, length, depth, sample, self.seed))
        return self.ids(form, puzzle, self.units[task, length], depth), puzzle[1]


class Model:
    """A decoder with a cache that grows, one row at a time."""

    def __init__(self, path: pathlib.Path, library: str | None = None):
        options = ort.SessionOptions()
        if library:
            options.register_custom_ops_library(library)
        self.session = ort.InferenceSession(path, options)
        self.inputs = {x.name: x.shape for x in self.session.get_inputs()}
        self.outputs = [x.name for x in self.session.get_outputs()]

    def empty(self) -> dict:
        sizes = lambda shape: [d if isinstance(d, int) else int(axis == 0) for axis, d in enumerate(shape)]
        return {name: np.zeros(sizes(shape), np.float32) for name, shape in self.inputs.items() if name.startswith("past")}

    def forward(self, ids: list[int], seen: int, past: dict, documents: list[int] | None = None) -> tuple[np.ndarray, dict]:
        feeds = {"input_ids": [ids], "attention_mask": np.ones((1, seen + len(ids))), "position_ids": [np.arange(seen, seen + len(ids))]}
        feeds["document_ids"] = [documents or [1] * (seen + len(ids))]
        feeds = {name: np.asarray(x, np.int64) for name, x in feeds.items() if name in self.inputs}
        values = dict(zip(self.outputs, self.session.run(self.outputs, feeds | past)))
        return values["logits"][0], {name: values[name.replace("past_key_values", "present")] for name in past}

    def answer(self, ids: list[int], most: int, ends: list[int], documents: list[int] | None = None) -> tuple[list[int], float]:
        """What the model goes on with, greedily, and by how much the closest choice was made. The answer is of the last document."""
        past, seen, step, out, margin = self.empty(), 0, ids, [], float("inf")
        while len(out) < most:
            logits, past = self.forward(step, seen, past, documents and documents + documents[-1:] * len(out))
            second, first = np.sort(logits[-1])[-2:]
            margin, token = min(margin, float(first - second)), int(logits[-1].argmax())
            if token in ends:
                break
            out.append(token)
            step, seen = [token], seen + len(step)
        return out, margin

    def losses(self, window: list[int]) -> np.ndarray:
        """The negative log-probability of each token of a window but the first."""
        out = []
        for row, token in zip(self.forward(window, 0, self.empty())[0], window[1:]):
            row = row.astype(np.float64)
            top = row.max()
            out.append(top + np.log(np.exp(row - top).sum()) - row[token])
        return np.array(out)


def window(ids: list[int], windows: int, longest: int, index: int, length: int) -> list[int]:
    """A window of a text. Windows do not overlap: there are as many as the longest have room for."""
    count = min(windows, len(ids) // longest)
    start = index * (len(ids) - longest) // (count - 1) if count > 1 else 0
    return ids[start : start + length]


def curve(losses: np.ndarray) -> list[float]:
    """The mean of each block. Token t is predicted by row t − 1, so that the first block has one token less."""
    return [float(losses[max(b - 1, 0) : b + BLOCK - 1].mean()) for b in range(0, len(losses) + 1, BLOCK)]


def up_to(losses: np.ndarray, length: int) -> tuple[float, float]:
    """The mean of the tokens up to a length, and of the last ones of these: tokens 1 … length − 1 are rows 0 … length − 2."""
    return float(losses[: length - 1].mean()), float(losses[: length - 1][-LAST:].mean())


def reading(length: int, means: list[tuple[float, float]]) -> dict:
    """What windows show up to a length."""
    all_, last = np.array(means).T
    r = {"length": length, "perplexity": float(np.exp(all_.mean())), "last": float(np.exp(last.mean()))}
    if len(means) > 1:
        low, high = stats.t.interval(0.95, len(means) - 1, all_.mean(), stats.sem(all_))
        r |= {"low": float(np.exp(low)), "high": float(np.exp(high))}
    return r


def ends(folder: pathlib.Path) -> list[int]:
    return np.atleast_1d(json.loads((folder / "generation_config.json").read_text())["eos_token_id"]).tolist()


def right(form: dict, wanted: list[str], text: str) -> bool:
    return sum(w in text for w in wanted) >= form.get("need", len(wanted))


def write_trials() -> None:
    lengths, depths, samples, seed = [512, 1000, 2048, 4095, 8192], [0.1, 0.5, 0.9], 3, 1
    prompts = Prompts(testdata / "smollm2", seed)
    cells = []
    for task in TASKS:
        for length in lengths:
            trials = []
            for depth in depths:
                for sample in range(samples):
                    ids, answers = prompts.trial(task, length, depth, sample)
                    digest = hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest()
                    trial = {"depth": depth, "index": sample, "answers": answers, "tokens": len(ids), "sha256": digest}
                    trials.append(trial | ({"ids": ids} if length == lengths[0] else {}))
            cells.append({"task": task, "length": length, "trials": trials})
    golden = {"depths": depths, "samples": samples, "seed": seed, "cells": cells}
    (here / "trials.json").write_text(json.dumps(golden) + "\n")


def write_samples() -> None:
    folder, model, seed = testdata / "lm", Model(testdata / "models/llama__optimum/model.onnx"), 3  # by which no choice of a token is close
    prompts = Prompts(folder, seed)
    golden = {"seed": seed, "depths": [0.25, 0.75], "answers": []}
    golden["student"] = {str(v): float(stats.t.ppf(0.975, v)) for v in (1, 2, 3, 7, 30, 1000)}
    for task in TASKS:
        for length in [512, 640, 700, 1000, 1300]:
            for depth in golden["depths"]:
                ids, wanted = prompts.trial(task, length, depth, 0)
                out, margin = model.answer(ids, prompts.forms[task]["tokens"], ends(folder))
                assert margin > 1e-3, "another ONNX Runtime may choose another token"
                text = prompts.tokenizer.decode(out)
                sample = {"task": task, "length": length, "depth": depth, "index": 0, "right": right(prompts.forms[task], wanted, text)}
                golden["answers"].append(sample | {"wanted": wanted, "answer": text, "tokens": len(ids)})
    text, lengths, windows = "".join(f"{i} times {i % 7} is {i * (i % 7)}, and no more. " for i in range(120)), [200, 300, 512, 700, 1000], 3
    ids = prompts.tokenizer.encode(text, add_special_tokens=False).ids
    each = [model.losses(window(ids, windows, max(lengths), i, max(lengths))) for i in range(windows)]
    golden |= {"text": text, "windows": windows, "log_loss": [curve(x) for x in each]}
    golden["readings"] = [reading(n, [up_to(x, n) for x in each]) for n in lengths]
    (here / "samples.json").write_text(json.dumps(golden) + "\n")


class Again:
    """Repeats samples, and remembers what differs."""

    def __init__(self, model: Model, folder: pathlib.Path, title: dict, text: str):
        self.model, self.title, self.different, self.far = model, title, 0, 0.0
        self.prompts, self.ends = Prompts(folder, title["Seed"]), ends(folder)
        self.found = collections.defaultdict(lambda: [0, 0, 0])  # samples, and those right by eval and here
        self.means = collections.defaultdict(lambda: ([], []))  # of windows, by eval and here
        if text and hashlib.sha256(text.encode()).hexdigest() != title["Text"]:
            sys.exit("--text is not the text that eval read")
        self.ids = self.prompts.tokenizer.encode(text, add_special_tokens=False).ids

    def differs(self, s: dict, by_eval: object, here: object) -> None:
        self.different += 1
        print(f"{s['task']}, {s['length']} tokens, depth {s['depth']}, sample {s['index']}: {by_eval!r} by eval, {here!r} here")

    def question(self, s: dict) -> None:
        task, form = s["task"], self.prompts.forms[s["task"]]
        ids, wanted = self.prompts.trial(task, s["length"], s["depth"], s["index"])
        if len(ids) != s["tokens"] or wanted != s["wanted"]:
            return self.differs(s, (s["tokens"], s["wanted"]), (len(ids), wanted))
        text = self.prompts.tokenizer.decode(self.model.answer(ids, form["tokens"], self.ends)[0])
        count, found = self.found[task, s["length"]], right(form, wanted, text)
        count[0], count[1], count[2] = count[0] + 1, count[1] + s["right"], count[2] + found
        said, here = s["answer"].strip(), text.strip()
        if found != s["right"] or not here.startswith(said) or not found and here != said:  # eval ends where it finds enough
            self.differs(s, s["answer"], text)

    def window(self, s: dict) -> None:
        losses = self.model.losses(window(self.ids, self.title["Windows"], max(self.title["Lengths"]), s["index"], s["length"]))
        pairs = list(zip(s["log_loss"], curve(losses), strict=True))
        for u in s["up_to"]:
            here = up_to(losses, u["length"])
            pairs += zip((u["all"], u["last"]), here)
            by_eval, mine = self.means[s["length"], u["length"]]
            by_eval.append((u["all"], u["last"]))
            mine.append(here)
        far, by_eval, here = max((abs(a - b) / b, a, b) for a, b in pairs)
        self.far = max(self.far, far)
        if far > 1e-5:
            self.differs(s, by_eval, here)

    def say(self, variant: str) -> None:
        for (task, length), (n, by_eval, here) in sorted(self.found.items()):
            print(f"{variant}, {task}, {length} tokens: eval found {by_eval} of {n}, this script {here}")
        for (longest, length), both in sorted(self.means.items()):
            by_eval, here = (reading(length, x) for x in both)
            numbers = ", ".join(f"{name} {by_eval[name]:.5f} and {here[name]:.5f}" for name in list(here)[1:])
            print(f"{variant}, perplexity of {len(both[0])} windows of {longest}, {length} tokens, by eval and this script: {numbers}")
        if self.means:
            print(f"largest difference of a mean log-probability: {self.far:.1e} of it")
        if self.different or not self.found and not self.means:
            sys.exit(f"{self.different} samples differ" if self.different else f"no sample of {variant} is there")


def repeat() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("model")
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("results", type=pathlib.Path)
    p.add_argument("variant")
    p.add_argument("--text", type=pathlib.Path, help="the text of perplexity, which is left out without it")
    p.add_argument("--library", help="of the op, for a rewritten model")
    p.add_argument("--most", type=int, default=10**9, help="longest prompt or window")
    a = p.parse_args()
    title, *samples = [json.loads(x) for x in (a.results / "samples.jsonl").read_text().splitlines()]
    again = Again(Model(a.model, a.library), a.folder, title, a.text.read_text() if a.text else "")
    for s in samples:
        if s["variant"] != a.variant or s["length"] > a.most:
            continue
        if s["task"] in TASKS:
            again.question(s)
        elif s["task"] == "perplexity" and a.text:
            again.window(s)
    again.say(a.variant)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        repeat()
    else:
        write_trials()
        write_samples()
