"""Writes perplexity.json: the mean negative log-probability of each 256 tokens of windows of a text,
by ONNX Runtime running the original graph, and numpy. Needs numpy and onnxruntime.

    python cmd/internal/evaluation/testdata/perplexity.py
"""

import json
import pathlib

import numpy as np
import onnxruntime as ort

here = pathlib.Path(__file__).parent
root = here.parents[2] / "testdata"
text = "".join(f"{i} times {i % 7} is {i * (i % 7)}, and no more. " for i in range(60))
vocabulary = json.loads((root / "lm" / "tokenizer.json").read_text())["model"]["vocab"]
ids = np.array([vocabulary[c] if c in vocabulary else vocabulary["\u0120"] for c in text], np.int64)
length, block, windows = 700, 256, 3
session = ort.InferenceSession(root / "models" / "llama__optimum" / "model.onnx")
log_loss = []
for i in range(windows):
    start = i * (len(ids) - length) // (windows - 1)
    window = ids[start:start + length][None]
    feeds = {"input_ids": window, "attention_mask": np.ones_like(window), "position_ids": np.arange(length)[None]}
    for x in session.get_inputs():
        if x.name.startswith("past"):
            feeds[x.name] = np.zeros([1, x.shape[1], 0, x.shape[3]], np.float32)
    logits = session.run(["logits"], {x.name: feeds[x.name] for x in session.get_inputs()})[0][0].astype(np.float64)
    top = logits.max(-1, keepdims=True)
    logp = logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))
    each = -logp[np.arange(length - 1), window[0, 1:]]
    each = np.concatenate([[np.nan], each])
    log_loss.append([float(np.nanmean(each[b:b + block])) for b in range(0, length, block)])
(here / "perplexity.json").write_text(json.dumps({"text": text, "length": length, "log_loss": log_loss}) + "\n")
