"""What every host is asked: patched models, calls of them, and the outputs they must give.

A case is a folder CASES/MODEL/METHOD with original.onnx, model.onnx (patched), calls.bin (tensors one after
the other) and calls.json (what and where they are). Hosts in other languages read the same two files and
leave their outputs in HOST.bin, which compare.py reads.
"""
import json
import math
import os
import sys

import numpy as np

PAST, PRESENT = "past_key_values.", "present"


class Case:
    def __init__(self, folder, about):
        self.folder, self.model, self.method, self.arguments = folder, about["model"], about["method"], about["arguments"]
        self.ops, self.limit, self.calls = about["ops"], about["limit"], about["calls"]
        self.targets = about.get("targets", {})  # of --target: why it refused the case, or the ONNX Runtime that it needs
        self.patched = os.path.join(folder, "model.onnx")
        self.original = os.path.join(folder, "original.onnx")

    def target(self, name):
        """The model that --target name made. Raises OwnFault where it made none."""
        if refused := self.targets[name].get("refused"):
            raise OwnFault(refused)
        return os.path.join(self.folder, name + ".onnx")

    @property
    def half(self):
        return any(value.dtype == np.float16 for value in self.calls[0]["outputs"].values())

    def write(self):
        """Calls hold arrays until here."""
        data, calls = bytearray(), []
        for call in self.calls:
            written = {"name": call["name"]}
            for kind in KINDS & call.keys():
                written[kind] = {}
                for name, value in call[kind].items():
                    written[kind][name] = {"type": str(value.dtype), "shape": value.shape, "at": len(data), "bytes": value.nbytes}
                    data += np.ascontiguousarray(value).tobytes()
                    data += bytes(-len(data) % 8)
            calls.append(written)
        with open(os.path.join(self.folder, "calls.bin"), "wb") as f:
            f.write(data)
        with open(os.path.join(self.folder, "calls.json"), "w") as f:
            json.dump({"model": self.model, "method": self.method, "arguments": self.arguments,
                       "ops": self.ops, "limit": self.limit, "targets": self.targets, "calls": calls}, f, indent=1)


KINDS = {"inputs", "outputs", "original"}  # outputs: with the library; original: of the unpatched model


def tensor(data, about):
    array = np.frombuffer(data, about["type"], count=math.prod(about["shape"]), offset=about["at"])
    return array.reshape(about["shape"])


def read(folder):
    with open(os.path.join(folder, "calls.json")) as f:
        about = json.load(f)
    with open(os.path.join(folder, "calls.bin"), "rb") as f:
        data = f.read()
    for call in about["calls"]:
        for kind in KINDS & call.keys():
            call[kind] = {name: tensor(data, where) for name, where in call[kind].items()}
    return Case(folder, about)


def read_all(cases):
    """In the order of methods.txt, which cases.json keeps."""
    with open(os.path.join(cases, "cases.json")) as f:
        return [read(os.path.join(cases, folder)) for folder in json.load(f)]


def difference(got, want, real=None):
    """Relative to the largest number that is wanted; infinite where shapes differ or a number is missing."""
    worst = 0.0
    for name, w in want.items():
        g = np.asarray(got[name])
        if g.shape != w.shape or g.dtype != w.dtype:
            return math.inf
        g, w = g.astype(np.float64), w.astype(np.float64)
        if real is not None:
            g, w = of_real_tokens(name, g, real), of_real_tokens(name, w, real)
        if not np.isfinite(g).all():
            return math.inf
        if g.size:
            worst = max(worst, float(np.abs(g - w).max() / max(np.abs(w).max(), 1e-30)))
    return worst


def of_real_tokens(name, value, mask):
    """Logits [batch, length, …] and caches [batch, heads, keys, …] of tokens that are not padding: for the
    others exporters and the op may give something else."""
    real = mask.astype(bool)
    if name.startswith(PRESENT):
        places = np.zeros((real.shape[0], value.shape[2]), bool)  # of a buffer some hold no token
        width = min(real.shape[1], value.shape[2])
        places[:, :width] = real[:, :width]
        return value.swapaxes(1, 2)[places]
    return value[real[:, -value.shape[1]:]]


def compare(case, outputs, real=False):
    """The largest differences, over all calls, from the outputs with the library and from the original's. Calls
    without outputs are left out. real compares tokens alone that are not padding with the library's, too."""
    both = [(got, call) for got, call in zip(outputs, case.calls, strict=True) if got is not None]
    mask = lambda call: call["inputs"].get("attention_mask")  # noqa: E731
    library = max(difference(got, call["outputs"], mask(call) if real else None) for got, call in both)
    original = [difference(got, call["original"], mask(call)) for got, call in both if "original" in call]
    return library, max(original, default=None)


class OwnFault(Exception):
    """What a host cannot do with any model of functions; the message says it."""


class Host:
    """Prints one line for each case and counts those that failed."""

    def __init__(self, name):
        self.name, self.failed, self.limits = name, 0, {}

    def line(self, verdict, case, text):
        self.failed += verdict == "FAIL"
        print(f"{verdict:5} {self.name:34} {case.model:24} {case.method:10} {text}", flush=True)

    def check(self, case, run, original_runs=None, original_gives=None, real=False):
        """run gives the outputs of every call and what else is to be said, or raises. If the host fails on the
        unpatched model as well (original_runs raises), that is not the patched model's fault. In 16 bits it may be
        off by twice what its outputs for the unpatched model (original_gives) are off."""
        try:
            outputs, note = run(case)
        except Exception as error:  # whatever a host raises is what it has to say
            return self.refused(case, error, original_runs)
        if original_gives is not None and case.half and case.method == "none":
            _, own = compare(case, original_gives(case))
            self.limits[case.model] = 2 * own
        limit = max(case.limit, self.limits.get(case.model, 0))
        library, original = compare(case, outputs, real)
        good = library <= limit and (original is None or original <= limit)
        text = f"{sum(o is not None for o in outputs)} calls, {library:.1e}" + ("" if original is None else f", from the original {original:.1e}")
        self.line("pass" if good else "FAIL", case, f"{text} (limit {limit:.1e})" + (f"; {note}" if note else ""))

    def passes(self, case, run, original_runs=None):
        """For what has no outputs: run returns what to say, or raises."""
        try:
            self.line("pass", case, run(case) or "")
        except Exception as error:
            self.refused(case, error, original_runs)

    def refused(self, case, error, original_runs):
        if isinstance(error, OwnFault):
            return self.line("n/a", case, short(error))
        if original_runs is not None:
            try:
                original_runs(case)
            except Exception as same:
                return self.line("n/a", case, "not even the unpatched model: " + short(same))
        self.line("FAIL", case, short(error))

    def finish(self):
        sys.exit(1 if self.failed else 0)


def short(error):
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) < 240 else text[:240] + " …"
