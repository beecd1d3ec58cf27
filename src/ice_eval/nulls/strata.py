"""Nulls that match the number of units of a set in each part of a text: in all of it, quarters, frequencies, words."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ice_eval.errors import DataError
from ice_eval.nulls._base import Key, Null, SetClass, adjacent_units, counts_of, null
from ice_eval.rationales import Units
from ice_eval.records import Encoded
from ice_eval.words import word_spans

_QUARTERS = 4
_UNSEEN = -1


@dataclass(frozen=True)
class Strata(SetClass):
    """All sets that take the same number of units from each stratum."""

    strata: tuple[Units, ...]
    """Units of each stratum: together all units of the example, each once."""
    taken: tuple[int, ...]
    """Number of units of each stratum in a set."""

    @classmethod
    def of(cls, stratum_of: Sequence[int], rationale: Units) -> "Strata":
        """Return the class of a rationale, given the stratum of each unit."""
        strata: dict[int, list[int]] = {stratum: [] for stratum in sorted(set(stratum_of))}
        for unit, stratum in enumerate(stratum_of):
            strata[stratum].append(unit)
        inside = set(rationale)
        return cls(tuple(map(tuple, strata.values())), tuple(len(inside & set(units)) for units in strata.values()))

    @property
    def key(self) -> Key:
        """Return the units in each stratum and in a set: `(8, 2)` is two of eight."""
        return tuple(number for units, taken in self._parts() for number in (len(units), taken))

    @property
    def count(self) -> int:
        return math.prod(math.comb(len(units), taken) for units, taken in self._parts())

    def every(self) -> Iterator[Units]:
        choices = [itertools.combinations(units, taken) for units, taken in self._parts()]
        for chosen in itertools.product(*choices):
            yield tuple(sorted(itertools.chain(*chosen)))

    def draw(self, rng: np.random.Generator) -> Units:
        units = (
            units[place] for units, taken in self._parts() for place in rng.permutation(len(units))[:taken].tolist()
        )
        return tuple(sorted(units))

    def _parts(self) -> Iterator[tuple[Units, int]]:
        return zip(self.strata, self.taken, strict=True)


@null("size")
@dataclass(frozen=True, kw_only=True)
class Size(Null):
    """All sets of as many units."""

    def class_of(self, item: Encoded, rationale: Units, *, counts: Mapping[str, int]) -> Strata:
        return Strata.of([0] * item.n_units, rationale)


@null("position")
@dataclass(frozen=True, kw_only=True)
class Position(Null):
    """Sets with as many units in each quarter of the text: unit `i` of `n` lies in quarter `4 * i // n`."""

    def class_of(self, item: Encoded, rationale: Units, *, counts: Mapping[str, int]) -> Strata:
        return Strata.of([_QUARTERS * unit // item.n_units for unit in range(item.n_units)], rationale)


@null("frequency")
@dataclass(frozen=True, kw_only=True)
class Frequency(Null):
    """Sets with as many units that occur 1 to 3 times in the data, 4 to 15 times, 16 to 63 times and so on."""

    needs_counts = True

    def class_of(self, item: Encoded, rationale: Units, *, counts: Mapping[str, int]) -> Strata:
        if not counts:
            raise DataError("the null 'frequency' needs to know how often units occur in the data; give it counts.")
        # The whole part of log4 of a count, which floating point gets wrong; unseen units are a band below.
        bands = [(n.bit_length() - 1) // 2 if n else _UNSEEN for n in counts_of(item.texts, counts)]
        return Strata.of(bands, rationale)


# --- words ---------------------------------------------------------------------------------------------------------

Word = tuple[Units, ...]  # its units of one token, those of two tokens, and so on, where it has such
Shape = tuple[tuple[int, int], ...]  # (tokens, how many units of the word have so many) for each of these
Taken = tuple[int, ...]  # how many units of each of these are in a set


@null("sub-word")
@dataclass(frozen=True, kw_only=True)
class SubWord(Null):
    """Sets of as many pieces from as many words of as many pieces; with word units, as many words of as many tokens.

    Pieces are distinguished by their number of tokens, so that one definition holds for both. For example, sets are
    matched on the number of words with one of their three pieces in the set, or of whole words of three tokens.
    """

    def class_of(self, item: Encoded, rationale: Units, *, counts: Mapping[str, int]) -> "Pieces":
        tokens = item.unit_lengths().tolist()
        alike: dict[Shape, list[Word]] = {}
        for units in words_of(item):
            shape = tuple(sorted(Counter(tokens[unit] for unit in units).items()))
            word = tuple(tuple(unit for unit in units if tokens[unit] == number) for number, _ in shape)
            alike.setdefault(shape, []).append(word)
        inside, shapes = set(rationale), []
        for shape, words in sorted(alike.items()):
            found = Counter(tuple(len(inside.intersection(units)) for units in word) for word in words)
            taken = tuple((each, found[each]) for each in sorted(found) if any(each))
            shapes.append(WordsAlike(shape, tuple(words), taken))
        return Pieces(tuple(shapes))


def words_of(item: Encoded) -> list[Units]:
    """Group units by word: a unit belongs to the word of its first character, and one of spaces is alone."""
    found: list[Units] = []
    for line in adjacent_units(item):
        # The field as far as the units spell it.
        text = [" "] * item.spans[line[-1]].end
        for unit in line:
            text[item.spans[unit].start : item.spans[unit].end] = item.texts[unit]
        start_of = {place: start for start, end in word_spans("".join(text)) for place in range(start, end)}
        words = {unit: start_of.get(item.spans[unit].start, -1 - unit) for unit in line}
        found += [tuple(units) for _, units in itertools.groupby(line, words.__getitem__)]
    return found


class WordsAlike(NamedTuple):
    """The words of one shape, and the numbers of units that a set contains of them."""

    shape: Shape
    words: tuple[Word, ...]
    taken: tuple[tuple[Taken, int], ...]
    """Units taken of a word, and the number of such words; words of which nothing is taken are omitted."""


def _every_choice(words: Sequence[Word], kinds: Sequence[tuple[Taken, int]]) -> Iterator[Units]:
    if not kinds:
        yield ()
        return
    (taken, number), *others = kinds
    for chosen in itertools.combinations(words, number):
        rest = list(_every_choice([word for word in words if word not in chosen] if others else [], others))
        for units in itertools.product(*(Strata(word, taken).every() for word in chosen)):
            yield from (tuple(itertools.chain(*units, more)) for more in rest)


@dataclass(frozen=True)
class Pieces(SetClass):
    """All sets that take equally from as many words of each shape."""

    alike: tuple[WordsAlike, ...]

    @property
    def key(self) -> Key:
        """Return the key, as `((((1, 3),), (2,), 5),)`: of five words of three one-token units two units each."""
        return tuple((words.shape, taken, number) for words in self.alike for taken, number in words.taken)

    @property
    def count(self) -> int:
        """Return the ways to choose the words of each shape, times the ways to choose among the units of each."""
        ways = 1
        for _, words, kinds in self.alike:
            left = len(words)
            for taken, number in kinds:
                ways *= math.comb(left, number) * Strata(words[0], taken).count ** number
                left -= number
        return ways

    def every(self) -> Iterator[Units]:
        for chosen in itertools.product(*(_every_choice(words, kinds) for _, words, kinds in self.alike)):
            yield tuple(sorted(itertools.chain(*chosen)))

    def draw(self, rng: np.random.Generator) -> Units:
        units: list[int] = []
        for _, words, kinds in self.alike:
            order = iter(rng.permutation(len(words)).tolist())
            for taken, number in kinds:
                for place in itertools.islice(order, number):
                    units += Strata(words[place], taken).draw(rng)
        return tuple(sorted(units))
