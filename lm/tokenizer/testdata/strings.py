"""Strings that are awkward for tokenizers, 1,000 of them, the same in every run."""

import random

# Each is a text, or bytes that are not valid UTF-8.
BY_HAND = [
    "", " ", "  ", "\n", "\t", "\r\n", "\r", "\n\n\n", " \n ", "   \n\n  \t x", "a", "A", "0", ".", "▁", "▁▁", " ▁ ", "##", "##ing",
    "Hello, world!", "Hello  world", " Hello world ", "hello", "don't you've I'LL we'RE it'S he'd I'm 'TIS", "'s 't 'ſ I'ſ 'K",
    "naïve café Zürich", "nai\u0308ve cafe\u0301 Zu\u0308rich", "İstanbul ISTANBUL ı", "ΑΒΓΣ ΟΔΟΣ ς", "ﬁne ﬂat ﬀ ﬃ ſt", "ǅ ǆ Ǆ", "ß ẞ SS",
    "1234567890 12 345 6789 3.14159 1,000,000 ½ ² ٣٤٥ १२३ Ⅷ ①②", "x=1;y=22;z=333", "2024-01-31T23:59:59.999Z",
    "👍", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈 🇩🇪🇫🇷🇯🇵", "👨🏿‍🚀👩🏻‍⚕️", "❤️ ❤", "☺️☺", "🤷🏽‍♀️ shrug", "a👍b", "keycap 1️⃣ 2️⃣",
    "你好，世界！", "我愛北京天安門", "日本語の文章です。", "カタカナ ｶﾀｶﾅ ひらがな ー", "한국어 문장입니다.", "한국어", "中文abc日本語123한글", "㍿ ㈱ ℃ ™ №",
    "مرحبا بالعالم", "שלום עולם", "שָׁלוֹם", "אבג abc دهو", "\u202eabc\u202c", "السَّلامُ عَلَيْكُم", "नमस्ते दुनिया", "ไทยภาษา", "வணக்கம்",
    "Привет, мир! Ёё Йй", "Ελληνικά ά έ", "Tiếng Việt ở đây", "Tie\u0302\u0301ng Vie\u0323\u0302t", "Z̷̢͝a̸l̵g̶o̴", "a" + "\u0301" * 50, "\u0301\u0302\u0303", "e\u0301\u0323", "\u0323\u0301e",
    "q\u0307\u0323 \u1e9b\u0323", "Å Å Å", "Ω Ω K K", "\u0344 \u0958 \u2adc \ufb1d", "각 각 \u1100\u1161", "\ud55c", "\u200b zero\u200bwidth \u200c \u200d", "nb\u00a0sp\u3000wide\u2003em\u2028ls\u2029ps\u0085nel",
    "\x00", "a\x00b", "\x01\x02\x1b[0m", "\x7f\x80\x9f", "\ufeffbom", "\ufffd", "\ufffe \uffff", "\ue000 \U000f0000", "\U0010ffff", "\u00ad soft\u00adhyphen", "\u061c\u2066x\u2069",
    "<s>", "</s>", "<unk>", "<pad>", "[CLS]", "[SEP]", "[MASK]", "[UNK]", "<|endoftext|>", "<|im_start|>user\nhi<|im_end|>\n", "<|begin_of_text|>", "a<s>b", "a <s> b", " <s> ", "<s><s>", "</s></s> x", "x</s>y </s> z",
    "a[MASK]b", "a [MASK] b", "the  [MASK]  end", "[mask] [Mask]", "<mask>", "a <mask> b", "x<mask>y", "  <mask>  ", "<|endoftext|", "|endoftext|>", "<|endoftext|><|endoftext|>", "<<s>>", "<0x0A>", "<0xFF> <0x41>",
    "keyword", "a keyword b", "akeywordb", "keyword!", "(keyword)", "KEYWORD Keyword", "keyword_1 _keyword", "ékeyword keywordé", "new york", "New York city", "newyork", "in New  York", "<tool>", "x <tool>\n y", "x\n\n<tool>  y<tool>",
    "```python\nprint('hi')\n```", "``quoted'' \"text\"", "don't. do not , please ! n't 's", "http://example.com/a?b=c&d=e#f", "C:\\Users\\x\\n", "foo_bar fooBar FooBar FOO_BAR", "a-b—c–d…", "«guillemets» „low“ ‚x‘", "!?!?...;;;", "~!@#$%^&*()_+`-={}|[]\\:\";'<>?,./",
    "$100 €200 £300 ¥400 +5 −6 ×7", "x" * 300, "ab" * 200, "a" * 101, "a" * 100, "y" * 99 + " z", "é" * 150, "👍" * 60, "中" * 70, " " * 200, " " * 100 + "x", "\n" * 50 + "y", "\t" * 9 + "tab", "a " * 120, "1" * 120, "!" * 120,
    "  indented\n    more\n\tmixed \t\n", "line\r\nline\r\n\r\n", "trailing   ", "   leading", "a\u3000b", "\u3000", "\u00a0", "\u2581x \u2581 y", "▁hello▁world", "Ġhello Ċ", "hello</w>", "a</w> b", "é</w>",
    "ab" + "\n" * 3 + "  cd", "word\u0301word", "\u0301word", "x\u200dy", "l'été d'Été qu'il", "rock'n'roll", "o'clock", "3rd 4th 10km 5%", "E=mc²", "H₂O", "ＦＵＬＬ ｗｉｄｔｈ １２３", "𝕌𝕟𝕚𝕔𝕠𝕕𝕖 𝒔𝒄𝒓𝒊𝒑𝒕 🅰", "Ⓐⓑ ㊀ ꙮ ᾳ ͅ",
    "𐍈 𐐀 𐐨 𝄞 🀄", "ꜣ ꟸ", "\u0600\u06dd x", "\u17b4\u17b5 ខ្មែរ", "ཀྵ ༀ", "\u115f\u1160", "\u0e33 \u0eb3", "〇〡 々〆", "ゔ ヴ が が", "\u309b \u309c", "· ͂ ΅", "؟ ، ؛", "。、！？", "一二三　四五六",
    b"\xff", b"a\xffb", b"\xc3", b"\xc3\x28", b"\xe2\x82", b"\xe2\x82\xe2\x82\xac", b"\xf0\x9f\x91", b"\xf0\x9f\x91\x8d\xf0\x9f", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xe0\x80\x80", b"\xf8\x88\x80\x80\x80", b"\x80\x80", b"ok \xe4\xbd\xa0\xe5 end", b"<s>\xff</s>", b"\xfe\xfe\xff\xff",
]

PIECES = [
    " ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u3000", "\u2028", "the", "The", "token", "izer", "ing", "un", "believable", "hello", "world", "I'm", "don't", "'ll", "HTTP", "Server",
    "def f(x):", "return", "{", "}", "();", "//", "/*", "*/", "==", "!=", "<=", "->", "::", "#", "##", "_", "-", "--", ".", "...", ",", "!", "?", "'", '"', "`", "``", "''", "@", "&", "%", "$",
    "0", "1", "42", "1234", "99999", "3.14", "½", "٣", "é", "e\u0301", "ü", "u\u0308", "ñ", "ß", "İ", "ſ", "Å", "\u0301", "\u0323", "\u0327", "ﬁ", "①", "²", "Ａ", "ｶ", "ﾞ",
    "你", "好", "世界", "日本", "の", "カ", "ー", "한", "글", "ᄒ", "ᅡ", "ᆫ", "م", "رحبا", "שלום", "नमस्ते", "ไทย", "Привет", "мир", "Ελλάς", "ς", "Việt",
    "👍", "🏽", "\u200d", "\ufe0f", "❤️", "🇩", "🇪", "👩‍👧", "🤖", "𝕏", "𐍈", "\u200b", "\ufeff", "\u00ad", "\x00", "\x1b", "\x85", "\ufffd", "\ue000", "▁", "Ġ", "</w>",
    "<s>", "</s>", "<unk>", "<mask>", "[MASK]", "[CLS]", "[SEP]", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "keyword", "New York", "new york", "<tool>", "<0x41>", "<pad>",
]

def letters(*ends: tuple[int, int]) -> str:
    """The letters from one to another, with blanks between them."""
    return " ".join(chr(c) for low, high in ends for c in range(low, high + 1))


# Where one kind of letter ends and another begins. The tokenizers are not trained on these.
EDGES = [
    letters((0x00, 0x20)), letters((0x21, 0x7F)), letters((0x80, 0xA0)), letters((0xA1, 0xFF)), letters((0x100, 0x144)),
    letters((0x33FF, 0x3400), (0x4DBF, 0x4DC0), (0x4DFF, 0x4E00), (0x9FFF, 0xA000), (0xF8FF, 0xF900), (0xFAFF, 0xFB00)),
    letters((0x1FFFF, 0x20000), (0x2A6DF, 0x2A6E0), (0x2A6FF, 0x2A700), (0x2B73F, 0x2B740), (0x2B81F, 0x2B820), (0x2B91F, 0x2B920), (0x2CEAF, 0x2CEB0), (0x2F7FF, 0x2F800), (0x2FA1F, 0x2FA20)),
    letters((0x167F, 0x1681), (0x1FFF, 0x2011), (0x2027, 0x2030), (0x205E, 0x2061), (0x2580, 0x2582), (0x3000, 0x3001), (0xFEFE, 0xFF01), (0xFFF8, 0xFFFD)),
    letters((0x0BE6, 0x0BF2), (0x2150, 0x2160), (0x2180, 0x2189), (0x3021, 0x302A), (0x1D7CE, 0x1D7FF)), letters((0x300, 0x30F), (0x35C, 0x362), (0x483, 0x489), (0x20D0, 0x20E4), (0x24B5, 0x24B7), (0x24E9, 0x24EB)),
    letters((0xAC00, 0xAC02), (0xD7A2, 0xD7A3), (0x1100, 0x1102), (0x1161, 0x1162), (0x11A8, 0x11AA)), letters((0x130, 0x131), (0x1C4, 0x1CC), (0x1E96, 0x1E9F), (0x1F80, 0x1F88), (0x10400, 0x10402), (0x2126, 0x212B)),
    letters((0x203F, 0x2041), (0xFE33, 0xFE34), (0xFE4D, 0xFE4F), (0xFF3F, 0xFF40), (0x200C, 0x200D)), letters((0x1F1E6, 0x1F1E8), (0x1F3FB, 0x1F3FF), (0xFE0E, 0xFE0F), (0xE0061, 0xE0063)),
    "a\u0315\u0300\u05ae\u0062 " + "a" + "\u0315\u0300\u0327" * 14 + " \u1100" + "\u1161\u11a8" + "\u0301" * 40 + "e\u0301", "\u0e33" * 20, "x" * 63 + " " + "x" * 64 + " " + "x" * 65, "\u0fb2\u0f71\u0f80 \u0cca \u0dde",
]
BAD = [b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x91", b"\x80", b"\xed\xa0\x80"]


def strings() -> list[bytes]:
    rng = random.Random(20240229)
    out = [s if isinstance(s, bytes) else s.encode() for s in BY_HAND]
    out += [s.encode() for s in EDGES]
    while len(out) < 1000:
        parts = [rng.choice(PIECES).encode() for _ in range(rng.randint(1, 14))]
        if rng.random() < 0.5:  # words rather than noise
            parts = [p if rng.random() < 0.3 else b" " + p for p in parts]
        if rng.random() < 0.06:
            parts.insert(rng.randrange(len(parts) + 1), rng.choice(BAD))
        out.append(b"".join(parts))
    assert len(out) == 1000
    return out
