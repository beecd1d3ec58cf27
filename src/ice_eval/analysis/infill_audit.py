"""Which label-indicative units the blacklist of infill lets through, judged by lists that it does not know."""

import importlib.resources
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ice_eval import stats
from ice_eval.analysis.pieces import Piece, UnitIds, inside, pieces
from ice_eval.blacklist import blacklist_of, label_words
from ice_eval.encoding import Codec
from ice_eval.errors import DataError
from ice_eval.operators import Blacklist, PooledUnits, TokenCounts
from ice_eval.rationales import set_size
from ice_eval.records import Encoded
from ice_eval.seeding import rng_for
from ice_eval.tasks import Task
from ice_eval.words import word_spans

LOOSE_COUNT, LOOSE_Z = 3, 1.645
"""From where on a token of the held-out half counts as label-indicative: sooner than for the blacklist."""
N_SHUFFLES = 200
_K = 0.2
"""Share of units that the rationale of an example keeps: all others are filled."""

ReferenceName = Literal["words", "held out"]


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What one reference list says of a blacklist."""

    reference: ReferenceName
    blocked: Mapping[UnitIds, Piece] = field(repr=False)
    """Label-indicative units by that list that infill cannot write, the most frequent first."""
    surviving: Mapping[UnitIds, Piece] = field(repr=False)
    """Those that it may write."""
    surviving_by_chance: float | None = None
    """How many a list would find where no token tells the label: the mean over shuffled labels."""
    rate: float
    """Probability that a unit drawn from the pool is one of the surviving."""
    rate_by_chance: float | None = None
    p_value: float | None = None
    """Share of shuffles, the data included, with a rate at least as high."""
    rate_per_example: float
    """Probability that at least one fill of an example is, with a rationale of a fifth of its units."""

    @property
    def considered(self) -> int:
        """Label-indicative units by that list, each counted once."""
        return len(self.blocked) + len(self.surviving)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        pieces = {name: [dict(vars(piece)) for piece in vars(self)[name].values()] for name in ("blocked", "surviving")}
        return {**vars(self), "considered": self.considered, **pieces}


@dataclass(frozen=True)
class InfillAudit:
    """A blacklist, judged."""

    model: str
    task: str
    n: int
    """Examples that fill the pool."""
    units: int
    """Units that they give."""
    units_blocked: int
    n_words: int
    """Words that the list of words holds."""
    word_list: str | None
    """Where they come from beside label words and lexicon."""
    judged: tuple[Judged, ...]
    pool: frozenset[UnitIds] = field(repr=False)
    """Every unit that infill may write."""
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        plain = {name: value for name, value in vars(self).items() if name != "pool"}
        return {**plain, "judged": [each.as_dict() for each in self.judged], "notes": list(self.notes)}


def audit_infill(
    codec: Codec,
    task: Task,
    items: Sequence[tuple[Encoded, int | None]],
    *,
    model: str,
    words: Collection[str] | None = None,
    label_words_only: bool = False,
    seed: int = 0,
) -> InfillAudit:
    """Ask two lists which label-indicative units the blacklist lets through; no model is asked.

    *words*: label words, the task's lexicon, and a list that was written by hand for the labels. Units that are such a
    word, or that stand in such words at least every other time, are label-indicative. The blacklist is the task's own.

    *held out*: the data are cut in two. Tokens that the gold labels of one half use differently, by a looser rule than
    that of the blacklist, are label-indicative; the blacklist is built from the other half, and each half judges once.
    The rule is loose and the halves are small, so most of these tokens may be noise: the same with shuffled labels says
    how many.

    Args:
        codec: The tokenizer.
        task: Gives label words and lexicon.
        items: The examples that fill the pool, and their gold labels.
        model: Whose tokenizer it is.
        words: In place of the list for the task's labels.
        label_words_only: Whether the blacklist holds label words alone, as the paper's package has it.
        seed: Of the shuffles.
    """

    def blacklist(part: Sequence[PooledUnits]) -> Blacklist:
        return blacklist_of(codec, task, part, label_words_only=label_words_only)

    entries = [PooledUnits.of(item, gold) for item, gold in items]
    if not any(entry.units for entry in entries):
        raise DataError("the examples have no units, so there is nothing to fill with.")
    whole = blacklist(entries)
    free = _free(_counts(entries), whole, entries)
    lengths = [item.n_units for item, _ in items]
    listed, name = (frozenset(word.casefold() for word in words), "given") if words is not None else giveaways(task)
    known = listed | {word.casefold() for word in task.lexicon} | _words_in(label_words(task))
    texts = [item for item, _ in items]
    used = pieces(texts)
    judged = [_by_words(used, inside(texts, known), free, lengths)]
    notes = [] if name else ["No list of words is known for these labels: label words and the task's lexicon judge."]
    if len({entry.gold for entry in entries if entry.gold is not None}) > 1:
        judged.append(_held_out(entries, used, blacklist, lengths, seed))
    else:
        notes.append("The data have no gold labels, or only one: nothing can be held out.")
    return InfillAudit(
        model=model,
        task=task.name,
        n=len(entries),
        units=sum(len(entry.units) for entry in entries),
        units_blocked=sum(len(entry.units) for entry in entries) - sum(free.values()),
        n_words=len(known),
        word_list=name,
        judged=tuple(judged),
        pool=frozenset(free),
        notes=tuple(notes),
    )


def giveaways(task: Task) -> tuple[frozenset[str], str | None]:
    """Words that a person would take for a sign of one of the task's labels, and the name of their list."""
    asked = {label.casefold() for label in task.labels}
    folder = importlib.resources.files("ice_eval.analysis") / "giveaways"
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        first, _, words = file.read_text(encoding="utf-8").partition("\n")
        if set(first.removeprefix("# labels: ").split(", ")) == asked:
            return frozenset(words.split()), file.name.removesuffix(".txt")
    return frozenset(), None


def _words_in(texts: Collection[str]) -> set[str]:
    """'sci/tech' is two words."""
    return {text[start:end] for text in texts for start, end in word_spans(text) if text[start:end].isalnum()}


def _counts(entries: Sequence[PooledUnits]) -> Counter[UnitIds]:
    return Counter(ids for entry in entries for ids, _ in entry.units)


def _free(counts: Mapping[UnitIds, int], blacklist: Blacklist, entries: Sequence[PooledUnits]) -> dict[UnitIds, int]:
    """The units that infill may write, and how often each is in the pool."""
    texts = {ids: text for entry in entries for ids, text in entry.units}
    return {ids: count for ids, count in counts.items() if not blacklist.blocks(texts[ids], ids)}


def _by_words(
    used: Mapping[UnitIds, Piece],
    indicative: Collection[UnitIds],
    free: Mapping[UnitIds, int],
    lengths: Sequence[int],
) -> Judged:
    found = {ids: piece for ids, piece in used.items() if ids in indicative}
    surviving = {ids: piece for ids, piece in found.items() if ids in free}
    rate = sum(free[ids] for ids in surviving) / max(sum(free.values()), 1)
    return Judged(
        reference="words",
        blocked={ids: piece for ids, piece in found.items() if ids not in free},
        surviving=surviving,
        rate=rate,
        rate_per_example=_per_example(rate, lengths),
    )


def _per_example(rate: float, lengths: Sequence[int]) -> float:
    removed = np.array([length - set_size(length, _K) for length in lengths if length > 0])
    return float(np.mean(1 - (1 - rate) ** removed))


def _halves(entries: Sequence[PooledUnits]) -> tuple[list[PooledUnits], list[PooledUnits]]:
    """The examples of each label in turn: both halves have the same share of every label, however data are sorted."""
    found: tuple[list[PooledUnits], list[PooledUnits]] = ([], [])
    seen: Counter[int | None] = Counter()
    for entry in entries:
        found[seen[entry.gold] % 2].append(entry)
        seen[entry.gold] += 1
    return found


@dataclass(frozen=True)
class _Half:
    """The half of the data that judges, and what the blacklist of the other half leaves of it."""

    counts: TokenCounts
    every: Mapping[UnitIds, int]
    free: Mapping[UnitIds, int]

    def indicative(self, golds: Any = None) -> frozenset[int]:
        return self.counts.indicative(golds, min_count=LOOSE_COUNT, z_limit=LOOSE_Z)

    def carrying(self, tokens: frozenset[int], *, free: bool) -> set[UnitIds]:
        """Units with one of the tokens: all of them, or those that infill may write."""
        return {ids for ids in (self.free if free else self.every) if not tokens.isdisjoint(ids)}


def _held_out(
    entries: Sequence[PooledUnits],
    used: Mapping[UnitIds, Piece],
    blacklist: Callable[[Sequence[PooledUnits]], Blacklist],
    lengths: Sequence[int],
    seed: int,
) -> Judged:
    halves = []
    first, second = _halves(entries)
    for builds, judges in ((first, second), (second, first)):
        counts = _counts(judges)
        halves.append(_Half(TokenCounts.of(judges), counts, _free(counts, blacklist(builds), judges)))
    found = [half.indicative() for half in halves]
    considered = {ids for half, tokens in zip(halves, found, strict=True) for ids in half.carrying(tokens, free=False)}
    surviving, rate = _surviving(halves, found)
    counts_by_chance, rates_by_chance = np.array(
        [_shuffled(halves, rng_for(seed, "infill-audit", str(draw))) for draw in range(N_SHUFFLES)]
    ).T
    return Judged(
        reference="held out",
        blocked={ids: piece for ids, piece in used.items() if ids in considered - surviving},
        surviving={ids: piece for ids, piece in used.items() if ids in surviving},
        surviving_by_chance=float(counts_by_chance.mean()),
        rate=rate,
        rate_by_chance=float(rates_by_chance.mean()),
        p_value=stats.upper_pvalue(rate, rates_by_chance),
        rate_per_example=_per_example(rate, lengths),
    )


def _shuffled(halves: Sequence[_Half], rng: np.random.Generator) -> tuple[int, float]:
    """How many units survive, and their share of the pool, where labels tell nothing."""
    found, rate = _surviving(halves, [half.indicative(rng.permutation(half.counts.golds)) for half in halves])
    return len(found), rate


def _surviving(halves: Sequence[_Half], tokens: Sequence[frozenset[int]]) -> tuple[set[UnitIds], float]:
    """Units that one half calls indicative and the blacklist of the other lets through, and their share of the pool."""
    found = [half.carrying(own, free=True) for half, own in zip(halves, tokens, strict=True)]
    drawn = sum(half.free[ids] for half, own in zip(halves, found, strict=True) for ids in own)
    return set[UnitIds]().union(*found), drawn / max(sum(sum(half.free.values()) for half in halves), 1)
