"""Every normalizer, pre-tokenizer and decoder with options that the kinds do not have, one by one."""

import json

from tokenizers import Regex, decoders, normalizers, pre_tokenizers

NORMALIZERS = [
    {"type": "NFC"}, {"type": "NFD"}, {"type": "NFKC"}, {"type": "NFKD"}, {"type": "Lowercase"}, {"type": "StripAccents"}, {"type": "Nmt"}, {"type": "ByteLevel"},
    {"type": "Strip", "strip_left": True, "strip_right": False}, {"type": "Strip", "strip_left": False, "strip_right": True},
    {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "NFC"}]},
    {"type": "Prepend", "prepend": "xy"}, {"type": "Replace", "pattern": {"String": "a"}, "content": ""}, {"type": "Replace", "pattern": {"Regex": "\\s*"}, "content": "-"},
    {"type": "Replace", "pattern": {"Regex": "\\w\\W"}, "content": "é"}, {"type": "Replace", "pattern": {"String": ""}, "content": "x"},
    *[{"type": "BertNormalizer", "clean_text": c, "handle_chinese_chars": h, "strip_accents": a, "lowercase": low} for c, h, a, low in [(True, False, None, True), (False, True, True, False), (True, True, False, True), (False, False, False, True)]],
]
REGEXES = [
    r"\w+", r"\W", r"\d\D", r"\h+", r"[[:alpha:]]+", r"[[:punct:]]", r"[[:space:]]|[[:upper:]]", r"^\s|\s$", r"\bk|k\b", r"[^\W\d]+", r"[\p{L}&&[^\p{Han}a-f]]+",
    r"[a-c[x-z]]", r"\p{^L}", r"\P{L}+", r"\p{Han}{1,2}|\p{Greek}|\p{Arabic}", r"(?<=a)b|(?<!\s)\n", r"(a|b)+", r"(?<n>x{2,})", r"(?i)hello|[k-l]s", r"(?i:[^a-z])+", r"a{,2}b?", r"\u4f60|\x{1F44D}|\x41",
    r"(?>a+)b|\A<|\z", r".", r"(?m:.)+", r"\s++\S?+", r"[\s\S]{3}", r"[-a]|[a\-z]|[\]\[]", r"\p{Lu}\p{Ll}+|\p{Sc}|\p{Mn}|\p{So}|\p{Zs}|\p{Cf}", r"\p{Alpha}|\p{Space}", r"[^\x00-\x7F]+",
    r" ?[^(\s|[.,!?…。，、।۔،])]+", r"[0-9][0-9][0-9]", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[\p{Han}\p{Hiragana}&&[^の]]+", r"\R|[^\H]",
]
PRE_TOKENIZERS = [
    *[{"type": "Split", "pattern": {"Regex": r}, "behavior": "Isolated", "invert": False} for r in REGEXES],
    *[{"type": "Split", "pattern": p, "behavior": b, "invert": i} for p in ({"String": " "}, {"Regex": "[aeo ]"}) for b in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous") for i in (False, True)],
    {"type": "Digits", "individual_digits": False}, {"type": "Digits", "individual_digits": True}, {"type": "Whitespace"}, {"type": "WhitespaceSplit"}, {"type": "BertPreTokenizer"},
    *[{"type": "Punctuation", "behavior": b} for b in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")],
    {"type": "CharDelimiterSplit", "delimiter": "e"}, {"type": "FixedLength", "length": 5},
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}, {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False},
    *[{"type": "Metaspace", "replacement": "▁", "prepend_scheme": s, "split": b} for s in ("always", "never", "first") for b in (False, True)], {"type": "Metaspace", "replacement": "_", "add_prefix_space": True},
    {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}]},
    {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, {"type": "Punctuation"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}]},
]
DECODERS = [
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": "a", "start": 2, "stop": 0}, {"type": "Strip", "content": "a", "start": 0, "stop": 1},
    *[{"type": "Metaspace", "replacement": "▁", "prepend_scheme": s, "split": True} for s in ("always", "never", "first")],
    {"type": "WordPiece", "prefix": "##", "cleanup": True}, {"type": "WordPiece", "prefix": "##", "cleanup": False}, {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True}, {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": False},
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "Replace", "pattern": {"String": "aa"}, "content": "b"}, {"type": "Replace", "pattern": {"Regex": "[aĠ]+"}, "content": "<>"},
    *[{"type": "Sequence", "decoders": d} for d in (
        [{"type": "Fuse"}, {"type": "Replace", "pattern": {"String": "aa"}, "content": "b"}], [{"type": "Fuse"}, {"type": "Replace", "pattern": {"Regex": "a+"}, "content": "b"}],
        [{"type": "Fuse"}, {"type": "Strip", "content": "a", "start": 3, "stop": 0}], [{"type": "Fuse"}, {"type": "Strip", "content": "a", "start": 0, "stop": 1}], [{"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}],
        [{"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}],
        [{"type": "Replace", "pattern": {"String": "a"}, "content": ""}, {"type": "WordPiece", "prefix": "##", "cleanup": True}])],
    {"type": "BPEDecoder", "suffix": "</w>"},
]
# What a decoder gets; none is empty, for Python panics where Strip has more to take than there is.
TOKENS = ["a", "aa", "baa", "▁a", "▁", "▁▁", "##x", "x", ".", "'", "n't", " do not", "</w>", "b</w>", "Ġa", "Ġ", "âĤ", "¬", "Ã", "©", "<0xE2>", "<0x82>", "<0xAC>", "<0xFF>", "<0x41>", "<0xZZ>", "<pad>", "|", "é", "中", "a b", "\n"]


def token_lists() -> list[list[str]]:
    state, out = 7, []
    for i in range(300):
        tokens = []
        for _ in range(1 + i % 12):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            tokens.append(TOKENS[(state >> 8) % len(TOKENS)])
        out.append(tokens)
    return out


def part(module, base, config):
    """Builds a part from its JSON: in a tokenizer, as the classes have no other way for all of them."""
    from tokenizers import Tokenizer
    empty = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None, "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}
    return getattr(Tokenizer.from_str(json.dumps({**empty, base: config})), base)


def parts(texts: list[str], packed) -> list[dict]:
    out = []
    for c in NORMALIZERS:
        n = part(normalizers, "normalizer", c)
        out.append({"normalizer": c, "want": packed(n.normalize_str(s) for s in texts)})
    for c in PRE_TOKENIZERS:
        p = part(pre_tokenizers, "pre_tokenizer", c)
        out.append({"pre_tokenizer": c, "want": packed([t for t, _ in p.pre_tokenize_str(s)] for s in texts)})
    lists = token_lists()
    for c in DECODERS:
        d = part(decoders, "decoder", c)
        out.append({"decoder": c, "want": packed(d.decode(t) for t in lists)})
    return out
