#!/usr/bin/env python3
"""Loads tokenizers from folders with transformers, for folders.json: which template and
which special tokens it takes.

    python make_folders.py     # transformers 5.17.0, jinja2 3.1.6
"""
import json
import tempfile
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

SHOW = "{% for t in [bos_token, eos_token, pad_token, unk_token, image_token, boi] %}{{ t }},{% endfor %}"
TOKEN = {"__type": "AddedToken", "content": "<dict>", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
PLAIN = {"content": "<map>", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
NAMED = [{"name": "default", "template": "default " + SHOW}, {"name": "tool_use", "template": "tools {{ tools|length }}"}, {"name": "rag", "template": "rag"}]

FOLDERS = {
    "nothing": {"tokenizer_config.json": {}},
    "null": {"tokenizer_config.json": {"chat_template": None}},
    "text": {"tokenizer_config.json": {"chat_template": SHOW, "bos_token": "<b>", "eos_token": None, "add_bos_token": True}},
    "token as object": {"tokenizer_config.json": {"chat_template": SHOW, "bos_token": TOKEN, "unk_token": "<u>"}},
    "own tokens": {"tokenizer_config.json": {"chat_template": SHOW, "image_token": "<i>", "extra_special_tokens": {"boi": "<boi>"}}},
    "map": {"tokenizer_config.json": {"chat_template": SHOW, "bos_token": "<b>", "pad_token": "<p>"}, "special_tokens_map.json": {"bos_token": PLAIN, "eos_token": "<e>"}},
    "map beside a table": {"tokenizer_config.json": {"chat_template": SHOW, "bos_token": "<b>", "added_tokens_decoder": {}}, "special_tokens_map.json": {"bos_token": "<m>", "eos_token": "<e>"}},
    "list": {"tokenizer_config.json": {"chat_template": NAMED, "bos_token": "<b>"}},
    "list without default": {"tokenizer_config.json": {"chat_template": NAMED[1:]}},
    "list of others": {"tokenizer_config.json": {"chat_template": NAMED[2:]}},
    "file": {"tokenizer_config.json": {"chat_template": "config", "bos_token": "<b>"}, "chat_template.jinja": "file\r\n" + SHOW + "\n"},
    "file alone": {"chat_template.jinja": "file"},
    "files": {"tokenizer_config.json": {"chat_template": "config"}, "chat_template.jinja": "file", "additional_chat_templates/tool_use.jinja": "tool file", "additional_chat_templates/rag.jinja": "rag"},
    "other file alone": {"tokenizer_config.json": {"chat_template": "config"}, "additional_chat_templates/tool_use.jinja": "tool file"},
    "broken": {"tokenizer_config.json": {"chat_template": "{% if %}"}},
}


def render(folder, **options):
    try:
        return PreTrainedTokenizerFast.from_pretrained(folder).apply_chat_template([{"role": "user", "content": "x"}], tokenize=False, **options)
    except Exception:
        return None


golden = {}
for name, files in FOLDERS.items():
    with tempfile.TemporaryDirectory() as folder:
        Tokenizer(WordLevel({"<unk>": 0}, unk_token="<unk>")).save(folder + "/tokenizer.json")
        for path, content in files.items():
            path = Path(folder, path)
            path.parent.mkdir(exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8", newline="")
        golden[name] = {"files": files, "text": render(folder), "with_tools": render(folder, tools=[]), "with_a_tool": render(folder, tools=[{}])}

Path(__file__).with_name("folders.json").write_text(json.dumps(golden, indent=1) + "\n", encoding="utf-8")
for name, case in golden.items():
    print(name, case["text"], case["with_tools"], case["with_a_tool"])
