"""Writes trials.json: the prompts of the tasks passkey and needles at five lengths, made anew without any of
rope-rewrite's code, down to the drawn numbers.

    python cmd/internal/evaluation/testdata/make_trials.py     # tokenizers 0.22, jinja2 3.1, pyyaml 6

Every trial is there with its answers and the SHA-256 of its token ids, written with commas between them; those of
the shortest length with the ids themselves. The tokenizer and the chat template are SmolLM2's.
"""

import bisect
import datetime
import hashlib
import json
import pathlib
import re

import jinja2
import tokenizers
import yaml

here = pathlib.Path(__file__).parent
MODEL = here.parents[3] / "testdata/smollm2"
LENGTHS, DEPTHS, SAMPLES, SEED = [512, 1000, 2048, 4095, 8192], [0.1, 0.5, 0.9], 3, 1
SLACK = 8  # tokens that two samples of a cell may differ by
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
        self.forms = {t: yaml.safe_load((here.parent / "forms" / f"{t}.yaml").read_text()) for t in TASKS}
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


def main() -> None:
    prompts = Prompts(MODEL, SEED)
    cells = []
    for task in TASKS:
        for length in LENGTHS:
            trials = []
            for depth in DEPTHS:
                for sample in range(SAMPLES):
                    ids, answers = prompts.trial(task, length, depth, sample)
                    digest = hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest()
                    trial = {"depth": depth, "index": sample, "answers": answers, "tokens": len(ids), "sha256": digest}
                    trials.append(trial | ({"ids": ids} if length == LENGTHS[0] else {}))
            cells.append({"task": task, "length": length, "trials": trials})
    golden = {"depths": DEPTHS, "samples": SAMPLES, "seed": SEED, "cells": cells}
    (here / "trials.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
