"""Tokenizers of a few tokens, for what no trained one shows."""

import json

from tokenizers import Tokenizer


def chars(text: str, *more: str) -> dict:
    return {t: i for i, t in enumerate([*dict.fromkeys(text), *more])}


def bpe(vocab: dict, merges=(), **more) -> dict:
    return {"model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocab, "merges": [list(m) for m in merges], **more}}


def unigram(*vocab, unk=0, **more) -> dict:
    return {"model": {"type": "Unigram", "unk_id": unk, "vocab": [list(v) for v in vocab], "byte_fallback": False, **more}}


def token(id_: int, content: str, **more) -> dict:
    return {"id": id_, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True, **more}


BYTES = [f"<0x{b:02X}>" for b in range(0xC0, 0x100)]
MERGES = [("a", "b"), ("b", "c"), ("ab", "c"), ("c", "a")]
FILES = [
    *[(bpe(chars("abc", "ab", "bc", "abc", "ca", "cb"), MERGES, ignore_merges=i), ["cb", "abcabc", "bca", "x", "cxb"]) for i in (False, True)],
    *[(bpe(chars("?abc", *BYTES), fuse_unk=f, unk_token="?", byte_fallback=b), ["xya", "axbyz", "aéx", "xéya", "éé", "x\u0400a\u0080y"]) for f in (False, True) for b in (False, True)],
    (bpe(chars("ab")), ["xaxbx", "éa"]),
    *[({**bpe(chars("ab ")), "added_tokens": [token(3, "<t>", lstrip=l, rstrip=r), token(4, "<u>", lstrip=r, rstrip=l), token(5, "ba", single_word=True)]}, ["<t> <t>", "a  <t>  <u>  b", "<u> <t> <u>", "ba ba aba ba", "<t>ba<u>", " <t> "]) for l in (False, True) for r in (False, True)],
    (unigram(("?", 0), ("a", 7), ("ab", -2), ("c", -1)), ["ab", "abb", "acab", "xxab", "?a?"]),
    (unigram(("?", 0), ("a", -0.1), ("aa", -0.2), ("aaa", -0.30000000000000004)), ["aaa", "aaaaaa", "a" * 9]),
    (unigram(("?", 0), ("a", -1), *[(b, -5) for b in BYTES], byte_fallback=True), ["aÀ", "x", "a\u0400"]),
    *[({**bpe(chars("aáu\u0316\u0305\u0301\u0300\u0327")), "normalizer": {"type": form}}, ["a" + "\u0316" * 12 + "\u0305\u0301", "a" + "\u0316" * 12 + "\u0301", "a" + "\u0301" * 12 + "\u0316\u0327", "a\u0305\u0301"]) for form in ("NFC", "NFD", "NFKC", "NFKD")],
    ({**bpe(chars("ab ", "<T>", "<t>")), "normalizer": {"type": "Lowercase"}, "added_tokens": [token(3, "<T>", normalized=True, special=False), token(5, "Ü", normalized=True)]}, ["A<T>b<t>ü", "ÜB", "Üü"]),
    ({**bpe(chars("▁ab")), "normalizer": {"type": "Prepend", "prepend": "▁"}, "added_tokens": [token(3, "<t>"), token(4, "<n>", normalized=True)]}, ["a<t>b", "a<n>b", "<n>", ""]),
]


def tiny() -> list[dict]:
    out = []
    for parts, texts in FILES:
        file = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None, **parts}
        t = Tokenizer.from_str(json.dumps(file))
        cases = []
        for text in texts:
            ids = t.encode(text).ids
            cases.append({"text": text, "ids": ids, "decode": t.decode(ids), "keep": t.decode(ids, skip_special_tokens=False)})
        out.append({"file": file, "cases": cases})
    return out
