"""Trains the tokenizers of kinds.py, and writes what Python's tokenizers does with the strings of strings.py.

    pip install tokenizers==0.23.3 sentencepiece==0.2.3 protobuf
    python make_goldens.py

Writes strings.json.gz, KIND.json.gz for each kind, goldens.json.gz, parts.json.gz and tiny.json.gz beside itself. A result is kept as
the first two bytes of the SHA-256 of its JSON; those of the first strings are also kept in full, for readers.
"""

import base64
import gzip
import hashlib
import json
import os
import random
import sys

import tokenizers
from tokenizers import Tokenizer

from kinds import KINDS, ROOT
from parts import parts
from strings import strings
from tiny import tiny

HERE = os.path.dirname(os.path.abspath(__file__))
LISTS = 200  # of random ids, for decoding


def packed(values) -> str:
    """Two bytes a result, of the SHA-256 of its JSON."""
    text = lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return base64.b64encode(b"".join(hashlib.sha256(text(v)).digest()[:2] for v in values)).decode()


def random_lists(size: int) -> list[list[int]]:
    """Ids that anyone can make again: a linear congruential generator."""
    state, out = 1, []
    for i in range(LISTS):
        ids = []
        for _ in range(i % 40):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            ids.append((state >> 8) % size)
        out.append(ids)
    return out


def goldens(t: Tokenizer, texts: list[str]) -> dict:
    t.no_truncation()
    t.no_padding()
    plain = [t.encode(s, add_special_tokens=False).ids for s in texts]
    special = [t.encode(s).ids for s in texts]
    lists = random_lists(t.get_vocab_size())
    decode = lambda ids, skip: [t.decode(i, skip_special_tokens=skip) for i in ids]
    return {
        "encode": packed(plain), "special": packed(special), "decode": packed(decode(special, True)), "keep": packed(decode(special, False)),
        "random": packed(decode(lists, True)), "random_keep": packed(decode(lists, False)),
        "size": t.get_vocab_size(), "ids": {token: i for token, i in t.get_vocab().items() if token.startswith(("<", "[", "New", "key"))and not token.startswith("<0x") and len(token) > 3},
        "sample": [{"ids": s, "text": t.decode(s, skip_special_tokens=True)} for s in special[20:40]],
    }


def write(name: str, text: str) -> None:
    with open(os.path.join(HERE, name), "wb") as f, gzip.GzipFile("", "wb", 9, f, 0) as z:
        z.write(text.encode())


def main() -> None:
    raw = strings()
    write("strings.json.gz", json.dumps([base64.b64encode(s).decode() for s in raw]))
    texts = [s.decode("utf-8", "replace") for s in raw]
    out = {"smollm2": goldens(Tokenizer.from_file(ROOT + "/testdata/smollm2/tokenizer.json"), texts)}
    for name, make in KINDS.items():
        if "--train" in sys.argv or not os.path.exists(os.path.join(HERE, name + ".json.gz")):
            write(name + ".json.gz", make().to_str())
        with gzip.open(os.path.join(HERE, name + ".json.gz")) as f:
            t = Tokenizer.from_str(f.read().decode())
        out[name] = goldens(t, texts)
        print(name, t.get_vocab_size(), sum(len(s["ids"]) for s in out[name]["sample"]))
    write("goldens.json.gz", json.dumps({"tokenizers": tokenizers.__version__, "kinds": out}, ensure_ascii=False))
    write("parts.json.gz", json.dumps(parts(texts, packed), ensure_ascii=False))
    write("tiny.json.gz", json.dumps(tiny(), ensure_ascii=False))


if __name__ == "__main__":
    main()
