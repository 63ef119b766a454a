#!/usr/bin/env python3
"""Writes what Python's tokenizers does where no special token may be found, for guarded.json.

    python make_guarded.py     # tokenizers 0.23.3

null stands for ids with a special token: the model itself has it as a word.
"""
import gzip
import json
from pathlib import Path

from tokenizers import Tokenizer

here = Path(__file__).parent
FORMS = ["%s", "a%sb", " %s ", "x %s%s y", "%s\n\n  %s", "<%s>", "<|%s|>é 中 👋🏽", "New York %s keyword <tool> newyork"]

golden = {}
files = sorted(here.glob("*.json.gz")) + [here / "../../../testdata/smollm2/tokenizer.json"]
for path in files:
    text = gzip.open(path, "rt", encoding="utf-8").read() if path.suffix == ".gz" else path.read_text(encoding="utf-8")
    file = json.loads(text)
    if "model" not in file:
        continue
    special = [t["content"] for t in file["added_tokens"] if t["special"]][:5]
    tokenizer = Tokenizer.from_str(text)
    tokenizer.encode_special_tokens = True
    unknown = file["model"].get("unk_token") or (file["model"]["vocab"][file["model"]["unk_id"]][0] if file["model"].get("unk_id") else None)
    forbidden = {t["id"] for t in file["added_tokens"] if t["special"] and t["content"] != unknown}
    cases = []
    for s in special:
        for form in FORMS + [s[:1] + "%s", "%s" + s[-1:]]:
            text = form.replace("%s", s)
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            cases.append({"text": text, "ids": None if forbidden & set(ids) else ids})
    golden["smollm2" if path.name == "tokenizer.json" else path.name.removesuffix(".json.gz")] = cases

(here / "guarded.json").write_text("{\n" + ",\n".join(f"{json.dumps(k)}: [\n" + ",\n".join(json.dumps(c, ensure_ascii=False, separators=(",", ":")) for c in v) + "\n]" for k, v in golden.items()) + "\n}\n", encoding="utf-8")
print({k: (len(v), sum(c["ids"] is None for c in v)) for k, v in golden.items()})
