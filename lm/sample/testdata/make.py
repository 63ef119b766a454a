#!/usr/bin/env python3
"""Writes choices.json: what the logits processors of transformers leave of scores, and the
probabilities then, in float32 and from the same scores in float64.

    pip install transformers==5.17.0 torch==2.11.0 numpy && python3 make.py
"""
import json
import pathlib

import numpy as np
import torch
from transformers import (
    LogitsProcessorList, MinPLogitsWarper, RepetitionPenaltyLogitsProcessor, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper,
)

DRAWN = np.random.default_rng(3)
OPTIONS = [
    {},
    {"temperature": 0.7},
    {"temperature": 1.0, "top_k": 3},
    {"temperature": 1.3, "top_p": 0.8},
    {"temperature": 0.9, "min_p": 0.1},
    {"temperature": 1.0, "repetition_penalty": 1.3},
    {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.02, "repetition_penalty": 1.1},
    {"temperature": 2.5, "top_k": 1},
    {"temperature": 0.01, "top_p": 0.5},
]


def scores():
    yield "small", DRAWN.normal(0, 2, 5)
    yield "hundreds", DRAWN.normal(0, 4, 300)
    yield "huge", np.append(DRAWN.normal(0, 1, 20), 3e4)
    yield "hidden", np.where(DRAWN.random(60) < 0.5, -np.inf, DRAWN.normal(0, 3, 60))
    yield "equal", np.repeat([1.5, -2.0, 0.25], 4)
    yield "far below", DRAWN.normal(-1e4, 3, 30)


def processors(o):
    made = LogitsProcessorList()
    if "repetition_penalty" in o:
        made.append(RepetitionPenaltyLogitsProcessor(o["repetition_penalty"]))
    if "temperature" in o:
        made.append(TemperatureLogitsWarper(o["temperature"]))
    for name, warper in (("top_k", TopKLogitsWarper), ("top_p", TopPLogitsWarper), ("min_p", MinPLogitsWarper)):
        if name in o:
            made.append(warper(o[name]))
    return made


def main():
    cases = []
    for name, values in scores():
        values = values.astype(np.float32)
        past = sorted({int(i) for i in DRAWN.integers(0, len(values), 4)})
        for o in OPTIONS:
            if name == "equal" and "top_p" in o:
                continue  # which of equal scores stay is chance there
            left = {}
            for kind in (torch.float32, torch.float64):
                x = processors(o)(torch.tensor([past]), torch.tensor(values, dtype=kind)[None])
                left[kind] = torch.softmax(x, -1)[0].double().numpy()
            kept = np.flatnonzero(left[torch.float64] > 0).tolist()
            p = left[torch.float64]
            cases.append({
                "name": f"{name} {o}", "options": o, "past": past,
                "logits": [None if np.isinf(v) else float(v) for v in values],  # None hides
                "kept": kept, "p": [float(p[i]) for i in kept],
                "error": float(np.abs(left[torch.float32] - p).max()),
                "log": [float(v) for v in torch.log_softmax(torch.tensor(values, dtype=torch.float64), -1)[:5]] if np.isfinite(values).all() else None,
            })
    path = pathlib.Path(__file__).parent / "choices.json"
    path.write_text(json.dumps(cases, indent=None, separators=(",", ":")).replace("},{", "},\n{") + "\n")


if __name__ == "__main__":
    main()
