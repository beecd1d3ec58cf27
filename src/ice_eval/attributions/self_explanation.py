"""Words that the model itself names as decisive, located in the text.

```text
answer   1. "Gorgeous"  2. plot: it drags  3. lovely          text   a gorgeous film , but the plot …
named    Gorgeous, plot                                               2        -      -   1
absent   lovely
```
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import regex

from ice_eval.attributions._base import Attribution, Lens, attribution, check_number
from ice_eval.errors import ConfigError
from ice_eval.models import Generated
from ice_eval.records import Answer, Encoded, PerUnit, Span
from ice_eval.subjects.alignment import Form, normalised, occurrences
from ice_eval.words import word_spans

_WORKED = {"text": "The soup arrived cold, and although the room was pretty, the waiter was rude to all of us."}
_WORKED_LABEL = "negative"
_WORKED_ANSWER = ("cold", "rude", "waiter", "soup", "arrived", "although", "room", "all", "pretty", "us")

_QUOTED = (
    r'"[^"\n]+"|“[^”\n]+”|„[^“”\n]+[“”]|«[^»\n]+»|「[^」\n]+」|『[^』\n]+』|《[^》\n]+》|`[^`\n]+`|\*\*[^*\n]+\*\*'
    r"|(?<!\w)['‘][^'‘’\n]+['’](?!\w)"  # an apostrophe is no quotation mark
)
_IN_QUOTES = regex.compile(_QUOTED)
_SEPARATOR = r"[,，、،;；؛\n\r\t|]+|\s+(?=\(?\d{1,2}[.)]\s)"
_PIECE = regex.compile(rf"(?P<quoted>{_QUOTED})|(?P<separator>{_SEPARATOR})|.", regex.DOTALL)
_REMARK = regex.compile(r"[:：(（=→]|\s[-–—]+\s")
"""Separator of a word and a remark on it, or of an introduction and a word."""
_JOINT = regex.compile(rf"{_SEPARATOR}|(?:^|\s)(?:and|or|&)\s|[和与]")
_NUMBER = regex.compile(r"^[\s\-*•·‣▪–—>#]*(?:\(?(?:\d{1,2}|[A-Za-z](?=[.)]\s))[.):、](?!\d))?")
_EDGE = regex.compile(r"^[^\w\p{M}]+|[^\w\p{M}]+$")
_NAMEABLE = regex.compile(r"[\p{L}\p{N}\p{So}!?！？]")
_SAME = str.maketrans("’‘‛ʼ`´“”„‐‑–—", "''''''\"\"\"----")

Places = tuple[int, ...]
"""Units of a name in the text; empty where it does not occur."""


@attribution("self-explanation", needs={"generate"})
@dataclass(frozen=True, kw_only=True)
class SelfExplanation(Attribution):
    """Words that a language model lists when asked what mattered for its label, the first mentioned the highest.

    Units that it does not name get 0. An answer without any word of the text gives no numbers: the example is skipped,
    and the answer is kept with the reason.
    """

    units = ("token", "word")
    words: int = 5
    """Number of words requested."""
    max_tokens: int = 48

    def __post_init__(self) -> None:
        for name in ("words", "max_tokens"):
            check_number(f"self-explanation: {name}", getattr(self, name))

    def check(self, lens: Lens, item: Encoded) -> None:
        if item.whole:
            raise ConfigError(
                f"the attribution '{lens.name}' asks for words of the text, and with scope 'prompt' the template is "
                "explained too; use scope 'content'."
            )

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        shown = [_shown(item.fields, lens.label(item).name) for item in batch]
        worked, answer = _shown(_WORKED, _WORKED_LABEL), ", ".join(_WORKED_ANSWER[: self.words])
        if lens.chat:  # the model follows instructions
            ask = (
                f"\nList the {self.words} words of the text that matter most for this label, the most important first."
            )
            turns = [("user", worked + ask), ("assistant", answer)]
            answers = lens.generate([each + ask for each in shown], turns=turns, max_tokens=self.max_tokens)
        else:  # it continues a text
            ask = f"\nThe {self.words} most important words for this label:"
            prompts = [f"{worked}{ask} {answer}\n\n{each}{ask}" for each in shown]
            answers = lens.generate(prompts, max_tokens=self.max_tokens, stop="\n")
        return [self._read(lens, item, each) for item, each in zip(batch, answers, strict=True)]

    def _read(self, lens: Lens, item: Encoded, answer: Generated) -> PerUnit:
        if answer.text is None:
            lens.note(item, Answer(None, 0, problem="the question is longer than what the model takes"))
            return np.full(item.n_units, np.nan)
        found = named_units(answer.text, item)
        lens.note(item, Answer(answer.text, answer.tokens, found.n_named, found.n_absent, found.problem))
        return np.full(item.n_units, np.nan) if found.values is None else found.values


def _shown(fields: Mapping[str, str], label: str) -> str:
    names = {name: name.capitalize() for name in fields} if len(fields) > 1 else dict.fromkeys(fields, "Text")
    lines = [f"{names[name]}: {' '.join(text.split())}" for name, text in fields.items()]
    return "\n".join([*lines, f"Label: {label}"])


class NamedUnits(NamedTuple):
    """The units of a text that an answer names."""

    values: PerUnit | None
    """By order of mention, the first the largest, 0 if not named; None where no word is found."""
    n_named: int
    n_absent: int
    """Number of distinct names that are not in the text."""
    problem: str | None


def named_units(answer: str, item: Encoded) -> NamedUnits:
    """Parse a list of words in any common format, and locate them in the text; all occurrences share the number."""
    text = _Searchable(item)
    mentions = [mention for piece in _pieces(answer) for mention in _mentions(piece, text)]
    n_absent = len({name.casefold() for name, places in mentions if not places})
    found = dict.fromkeys(places for _, places in mentions if places)
    named = [places for places in found if not text.is_all(places)]
    if text.is_all(text.units_of(_bare(answer))) or (found and not named):
        return NamedUnits(None, 0, n_absent, "the model's answer repeats the whole text")
    if not named:
        problem = f"no word that the model's answer names is in the text ({n_absent} named)"
        return NamedUnits(None, 0, n_absent, problem if n_absent else "the model's answer names no word")
    values = np.zeros(item.n_units)
    for rank, places in enumerate(reversed(named), start=1):
        values[list(places)] = rank
    return NamedUnits(values, len(named), n_absent, None)


def _pieces(answer: str) -> Iterator[str]:
    """Split an answer at separators; those inside quotation marks separate nothing."""
    piece = ""
    for match in _PIECE.finditer(answer):
        if match["separator"]:
            yield piece
            piece = ""
        else:
            piece += match.group()
    yield piece


def _mentions(piece: str, text: "_Searchable") -> list[tuple[str, Places]]:
    """Return the words that a piece of an answer names: as a whole, in quotes, beside a remark, or joined by "and"."""
    name = _bare(piece)
    if not name:
        return []
    whole = (name, text.units_of(name))
    if whole[1]:
        return [whole]
    quoted = [_bare(match.group()) for match in _IN_QUOTES.finditer(piece)]
    if quoted and quoted != [name]:
        return [mention for each in quoted for mention in _mentions(each, text)]
    beside = [each for each in _REMARK.split(name) if each.strip()]
    if len(beside) > 1:
        # The word is on either side, and the remark may hold words of the text too.
        sides = (_mentions(each, text) for each in beside)
        return next((side for side in sides if any(places for _, places in side)), [whole])
    joined = [each for each in _JOINT.split(name) if each.strip()]
    if joined != [name]:
        return [mention for each in joined for mention in _mentions(each, text)]
    return [whole]


def _bare(piece: str) -> str:
    """Return a name without list number, quotes and surrounding marks, unless it is a mark itself."""
    name = _NUMBER.sub("", piece).strip()
    name = _EDGE.sub("", name) or name
    return name if _NAMEABLE.search(name) else ""


class _Searchable:
    """The explained fields of an example without spaces, in one case and Unicode form, for searching names."""

    def __init__(self, item: Encoded) -> None:
        self._spans = item.spans
        self._nameable = {unit for unit, own in enumerate(item.texts) if _NAMEABLE.search(own.rstrip("!?！？"))}
        texts = {span.field: item.fields[span.field] for span in item.spans}
        self._forms = {field: normalised(text, _folded) for field, text in texts.items()}
        self._words = {field: word_spans(text) for field, text in texts.items()}

    def is_all(self, places: Places) -> bool:
        """Return True if these are all units but marks: an answer that repeats a text names no word of it."""
        return bool(places) and self._nameable <= set(places)

    def units_of(self, name: str) -> Places:
        """Return the units of every occurrence, of whole words if there is one, else of parts between marks."""
        wanted = normalised(name, _folded).data
        for whole in (True, False):
            found = [span for field in self._forms for span in self._find(wanted, field, whole=whole)]
            if found:
                return tuple(unit for unit, own in enumerate(self._spans) if any(_overlap(own, span) for span in found))
        return ()

    def _find(self, wanted: bytes, field: str, *, whole: bool) -> Iterator[Span]:
        form = self._forms[field]
        starts, ends = {start for start, _ in self._words[field]}, {end for _, end in self._words[field]}
        for first in occurrences(wanted, form.data):
            stop = first + len(wanted)
            span = Span(field, int(form.start[first]), int(form.end[stop - 1]))
            is_word = span.start in starts and span.end in ends
            if is_word if whole else _is_apart(form, first) and _is_apart(form, stop):
                yield span


def _is_apart(form: Form, place: int) -> bool:
    """Return True if no word continues here; the halves of a hyphenated one count as words."""
    if place in (0, len(form.data)) or form.end[place - 1] < form.start[place]:
        return True
    before, after = (part.decode("utf-8", "surrogatepass") for part in (form.data[:place], form.data[place:]))
    return not (before[-1].isalnum() and after[0].isalnum())


def _folded(character: str) -> str:
    """Return a character in one case and Unicode form; empty for a space."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", character).casefold())
    return "".join(folded.translate(_SAME).split())


def _overlap(one: Span, other: Span) -> bool:
    return one.field == other.field and one.start < other.end and other.start < one.end
