"""One small tokenizer of each kind that models come with, trained on this repository and Python's library."""

import base64
import glob
import io
import json
import os
import sysconfig

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from strings import BY_HAND, PIECES

CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
POSSESSIVE = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+",
])
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")


def corpus() -> list[str]:
    files = sorted(glob.glob(ROOT + "/docs/*.md") + glob.glob(ROOT + "/rope/*.go"))[:25]
    library = sysconfig.get_paths()["stdlib"]
    files += [library + "/" + name for name in ("argparse.py", "difflib.py", "textwrap.py", "pathlib.py", "statistics.py")]
    text = "".join(open(f, encoding="utf-8").read() for f in files)
    lines = [line + "\n" for line in text.split("\n")]
    lines += [s for s in BY_HAND if isinstance(s, str) and "\0" not in s and len(s) < 90] * 8
    return lines + [" ".join(PIECES[i:i + 9]) for i in range(len(PIECES))] * 3


LINES = corpus()


def charsmap(**how) -> bytes:
    """The normalizer that SentencePiece writes into its models."""
    from sentencepiece import sentencepiece_model_pb2 as pb
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=out, vocab_size=600, hard_vocab_limit=False, minloglevel=2, **how)
    proto = pb.ModelProto()
    proto.ParseFromString(out.getvalue())
    return proto.normalizer_spec.precompiled_charsmap


def small_charsmap() -> bytes:
    import tempfile
    rules = [("\r", " "), ("\n", " "), ("\t", " "), ("\u00a0", " "), ("\u3000", " "), ("\u200b", ""), ("\ufeff", ""), ("\u2028", " "),
             ("é", "e"), ("e\u0301", "E"), ("ﬁ", "fi"), ("①", "1"), ("Ａ", "A"), ("ｶ", "カ"), ("ｶﾞ", "ガ"), ("…", "..."), ("👍", "+1"), ("\u1112\u1161", "하")]
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as f:
        for a, b in rules:
            f.write(" ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\n")
        f.flush()
        return charsmap(normalization_rule_tsv=f.name)


def precompiled(map_: bytes):
    return normalizers.Precompiled(map_)


def added(t: Tokenizer) -> None:
    """Tokens with every option, beside the special ones."""
    t.add_tokens([
        AddedToken("keyword", single_word=True, normalized=False), AddedToken("New York", normalized=True),
        AddedToken("<tool>", lstrip=True, rstrip=True, normalized=False), AddedToken("newyork", normalized=False),
    ])


def bpe(t: Tokenizer, size=1000, special=(), alphabet=(), **more) -> Tokenizer:
    t.train_from_iterator(LINES, trainers.BpeTrainer(vocab_size=size, special_tokens=list(special), initial_alphabet=list(alphabet), show_progress=False, **more))
    added(t)
    return t


def byte_level(special, size=1000, split=None, **model) -> Tokenizer:
    t = Tokenizer(models.BPE(**model))
    if split is None:
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        t.pre_tokenizer = pre_tokenizers.Sequence([*[pre_tokenizers.Split(Regex(s), "isolated") for s in split], pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    return bpe(t, size, special, pre_tokenizers.ByteLevel.alphabet())


def roberta():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    t.decoder = decoders.ByteLevel()
    bpe(t, 900, ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True, normalized=False)], pre_tokenizers.ByteLevel.alphabet())
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return t


def llama3():
    t = byte_level(["<|begin_of_text|>", "<|endoftext|>", "<|im_start|>", "<|im_end|>"], split=[CL100K], ignore_merges=True)
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1", special_tokens=[("<|begin_of_text|>", 0)])])
    return t


def qwen():
    t = byte_level(["<|endoftext|>", "<|im_start|>", "<|im_end|>"], split=[CL100K.replace("{1,3}", "")])
    t.normalizer = normalizers.NFC()
    return t


def deepseek():
    digits, east, rest = r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+", r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    return byte_level(["<|endoftext|>", "<s>"], split=[digits, east, rest])


BYTES = [f"<0x{b:02X}>" for b in range(256)]


def sentencepiece_bpe(**model) -> Tokenizer:
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True, **model))
    return t


def llama2():
    t = sentencepiece_bpe()
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")  # for training only
    bpe(t, 1100, ["<unk>", "<s>", "</s>", *BYTES], limit_alphabet=120)
    t = without(t, pre_tokenizer=None, keep_special={"<unk>", "<s>", "</s>"})
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    return t


def without(t: Tokenizer, keep_special: set[str], **parts) -> Tokenizer:
    """The tokenizer with other parts, and without the added tokens that are only special for training."""
    d = json.loads(t.to_str())
    d.update(parts)
    d["added_tokens"] = [a for a in d["added_tokens"] if a["content"] not in BYTES]
    d["model"]["merges"] = [" ".join(m) if isinstance(m, list) else m for m in d["model"]["merges"]]
    return Tokenizer.from_str(json.dumps(d))


def mistral():
    t = sentencepiece_bpe()
    t.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=True)
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    bpe(t, 1100, ["<unk>", "<s>", "</s>", *BYTES], limit_alphabet=120)
    t = without(t, keep_special=set())
    t.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)
    t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return t


def gemma():
    t = sentencepiece_bpe()
    t.normalizer = normalizers.Replace(" ", "▁")
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    bpe(t, 1100, ["<pad>", "<unk>", "<s>", "</s>", *BYTES], limit_alphabet=150, max_token_length=12)
    t = without(t, keep_special=set())
    t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 2)])
    return t


def clip():
    t = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.decoder = decoders.ByteLevel()
    bpe(t, 900, ["<s>", "<|endoftext|>", "<unk>"], pre_tokenizers.ByteLevel.alphabet(), end_of_word_suffix="</w>")
    t.post_processor = processors.RobertaProcessing(("<|endoftext|>", 1), ("<s>", 0), trim_offsets=False, add_prefix_space=False)
    return t


def words_bpe():
    """The BPE of Sennrich et al.: words of letters, with marks, and unknown letters."""
    t = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="@@", end_of_word_suffix="</w>"))
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.decoder = decoders.BPEDecoder("</w>")
    return bpe(t, 700, ["<unk>", "<s>"], limit_alphabet=80, continuing_subword_prefix="@@", end_of_word_suffix="</w>")


def unigram(t: Tokenizer, special, size=900) -> Tokenizer:
    t.train_from_iterator(LINES, trainers.UnigramTrainer(vocab_size=size, special_tokens=list(special), unk_token="<unk>", show_progress=False, max_piece_length=12))
    added(t)
    return t


def t5():
    t = Tokenizer(models.Unigram())
    t.normalizer = precompiled(charsmap(normalization_rule_name="nmt_nfkc"))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace("▁", prepend_scheme="always")])
    t.decoder = decoders.Metaspace("▁", prepend_scheme="always")
    unigram(t, ["<pad>", "</s>", "<unk>"])
    t.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    return t


def xlmr():
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.Nmt(), precompiled(small_charsmap()), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="always")
    t.decoder = decoders.Metaspace("▁", prepend_scheme="always")
    unigram(t, ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True, normalized=False)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return t


def albert():
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip(True, True), precompiled(small_charsmap())])
    t.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first")
    t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace("▁", prepend_scheme="first")])
    unigram(t, ["<pad>", "<unk>", "[CLS]", "[SEP]", AddedToken("[MASK]", lstrip=True, special=True, normalized=False), *BYTES], 1000)
    d = json.loads(t.to_str())
    d["model"]["byte_fallback"] = True
    d["added_tokens"] = [a for a in d["added_tokens"] if a["content"] not in BYTES]
    t = Tokenizer.from_str(json.dumps(d))
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t


def bert(lowercase: bool):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece("##", cleanup=lowercase)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator(LINES, trainers.WordPieceTrainer(vocab_size=1000, special_tokens=special, limit_alphabet=200, show_progress=False))
    added(t)
    if lowercase:
        t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    else:
        t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


def word_level():
    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("isolated"), pre_tokenizers.Digits(individual_digits=True)])
    t.train_from_iterator(LINES, trainers.WordLevelTrainer(vocab_size=500, special_tokens=["<unk>", "<s>"], show_progress=False))
    added(t)
    return t


KINDS = {
    "gpt2": lambda: byte_level(["<|endoftext|>"]),
    "roberta": roberta,
    "llama3": llama3,
    "qwen": qwen,
    "deepseek": deepseek,
    "o200k": lambda: byte_level(["<|endoftext|>"], split=[O200K]),
    "cl100k": lambda: byte_level(["<|endoftext|>"], split=[POSSESSIVE], size=700),
    "llama2": llama2,
    "mistral": mistral,
    "gemma": gemma,
    "clip": clip,
    "words": words_bpe,
    "t5": t5,
    "xlmr": xlmr,
    "albert": albert,
    "bert-uncased": lambda: bert(True),
    "bert-cased": lambda: bert(False),
    "wordlevel": word_level,
}
