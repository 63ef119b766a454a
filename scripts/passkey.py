"""Asks the samples of the tasks passkey and needles of `rope-rewrite eval` again, without any of its code: the numbers
are drawn and the prompt is built anew (make_trials.py), and ONNX Runtime's Python package runs the model, the whole
prompt in one call, then token by token.

    rope-rewrite eval FOLDER --method "scaling yarn:factor=2" -o results
    rope-rewrite FOLDER/model.onnx --scaling yarn:factor=2 --context 16k --logits last -o yarn.onnx
    python scripts/passkey.py yarn.onnx FOLDER results/samples.jsonl "scaling yarn:factor=2" --library librope_ops.so

Prints for each task and length how many samples eval and this script found right, and fails if one of them differs.
Needs onnxruntime, numpy, tokenizers, jinja2 and pyyaml.
"""

import argparse
import collections
import json
import pathlib
import sys

import numpy as np
import onnxruntime as ort

sys.path.append(str(pathlib.Path(__file__).parents[1] / "cmd/internal/evaluation/testdata"))
import make_trials


def answer(session: ort.InferenceSession, ids: list[int], most: int, ends: set[int]) -> list[int]:
    past = {x.name: np.zeros([d if isinstance(d, int) else (1 if i == 0 else 0) for i, d in enumerate(x.shape)], np.float32) for x in session.get_inputs() if x.name.startswith("past")}
    outputs = [x.name for x in session.get_outputs()]
    step, seen, out = ids, 0, []
    while len(out) < most:
        n = len(step)
        feeds = {"input_ids": [step], "attention_mask": np.ones((1, seen + n)), "position_ids": [np.arange(seen, seen + n)]}
        feeds = {k: np.asarray(v, np.int64) for k, v in feeds.items() if k in {x.name for x in session.get_inputs()}}
        values = dict(zip(outputs, session.run(outputs, feeds | past)))
        token = int(values["logits"][0, -1].argmax())
        if token in ends:
            break
        out.append(token)
        past = {k: values[k.replace("past_key_values", "present")] for k in past}
        step, seen = [token], seen + n
    return out


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("model")
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("samples", type=pathlib.Path)
    p.add_argument("variant")
    p.add_argument("--library")
    p.add_argument("--most", type=int, default=10**9, help="longest prompt")
    p.add_argument("--each", type=int, default=10**9, help="samples of a length")
    a = p.parse_args()

    ends = json.loads((a.folder / "generation_config.json").read_text())["eos_token_id"]
    options = ort.SessionOptions()
    if a.library:
        options.register_custom_ops_library(a.library)
    session = ort.InferenceSession(a.model, options)
    title, *lines = [json.loads(x) for x in a.samples.read_text().splitlines()]
    prompts = make_trials.Prompts(a.folder, title["Seed"])
    count = collections.defaultdict(lambda: [0, 0, 0])
    different = 0
    for s in lines:
        task, length = s["task"], s["length"]
        if s["variant"] != a.variant or task not in make_trials.TASKS or length > a.most or count[task, length][0] >= a.each:
            continue
        ids, wanted = prompts.trial(task, length, s["depth"], s["index"])
        if len(ids) != s["tokens"] or wanted != s["wanted"]:
            sys.exit(f"a prompt has {len(ids)} tokens and hides {wanted}; in {a.samples} it is {s['tokens']} and {s['wanted']}")
        form = prompts.forms[task]
        text = prompts.tokenizer.decode(answer(session, ids, form["tokens"], set(np.atleast_1d(ends).tolist())))
        right = sum(w in text for w in wanted) >= form.get("need", len(wanted))
        c = count[task, length]
        c[0], c[1], c[2] = c[0] + 1, c[1] + s["right"], c[2] + right
        if right != s["right"] or not text.strip().startswith(s["answer"].strip()):
            different += 1
            print(f"{task}, {length} tokens, sample {s['index']}: {s['answer']!r} by eval, {text!r} here")
    for (task, length), (n, by_eval, here) in sorted(count.items()):
        print(f"{a.variant}, {task}, {length} tokens: eval found {by_eval} of {n}, this script {here}")
    if different or not count:
        sys.exit(f"{different} samples differ")


if __name__ == "__main__":
    main()
