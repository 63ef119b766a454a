#!/usr/bin/env python3
"""Renders conversations by the templates of templates/ with transformers, for chats.json.

    python make_chats.py     # transformers 5.17.0, jinja2 3.1.6

The templates are written for this test in the form of those of twelve models: the same
loops, conditions, tags and errors, other sentences.
"""
import datetime
import json
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

here = Path(__file__).parent
NOW = datetime.datetime(2024, 7, 6, 9, 5, 3)


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


chat_template_utils.datetime = Clock

WEATHER = {"type": "function", "function": {"name": "weather", "description": "The weather of a place, in \"°C\" & <mm>.", "parameters": {
    "type": "object", "properties": {"place": {"type": "string", "description": "A town"}, "days": {"type": "integer", "default": 1},
                                     "share": {"type": "number", "default": 0.5}}, "required": ["place"], "additionalProperties": False}}}
CLOCK = {"type": "function", "function": {"name": "clock", "description": "It's the time.", "parameters": {"type": "object", "properties": {}}, "return": {"type": "string"}}}


def u(text):
    return {"role": "user", "content": text}


def a(text, **more):
    return {"role": "assistant", "content": text, **more}


def s(text):
    return {"role": "system", "content": text}


def call(name, arguments, **more):
    return {"type": "function", "function": {"arguments": arguments, "name": name}, **more}


ask = [call("weather", {"days": 2, "place": "Zürich \"Nord\""}, id="abcdefghi")]
hard = "{% if x %}{{ y }} '\"\\n\\ <b>&amp; [INST] <|im_end|> 👋🏽 é\t\r\n\u2028 {\"a\": [1, 2]} {# no #}"
CONVERSATIONS = {
    "one turn": [u("Why is the sky blue?")],
    "system": [s("Be brief."), u("Why?")],
    "several turns": [u("One"), a("Two"), u("Three"), a("Four"), u("Five")],
    "system, several turns": [s("  Be brief.\n\n"), u(" One "), a("\nTwo\n"), u("Three")],
    "ends with assistant": [u("One"), a("Two ")],
    "hard characters": [u(hard), a(hard), u(hard)],
    "blanks at both ends": [u(" \n\t x \u00a0\u3000\n"), a("\n\n y \x1f\n"), u("  ")],
    "empty contents": [u(""), a(""), u("")],
    "empty system": [s(""), u("x")],
    "two users": [u("One"), u("Two")],
    "assistant first": [a("One"), u("Two")],
    "system in the middle": [u("One"), s("Two"), u("Three")],
    "system only": [s("alone")],
    "unknown role": [u("x"), {"role": "critic", "content": "y"}],
    "empty conversation": [],
    "tool calls": [u("Weather?"), a("", tool_calls=ask), {"role": "tool", "content": "{\"rain\": 3}", "name": "weather", "tool_call_id": "abcdefghi"}],
    "tool calls answered": [s("Use them."), u("Weather?"), a("", tool_calls=ask),
                            {"role": "tool", "content": "21", "name": "weather", "tool_call_id": "abcdefghi"}, a("It is 21."), u("Thanks")],
    "two calls": [u("Both"), a("Wait.", tool_calls=ask + [call("clock", {}, id="123456789")]), {"role": "tool", "content": "3", "tool_call_id": "abcdefghi"},
                  {"role": "tool", "content": "noon", "tool_call_id": "123456789"}, u("And?")],
    "calls without content": [u("Go"), a(None, tool_calls=ask), {"role": "tool", "content": {"rain": 1.0, "list": [None, True]}, "tool_call_id": "abcdefghi"}],
    "short call id": [u("Go"), a("", tool_calls=[call("clock", {}, id="1")]), {"role": "tool", "content": "x", "tool_call_id": "1"}],
    "calls by text": [u("Go"), a("", tool_calls=[{"name": "clock", "arguments": "{}"}])],
    "ipython": [u("Go"), a("ok"), {"role": "ipython", "content": [1, "two"]}, u("so")],
    "thinking": [u("a"), a("<think>\nhm\n</think>\n\nb"), u("c"), a("<think>x</think>d")],
    "reasoning": [u("a"), a("b", reasoning_content="\nbecause\n")],
    "reasoning by other names": [u("a"), a("b", thinking="t", reasoning="r"), u("c"), a("d", thinking="t"), u("e"), a("f", reasoning="r")],
    "reasoning alone": [u("a"), a("", reasoning_content="because ")],
    "parts": [{"role": "user", "content": [{"type": "text", "text": " What is it? "}, {"type": "image"}]}],
    "number as content": [{"role": "user", "content": 7}],
}
OPTIONS = {
    "plain": {}, "prompt": {"add_generation_prompt": True}, "continued": {"continue_final_message": True},
    "tools": {"tools": [WEATHER, CLOCK], "add_generation_prompt": True}, "no tools": {"tools": []},
    "variables": {"add_generation_prompt": True, "tools": [CLOCK], "enable_thinking": False, "tools_in_user_message": False, "date_string": "1 Jan 2030",
                  "builtin_tools": ["weather", "code_interpreter"], "bos_token": "<B>"},
    "continued reasoning": {"continue_final_message": "reasoning_content"},
    "both": {"add_generation_prompt": True, "continue_final_message": True},
}
SPECIALS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}

cases, texts = [], []
for path in sorted((here / "templates").glob("*.jinja")):
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WordLevel({"<unk>": 0}, unk_token="<unk>")), chat_template=path.read_text(encoding="utf-8"), **SPECIALS)
    for conversation, messages in CONVERSATIONS.items():
        for name, options in OPTIONS.items():
            if name in ("both", "no tools") and conversation != "one turn" or name == "continued reasoning" and "reasoning" not in conversation:
                continue
            case = {"template": path.stem, "conversation": conversation, "options": name}
            try:
                text = tokenizer.apply_chat_template(json.loads(json.dumps(messages)), tokenize=False, **options)
                if text not in texts:
                    texts.append(text)
                case["text"] = texts.index(text)
            except Exception as e:
                case["error"] = type(e).__name__
            cases.append(case)

golden = {"now": NOW.isoformat() + "Z", "specials": SPECIALS, "conversations": CONVERSATIONS, "options": OPTIONS, "texts": texts, "cases": cases}
(here / "chats.json").write_text("{\n" + ",\n".join(json.dumps(k) + ": " + (
    "[\n" + ",\n".join(json.dumps(v, ensure_ascii=False) for v in values) + "\n]" if isinstance(values, list) else json.dumps(values, ensure_ascii=False))
    for k, values in golden.items()) + "\n}\n", encoding="utf-8", newline="")
print(len(cases), "cases,", sum("error" in c for c in cases), "errors,", len(texts), "texts")
