#!/usr/bin/env python3
"""Writes prompts.json: the tokens of one prompt in the form of each template of lm/chat, by transformers.

    python make_prompts.py     # transformers 5.24.0, jinja2 3.1.6
"""
import json
from pathlib import Path

from transformers import AutoTokenizer

here = Path(__file__).parent
root = here.parents[2]
ASK = "There is a pass key. The pass key is 71432.\n\nWhat is the pass key?"
tokenizer = AutoTokenizer.from_pretrained(root / "testdata/smollm2")
templates = {"smollm2": tokenizer.chat_template}
templates |= {p.stem: p.read_text() for p in sorted((root / "lm/chat/testdata/templates").glob("*.jinja"))}
out = {}
for name, template in templates.items():
    for answer in ("The pass key is", ""):
        messages = [{"role": "user", "content": ASK}]
        if answer:
            messages.append({"role": "assistant", "content": answer})
        how = {"continue_final_message": True} if answer else {"add_generation_prompt": True}
        text = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False, date_string="24 Nov 2026", **how)
        ids = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=True, return_dict=False, date_string="24 Nov 2026", **how)
        out[f"{name}, {answer or 'no answer'}"] = {"template": template, "answer": answer, "text": text, "ids": ids}
(here / "prompts.json").write_text(json.dumps(out, indent=1, ensure_ascii=False) + "\n")
packed = "Answer the question from these notes.\nNote: One.\nNote: Two.\nQuestion: Which?"
print(repr(tokenizer.apply_chat_template([{"role": "user", "content": packed}], tokenize=False, add_generation_prompt=True)))
