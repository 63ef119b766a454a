"""How well a model predicts windows of a text, without any of rope-rewrite's code: ONNX Runtime runs the graph on each
window in one call, numpy makes the log-probabilities, scipy the interval (Student's t).

    python cmd/internal/evaluation/testdata/perplexity.py            # writes perplexity.json, on a small model
    python cmd/internal/evaluation/testdata/perplexity.py MODEL.onnx TOKENIZER.json TEXT 700,1000 3

The second prints what `rope-rewrite eval MODEL.onnx --task perplexity --text TEXT --lengths 700,1000 --windows 3
--method none` has to find. Needs numpy, onnxruntime, scipy, and tokenizers for a model of one's own.
"""

import json
import pathlib
import sys

import numpy as np
import onnxruntime as ort
from scipy import stats

BLOCK, LAST = 256, 512
here = pathlib.Path(__file__).parent


def losses(session: ort.InferenceSession, window: np.ndarray) -> np.ndarray:
    """The negative log-probability of each token of a window but the first."""
    n = len(window)
    feeds = {"input_ids": window[None], "attention_mask": np.ones((1, n), np.int64), "position_ids": np.arange(n)[None]}
    for x in session.get_inputs():
        if x.name.startswith("past"):
            feeds[x.name] = np.zeros([1, x.shape[1], 0, x.shape[3]], np.float32)
    logits = session.run(["logits"], {x.name: feeds[x.name] for x in session.get_inputs()})[0][0]
    out = []
    for row, token in zip(logits, window[1:]):
        row = row.astype(np.float64)
        top = row.max()
        out.append(top + np.log(np.exp(row - top).sum()) - row[token])
    return np.array(out)


def measure(session: ort.InferenceSession, ids: np.ndarray, lengths: list[int], windows: int) -> dict:
    longest = max(lengths)
    windows = min(windows, len(ids) // longest)  # which do not overlap
    each = []
    for i in range(windows):
        start = i * (len(ids) - longest) // (windows - 1) if windows > 1 else 0
        each.append(losses(session, ids[start : start + longest]))
    found = {"windows": windows, "readings": []}
    found["log_loss"] = [[float(x[max(b - 1, 0) : b + BLOCK - 1].mean()) for b in range(0, longest, BLOCK)] for x in each]
    for length in lengths:
        # Token t is predicted by row t − 1: tokens 1 … length − 1 are rows 0 … length − 2.
        means = np.array([x[: length - 1].mean() for x in each])
        last = np.array([x[: length - 1][-LAST:].mean() for x in each])
        reading = {"length": length, "perplexity": float(np.exp(means.mean())), "last": float(np.exp(last.mean()))}
        if windows > 1:
            low, high = stats.t.interval(0.95, windows - 1, means.mean(), stats.sem(means))
            reading |= {"low": float(np.exp(low)), "high": float(np.exp(high))}
        found["readings"].append(reading)
    return found


def golden() -> None:
    root = here.parents[3] / "testdata"
    text = "".join(f"{i} times {i % 7} is {i * (i % 7)}, and no more. " for i in range(120))
    vocabulary = json.loads((root / "lm" / "tokenizer.json").read_text())["model"]["vocab"]
    ids = np.array([vocabulary[c] if c in vocabulary else vocabulary["\u0120"] for c in text], np.int64)
    lengths = [200, 300, 512, 700, 1000]
    session = ort.InferenceSession(root / "models" / "llama__optimum" / "model.onnx")
    student = {str(v): float(stats.t.ppf(0.975, v)) for v in (1, 2, 3, 7, 30, 1000)}
    found = {"text": text, "student": student} | measure(session, ids, lengths, 3)
    (here / "perplexity.json").write_text(json.dumps(found) + "\n")


def main() -> None:
    model, tokenizer, text, lengths, windows = sys.argv[1:]
    import tokenizers

    tk = tokenizers.Tokenizer.from_file(tokenizer)
    ids = np.array(tk.encode(pathlib.Path(text).read_text(), add_special_tokens=False).ids, np.int64)
    found = measure(ort.InferenceSession(model), ids, [int(x) for x in lengths.split(",")], int(windows))
    print(f"{len(ids)} tokens, {found['windows']} windows")
    for r in found["readings"]:
        print(json.dumps(r))


if __name__ == "__main__":
    golden() if len(sys.argv) == 1 else main()
