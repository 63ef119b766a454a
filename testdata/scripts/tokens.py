"""Token ids of a few texts, by the Python package tokenizers: the golden of the tokenizer in lm.

    pip install tokenizers==0.23.3 && tokens.py TESTDATA

Writes TESTDATA/smollm2/tokens.json from TESTDATA/smollm2/tokenizer.json.
"""
import json
import os
import sys

from tokenizers import Tokenizer

TEXTS = [
    "",
    "Hello, world!",
    " leading space",
    "trailing space ",
    "two  spaces, three   spaces",
    "line\nbreak\n\nand paragraph\r\n",
    "\ttabs\t\tand  \n  mixed \t white space",
    "   ",
    "I'll say it's what they'd've done; we're, you'd, I'M, DON'T",
    "In 1905, Einstein published 4 papers; 3.14159 and 1,000,000.",
    "1234567890123456789",
    "def f(x: int) -> int:\n    return x**2  # comment\n",
    "for (int i = 0; i < n; ++i) { a[i] += b[i]; }",
    "<html><body class=\"x\">&nbsp;</body></html>",
    "https://example.org/path?q=1&r=%20#frag",
    "naïve café, Zürich, Ångström, œuvre",
    "Привет, мир! Как дела?",
    "你好，世界。今天天气很好。",
    "こんにちは世界、カタカナ",
    "안녕하세요 세계",
    "مرحبا بالعالم",
    "नमस्ते दुनिया",
    "emoji: 🙂👍🏽👩‍👩‍👧 and ☃️",
    "e\u0301 combining, \u00a0 no-break, \u200b zero width, \u3000 ideographic",
    "∑ᵢ xᵢ² ≤ ∞ ⇒ ½·√2",
    "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n",
    "a<|endoftext|>b <|im_end|> c",
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "!!!???...---___***",
    "'s 't 're 've 'm 'll 'd 'S",
]

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = os.path.join(sys.argv[1], "smollm2")
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    rows = [json.dumps(dict(text=t, ids=tokenizer.encode(t).ids), ensure_ascii=True) for t in TEXTS]
    with open(os.path.join(folder, "tokens.json"), "w") as f:
        f.write("[\n" + ",\n".join(rows) + "\n]\n")
    print(len(rows), "texts")
