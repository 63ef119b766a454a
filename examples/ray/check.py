"""Asks the application of serve.py what it must answer and what it must refuse. It runs with SmolLM2-135M-Instruct.

    python check.py

Exit status 1 if an answer is wrong.
"""
import json
import os
import sys
import urllib.error
import urllib.request

URL = os.environ.get("URL", "http://localhost:8000")
QUESTION = [{"role": "user", "content": "Say hello."}]
# What SmolLM2's chat template makes of the question.
RENDERED = ("<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
            "<|im_start|>user\nSay hello.<|im_end|>\n<|im_start|>assistant\n")
REFUSED = {
    "no JSON": b'{"prompt": ',
    "no text": b"\xff\xfe",
    "a list": b"[]",
    "neither prompt nor messages": b'{"tokens": 4}',
    "both": b'{"prompt": "a", "messages": []}',
    "a prompt that is a number": b'{"prompt": 1}',
    "an empty prompt": b'{"prompt": ""}',
    "tokens below 1": b'{"prompt": "a", "tokens": 0}',
    "tokens that are a text": b'{"prompt": "a", "tokens": "4"}',
    "no messages": b'{"messages": []}',
    "a message without content": b'{"messages": [{"role": "user"}]}',
    "a prompt beyond the context": json.dumps({"prompt": "one two three four " * 5000}).encode(),
}
wrong = 0


def post(body):
    try:
        with urllib.request.urlopen(urllib.request.Request(URL, body), timeout=300) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        text = error.read().decode()
        return error.code, json.loads(text) if text.startswith("{") else {"error": text}


def generate(**asked):
    status, answer = post(json.dumps(asked).encode())
    return answer if status == 200 else {"end": f"HTTP {status}", "text": answer["error"], "tokens": 0}


def say(good, name, text):
    global wrong
    wrong += not good
    print(f"{'pass' if good else 'FAIL'}  {name:34} {text}", flush=True)


for name, body in REFUSED.items():
    status, answer = post(body)
    sentence = str(answer.get("error"))
    say(status == 400 and sentence.endswith(".") and "\n" not in sentence, name, f"{status} {sentence[:160]}")

chat = generate(messages=QUESTION, tokens=200)
say(chat["end"] == "stop" and 0 < chat["tokens"] < 200 and "<|im_end|>" not in chat["text"], "stops at the end token",
    f"after {chat['tokens']} tokens ({chat['end']}): {chat['text']!r}")
same = generate(prompt=RENDERED, tokens=200)
say(chat["text"] == same["text"], "the chat template", f"the rendered prompt gives {same['text']!r}")
plain = generate(prompt="The capital of France is", tokens=16)
say(plain["tokens"] == 16 and plain["end"] == "tokens", "ends after the tokens asked for", f"{plain['text']!r}")
sys.exit(1 if wrong else 0)
