"""Encoded examples of every kind, small enough to try all sets of their units."""

import itertools
import re

import numpy as np

from ice_eval.encoding import Tokens, encode
from ice_eval.models.toy import ToyCodec
from ice_eval.nulls import nulls, unit_counts
from ice_eval.records import Example, SpecialIds
from ice_eval.tasks import Records, Task

LABEL_WORDS = {"negative": " negative", "positive": " positive"}
ONE, TWO = "Review: {text}\nSentiment:", "Premise: {first}\nHypothesis: {second}\nLabel:"


class Bytes:
    """A tokenizer that cuts words into pieces of three UTF-8 bytes, the space before a word with its first piece."""

    reads_pairs = False
    max_tokens = 100_000
    special = SpecialIds()

    def writes_special(self, text):
        return False

    def tokenize(self, text, pair=None, *, framed=False):
        spans = []
        for word in re.finditer(r"(\s?)(\S+)", text):
            owner = [word.start(2) + index for index, character in enumerate(word[2]) for _ in character.encode()]
            pieces = [owner[at : at + 3] for at in range(0, len(owner), 3)]
            spans += [(piece[0] - len(word[1]) * (not at), piece[-1] + 1) for at, piece in enumerate(pieces)]
        start, end = np.array(spans, dtype=np.int64).reshape(-1, 2).T
        none = np.zeros(len(start), dtype=np.int64)
        return Tokens(ids=np.arange(len(start)), segments=none, sequence=none, start=start, end=end)

    def decode(self, rows):
        raise NotImplementedError("ids stand for places here")


def item_of(*texts, codec=None, prompt=None, example_id="0", **options):
    """One text, or two, as a model reads them in a prompt of one field, or two."""
    fields = dict(zip(("text",) if len(texts) == 1 else ("first", "second"), texts, strict=True))
    task = Task(data=Records([]), prompt=prompt or (ONE if len(texts) == 1 else TWO), label_words=LABEL_WORDS)
    return encode(codec or ToyCodec(), task, Example(example_id, fields), **options)


ITEMS = {
    "words": item_of("a gorgeous film with a warm and witty cast"),
    "pieces": item_of("it isn't so-so, it's"),
    "word-units": item_of("it isn't a well-made film, it's so-so", unit="word"),
    "bytes": item_of("wonderful unhappy so warm", codec=Bytes()),
    "byte-words": item_of("wonderful unhappy so warm as cold", codec=Bytes(), unit="word"),
    "han": item_of("电影好看 naïvely ugly 🙂 naïvest", codec=Bytes()),
    "two-fields": item_of("a man plays music", "he isn't asleep"),
    "field-of-one": item_of("yes", "no one's at home or at work"),
    "prompt": item_of("so-so", scope="prompt", prompt="The review {text} isn't it:"),
    "three-lines": item_of("bad bad film", prompt="One: {text}\nTwo: {text}\nThree: {text}\nLabel:"),
    "two-units": item_of("a film"),
    "one-unit": item_of("film"),
}
COUNTS = {**unit_counts(item.texts for item in ITEMS.values()), "film": 64, "warm": 0}


def class_of(name, item, rationale):
    return nulls.get(name)().class_of(item, rationale, counts=COUNTS)


def subsets(item):
    """Every set of units that is not empty."""
    for size in range(1, item.n_units + 1):
        yield from itertools.combinations(range(item.n_units), size)
