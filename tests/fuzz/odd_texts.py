"""Texts in many scripts, with everything that has ever confused a program that cuts texts into pieces."""

from hypothesis import strategies as st

SCRIPTS = {
    "latin": "The naïve café in Čáslav; où est l’œuvre de Ångström? don't well-made 3.14 ﬁne ½ İstanbul straße",
    "cyrillic": "Ёжик всё ещё живёт під ґанком, а їжа — у відрі.",
    "greek": "Ἡ θάλασσα ἦταν ἤρεμη· τι ωραία μέρα",
    "arabic": "القهوةُ ساخنةٌ جِدًّا، فانتظرْ قليلًا… ٣ دقائق؟ می\u200cخواهم \u0600١٢",
    "hebrew": "הַשֶּׁמֶשׁ זרחה מעל ההרים, וכולם שתו תה.",
    "devanagari": "क्षमा कीजिए, मैं रास्ता भूल गया हूँ। ज़रा बताइए? क\u094d\u200dष",
    "thai": "เมื่อวานนี้ฝนตกหนักมาก เราจึงไม่ได้ออกไปไหนเลยค่ะ กำ",
    "chinese": "昨天下雨，我们在家里看了一部老电影。𠮷野家！\uf900\U0002f800",
    "japanese": "がっこうへ行く途中で、ｶﾞﾗｽの破片を踏んでしまった。か\u3099",
    "korean": "비가 와서 우산을 샀는데, \u1112\u1161\u11ab\u1100\u1173\u11af 금방 그쳤어요.",
    "emoji": "👍🏽👨\u200d👩\u200d👧\u200d👦🏳️\u200d🌈👩🏾\u200d🚀🇫🇷🇯🇵1️⃣❤️\u200d🔥☺🧑🏿",
    "marks": "Z\u0351\u036b\u0343a\u0327\u0301\u0308l\u0334g\u0336o\u0489 \u0301x q\u0323\u0307 a\u20dd\u0344\u0345",
    "unseen": "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad\ufff9",
    "turning": "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
    "control": "\x00\x01\x07\x08\x0b\x0c\x0e\x1b[31m\x1c\x1f\x7f\x80\x85\x9b\x9d\ufffd\ufffe\uffff\U0010ffff",
    "spaces": " \t\n\r\n\u00a0\u1680\u2003\u2009\u2028\u2029\u202f\u205f\u3000",
    "markup": "{text} {{}} {0} %s <b>&amp;</b> [bold]x[/] \\n \"q\" 'q' ` | $x$ #1 _ *",
    "tokens": "▁x▁▁ ##ing Ġ Ċ [UNK] [SEP] [MASK] </s> <s> <|endoftext|> <|im_end|> <0x41>",
}  # fmt: skip
"""Characters, in words that hold together; every script is drawn from as words and as single code points."""
WORDS = {script: text.split(" ") for script, text in SCRIPTS.items()}

_any = st.characters(exclude_categories=["Cs"])


@st.composite
def texts(draw, *, max_pieces=12):
    """A text of words, pieces of words, single characters and spaces, out of one script or of several."""
    scripts = draw(st.lists(st.sampled_from(sorted(SCRIPTS)), min_size=1, max_size=3, unique=True))
    alphabet = "".join(SCRIPTS[script] for script in scripts)
    pieces = st.one_of(
        st.sampled_from([word for script in scripts for word in WORDS[script]]),
        st.text(st.sampled_from(alphabet), max_size=6),
        st.sampled_from([" ", "  ", "\n", ""]),
        st.text(_any, max_size=3),
    )
    found = draw(st.lists(pieces, max_size=max_pieces))
    return draw(st.sampled_from(["", " "])).join(found)


@st.composite
def broken_texts(draw):
    """A text with half of a character in it, which no file in UTF-8 can hold but a JSON escape can."""
    before, after = draw(texts(max_pieces=3)), draw(texts(max_pieces=3))
    return before + draw(st.characters(categories=["Cs"])) + after
