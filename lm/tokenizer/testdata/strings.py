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
BAD = [b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x91", b"\x80", b"\xed\xa0\x80"]


def strings() -> list[bytes]:
    rng = random.Random(20240229)
    out = [s if isinstance(s, bytes) else s.encode() for s in BY_HAND]
    while len(out) < 1000:
        parts = [rng.choice(PIECES).encode() for _ in range(rng.randint(1, 14))]
        if rng.random() < 0.5:  # words rather than noise
            parts = [p if rng.random() < 0.3 else b" " + p for p in parts]
        if rng.random() < 0.06:
            parts.insert(rng.randrange(len(parts) + 1), rng.choice(BAD))
        out.append(b"".join(parts))
    assert len(out) == 1000
    return out
