"""What holds for every text, tokenizer, kind of unit and operator, checked without looking at how it is done."""

import unicodedata
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from tests.rows import each_row

from ice_eval.encoding import encode
from ice_eval.errors import CapabilityError
from ice_eval.operators import Blacklist, FillPool, PooledUnits, operators
from ice_eval.records import PROTECTED, Example, Kind
from ice_eval.results import LedgerRow, RowKey
from ice_eval.tasks import Records, Task
from ice_eval.words import character_starts, word_spans

LABELS = {"negative": " negative", "positive": " positive"}
APART = ("Review: {text}\nSentiment:", "{text}", "{first} {second}", "First: {first}\n\nSecond: {second}\n")
"""Prompts in which texts stand between spaces, so that no token of theirs touches a word of the template."""
PROMPTS = (*APART, 'Say "{text}" again', "{{{text}}} is {{JSON}}:", "Is it:{first}, or:{second}.")
LONGEST = 100_000
"""Tokens; no text here is cut."""


def task_of(prompt):
    return Task(data=Records([]), prompt=prompt, label_words=LABELS)


def example_of(task, text, other, example_id="0"):
    """The fields of a prompt: one holds the text, a second one the other."""
    return Example(example_id, dict(zip(task.template.fields, (text, other), strict=False)))


def check_units(item, *, unit, covers):
    """Units are slices of their fields in order, whole characters and words, and between them hold every character."""
    texts = {**item.fields, **item.whole}
    assert list(item.texts) == [texts[span.field][span.start : span.end] for span in item.spans]
    assert all(item.texts)
    for one, other in pairwise(item.spans):
        assert one.field != other.field or one.end <= other.start
    owners = [owner for owner in item.unit_of.tolist() if owner != PROTECTED]
    assert owners == sorted(owners)
    assert set(owners) == set(range(item.n_units))
    for name in {span.field for span in item.spans}:
        spans = [span for span in item.spans if span.field == name]
        places = {place for span in spans for place in (span.start, span.end)}
        assert places <= {*character_starts(texts[name]).tolist(), len(texts[name])}
        if unit == "word":
            assert not places & {place for start, end in word_spans(texts[name]) for place in range(start + 1, end)}
    if covers:
        for name in item.whole or item.fields:
            held = {place for span in item.spans if span.field == name for place in range(span.start, span.end)}
            assert {place for place, letter in enumerate(texts[name]) if not letter.isspace()} <= held


def check_template(codec, task, item):
    """What no operator may touch is the template: the tokenizer's ids, unless it joins template and content."""
    pieces, pair = task.classifier_pieces(item.fields) if codec.reads_pairs else (task.prompt_pieces(item.fields), [])
    text, second = ("".join(piece.text for piece in part) for part in (pieces, pair))
    said = codec.tokenize(text, second if pair else None)
    if item.divided:
        assert item.ids.tolist() != said.ids.tolist()
        one, other = (unicodedata.normalize("NFC", text) for text in codec.decode([item.ids, said.ids]))
        assert one == other
    else:
        assert item.ids.tolist() == said.ids.tolist()
        assert item.segments.tolist() == said.segments.tolist()
        assert (item.unit_of[said.sequence < 0] == PROTECTED).all()
    assert item.empty().ids.tolist() in (
        item.ids[item.unit_of == PROTECTED].tolist(),
        [item.special.end],  # where the prompt is nothing but the text
    )


def check_template_characters(codec, task, inputs, *, exact):
    """Every input shows all characters of the template in order; a space may go with the word after it.

    Tokenizers that are not `exact` drop spaces or lower letters: neither counts.
    """
    parts = () if codec.reads_pairs else task.template.parts  # classifiers read the bare fields
    for text in codec.decode([row.ids for row in inputs]):
        shown, place = text if exact else bare(text), 0
        for part in parts:
            if part.field is None:
                wanted = part.text if part is parts[-1] else part.text.rstrip(" ")
                wanted = wanted if exact else bare(wanted)
                assert wanted in shown[place:], (wanted, shown)
                place = shown.index(wanted, place) + len(wanted)


def bare(text):
    return "".join(text.split()).lower()


@dataclass(frozen=True)
class Rows:
    """Rows of one example under one operator, and the replacements it was given."""

    item: object
    name: str
    keep: np.ndarray
    fills: np.ndarray | None
    """An id for every token of a unit; None for operators that need none."""

    def inputs(self):
        act = operators.get(self.name)()
        fills = self.fills if act.needs_fills else self.item.ids[:0]
        return each_row(act.build(self.item, self.keep, fills=fills))

    def check(self):
        """Kept units stay, order stays, nothing outside the content moves, and counts match."""
        item, act = self.item, operators.get(self.name)()
        sizes = np.bincount(item.unit_of[item.unit_of != PROTECTED], minlength=item.n_units)
        inputs, starts = self.inputs(), np.cumsum(sizes) - sizes
        assert len(inputs) == len(self.keep)
        assert [row.keys for row in inputs] == [row.keys for row in self.inputs()]
        for row, keep in zip(inputs, self.keep, strict=True):
            kept = item.tokens_kept(keep)
            assert kept.sum() == len(item.ids) - sizes[~keep].sum()
            assert len(row.segments) == len(row.ids)
            if self.name == "delete":
                assert len(row.ids) == len(item.ids) - sizes[~keep].sum()
                assert row.ids.tolist() == item.ids[kept].tolist()
                assert row.segments.tolist() == item.segments[kept].tolist()
                continue
            assert len(row.ids) == len(item.ids)
            assert row.ids[kept].tolist() == item.ids[kept].tolist()
            assert row.segments.tolist() == item.segments.tolist()
            for unit in np.flatnonzero(~keep):
                written = row.ids[item.unit_of == unit]
                assert len(written) == sizes[unit]
                if act.needs_fills:
                    assert written.tolist() == self.fills[starts[unit] :][: sizes[unit]].tolist()
                else:
                    assert len(set(written.tolist())) == 1 and written[0] in _written(self.name, item.special)

    def ledger(self):
        """The rows as a run folder keeps them."""
        return [
            LedgerRow(
                key=RowKey(self.item.example_id, Kind.RANDOM, self.name, "sufficiency", int(keep.sum()), place, 0),
                kept=tuple(np.flatnonzero(keep).tolist()),
                input_ids=tuple(row.ids.tolist()),
                segment_ids=tuple(row.segments.tolist()),
                scores=(-0.5, -1.0),
                text="".join(self.item.texts),
            )
            for place, (row, keep) in enumerate(zip(self.inputs(), self.keep, strict=True))
        ]


def _written(name, special):
    """What an operator that masks may write."""
    return {"mask": {special.mask}, "mask-unk": {special.unk, special.end}, "mask-pad": {special.pad, special.end}}[
        name
    ]


def usable(name, special):
    """Whether a model with these special tokens can be asked for an operator."""
    try:
        operators.get(name)().prepare(special)
    except CapabilityError:
        return False
    return True


def fills_for(codec, task, item, *, unit, scope, seed):
    """Fills out of a pool of two other examples; each is a unit of theirs, or several joined."""
    words = ("a good film", "the very bad café was cold")
    others = [
        encode(codec, task, example_of(task, text, text[::-1], f"other {place}"), unit=unit, scope=scope)
        for place, text in enumerate(words)
    ]
    found = [PooledUnits.of(other, None) for other in others]
    pool = FillPool(found, blacklist=Blacklist(frozenset(), frozenset(), frozenset()))
    pooled = {i for entry in found for ids, _ in entry.units for i in ids}
    if not pool.can_fill(item):
        return None
    fills = pool.draw(item, np.random.default_rng(seed))
    assert len(fills.ids) == np.count_nonzero(item.unit_of != PROTECTED) and len(fills.texts) == item.n_units
    assert set(fills.ids.tolist()) <= pooled
    return fills.ids
