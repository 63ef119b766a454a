"""Asks the pass-key samples of `rope-rewrite eval` again, without any of its code: the prompt is built anew from
the form, and ONNX Runtime's Python package runs the model, the whole prompt in one call, then token by token.

    rope-rewrite eval FOLDER --method "scaling yarn:factor=2" -o results
    rope-rewrite FOLDER/model.onnx --scaling yarn:factor=2 --context 16k --logits last -o yarn.onnx
    python scripts/passkey.py yarn.onnx FOLDER results/samples.jsonl "scaling yarn:factor=2" --library librope_ops.so

Prints for each length how many samples eval and this script found right, and fails if one of them differs.
Needs onnxruntime, numpy, tokenizers, jinja2 and pyyaml.
"""

import argparse
import collections
import datetime
import json
import pathlib
import re
import sys

import jinja2
import numpy as np
import onnxruntime as ort
import tokenizers
import yaml

SLACK = 8  # tokens that a prompt may be shorter than asked for


def prompt(form: dict, template: jinja2.Template | None, tk: tokenizers.Tokenizer, key: str, units: int, depth: float) -> list[int]:
    sentences = re.findall(r".+?[.!?]\s+", form["haystack"])
    at = int(depth * units + 0.5)
    hay = [sentences[i % len(sentences)] for i in range(units)]
    text = form["before"] + "".join(hay[:at]) + form["needle"].replace("{key}", key) + "".join(hay[at:]) + "\n\n" + form["question"]
    if template is None:
        return tk.encode(text + "\n" + form["answer"]).ids
    date = datetime.date.today().strftime("%d %b %Y")
    chat = template.render(messages=[{"role": "user", "content": text}], add_generation_prompt=True, bos_token="<|im_start|>", eos_token="<|im_end|>", date_string=date)
    return tk.encode(chat + form["answer"], add_special_tokens=False).ids


def fit(form, template, tk, length: int) -> int:
    low, high = 0, 1
    room = length - form["tokens"] - SLACK
    long = lambda n: len(prompt(form, template, tk, "12345", n, 0)) > room
    while not long(high):
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if long(middle) else (middle, high)
    return low


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
    p.add_argument("--form", type=pathlib.Path, default=pathlib.Path(__file__).parents[1] / "cmd/internal/evaluation/forms/passkey.yaml")
    p.add_argument("--most", type=int, default=10**9, help="longest prompt")
    p.add_argument("--each", type=int, default=10**9, help="samples of a length")
    a = p.parse_args()

    form = yaml.safe_load(a.form.read_text())
    tk = tokenizers.Tokenizer.from_file(str(a.folder / "tokenizer.json"))
    file = a.folder / "chat_template.jinja"
    template = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(file.read_text()) if file.exists() else None
    ends = json.loads((a.folder / "generation_config.json").read_text())["eos_token_id"]
    options = ort.SessionOptions()
    if a.library:
        options.register_custom_ops_library(a.library)
    session = ort.InferenceSession(a.model, options)
    lines = [json.loads(x) for x in a.samples.read_text().splitlines()[1:]]
    count = collections.defaultdict(lambda: [0, 0, 0])
    different = 0
    units = {}
    for s in lines:
        length = s["length"]
        if s["variant"] != a.variant or s["task"] != "passkey" or length > a.most or count[length][0] >= a.each:
            continue
        if length not in units:
            units[length] = fit(form, template, tk, length)
        ids = prompt(form, template, tk, s["wanted"][0], units[length], s["depth"])
        if len(ids) != s["tokens"]:
            sys.exit(f"a prompt has {len(ids)} tokens, and {s['tokens']} in {a.samples}")
        text = tk.decode(answer(session, ids, form["tokens"], ends if isinstance(ends, set) else set(np.atleast_1d(ends).tolist())))
        right = s["wanted"][0] in text
        c = count[length]
        c[0], c[1], c[2] = c[0] + 1, c[1] + s["right"], c[2] + right
        if right != s["right"] or not text.startswith(s["answer"].strip()) and not text.strip().startswith(s["answer"].strip()):
            different += 1
            print(f"{length} tokens, sample {s['index']}: {s['answer']!r} by eval, {text!r} here")
    for length, (n, by_eval, here) in sorted(count.items()):
        print(f"{a.variant}, {length} tokens: eval found {by_eval} of {n}, this script {here}")
    if different or not count:
        sys.exit(f"{different} samples differ")


if __name__ == "__main__":
    main()
