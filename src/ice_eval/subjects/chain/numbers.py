"""Numbers as answers: whole, decimal, fractions, mixed, scientific, in LaTeX or plain, with or without units."""

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import regex

from ice_eval.subjects.chain.answers import AnswerKind, FinalAnswer, Unreadable
from ice_eval.subjects.chain.steps import last_marked, sentences

_PLAIN = r"(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+)(?:\.\d+)?|\.\d+"
_NUMBER = regex.compile(
    r"(?P<odd>\d+(?::\d+)+|\d+(?:\.\d+){2,}|\d+/\d+/\d+|\d+,\d{1,2}(?![\d,])|\d+,\d{4,})"  # times, versions, dates, 3,5
    r"|(?P<sign>(?<![\w)\]}%.\ue000]\s?)-\s?)?(?P<money>[$€£¥₹]\s?)?(?P<sign2>(?<=[$€£¥₹])-)?"
    r"(?:(?P<whole>\d+)(?:\s+(?=\d+\s?/\s?\d)|\s*(?=\\frac)))?"
    rf"(?:\\frac\{{(?P<top>-?{_PLAIN})\}}\{{(?P<bottom>{_PLAIN})\}}|\\frac(?P<top1>\d)(?P<bottom1>\d)"
    rf"|(?P<top2>\d+)\s?/\s?(?P<bottom2>\d+)(?![\d/]|\.\d)"
    rf"|(?P<plain>{_PLAIN})(?:(?:\s*(?:×|x|\*|\\times)\s*10\s*\^\s*\{{?|[eE])(?P<power>[-+]?\d+)\}}?)?)"
    r"(?![\d])(?P<big>\s*(?:thousand|million|billion|trillion)\b)?(?P<percent>\s*(?:%|percent\b|per cent\b))?",
    regex.IGNORECASE,
)
_BIG = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_VALUE = regex.compile(r"(-?\d+(?:/\d+)?)(?:\.(\d+))?(%?)")
_EQUATION = regex.compile(r"(?P<unknown>\w?)\s*(?:=|≈|\\approx)")
_RESULT = regex.compile(r"(?:=|≈|\\approx|\bequals)\s*[*_\\(\[{]*\s*\Z")
_FACTOR = regex.compile(r"\s*(?:[*×÷/^+-]\s*[$€£]?[\d(\\]|\\(?:times|div|sqrt)\b)|\([-\d\\]|[A-KN-Zxyz](?!\w)")
_UNKNOWN = regex.compile(r"\s*=\s*\p{L}(?=\W*(?:[.,;]|\Z|\n))")
_SO = regex.compile(r"\W*(?:so|thus|therefore|hence|in total|altogether|in conclusion|finally)\b", regex.IGNORECASE)
_TOTAL = regex.compile(r"\btotal of\s*[*_]*\Z", regex.IGNORECASE)
_EXPRESSION_BEFORE = regex.compile(r"(?:\\sqrt\s*\{?|√|\^\s*\{?|[\d)}]\s*[*×÷+/]\s*[$€£]?)\Z")
_EXPRESSION_AFTER = regex.compile(
    r"\s*(?:\^|[*×÷/+-]\s*[$€£]?[\d(\\]|\\(?:times|div|pi|sqrt)\b|[xyzπ√](?!\w)|\(\d)|!(?=\s*\S)"
)
_BOLD = regex.compile(r"\*\*([^*]+)\*\*")

_LONGEST = 200
"""Characters; what is longer is a loop of a model, not a number."""
_GREATEST_POWER = 400
"""Largest power of ten; beyond, a fraction would take all memory and mean nothing."""
_FLOAT_PLACES = 10
"""Decimals are compared to this many places: what stands behind is the noise of floating-point arithmetic."""


class _Found(NamedTuple):
    """A number in a text: its value in canonical form, or None where it is none that we can read."""

    value: str | None
    text: str
    start: int
    end: int
    money: bool


@dataclass(frozen=True)
class NumberAnswer(AnswerKind):
    """A number; units and currency signs are read over.

    Two numbers are the same if their fractions are equal, or if one is a decimal with two places or more (and two
    significant digits) and the other rounds to it: 0.67 is 2/3, but 0.7 is not, and 12.5 is not 12.46. A percentage
    equals both the number before its sign and the fraction that it means, since data sets write either.
    """

    noun = form = "a number"

    def same(self, one: FinalAnswer, other: FinalAnswer) -> bool:
        (a, a_percent), (b, b_percent) = _parsed(one.value), _parsed(other.value)
        if a_percent == b_percent:
            return _equal(a, b)
        percentage, number = (a, b) if a_percent else (b, a)
        meant = _Parsed(percentage.value / 100, None if percentage.places is None else percentage.places + 2)
        return _equal(percentage, number) or _equal(meant, number)

    def states(self, step: str, answer: FinalAnswer, *, given: str = "") -> bool:
        """Return whether it is a result, behind a marker, the last number, or in a sentence that concludes.

        A number that the question holds already is stated only as a result, or alone in a sentence that concludes.
        """
        text = _plain(step)
        found = [number for number in _numbers(text) if number.value is not None]
        same = [number for number in found if self._is(number, answer)]
        if not same:
            return False
        if last_marked(step) is not None or any(_is_result(text, number) for number in same):
            return True
        concludes = _SO.match(step) is not None
        if any(self._is(number, answer) for number in _numbers(_plain(given))):
            return concludes and same == found
        return concludes or same[-1] == found[-1]

    def _is(self, number: "_Found", answer: FinalAnswer) -> bool:
        return number.value is not None and self.same(FinalAnswer(number.value, "last"), answer)

    def _whole(self, text: str) -> str | None:
        text = _plain(text)
        found = list(_numbers(text))
        if len(found) != 1 or isinstance(_checked(text, found[0]), Unreadable):
            return None
        rest = text[: found[0].start] + " " + text[found[0].end :]
        # A unit is a word or two: `5 apples`, `USD 12.50`, `3 m/s²`, `x = 5`.
        return found[0].value if len(regex.findall(r"\p{L}+", rest)) <= 3 and "?" not in rest else None

    def _mentions(self, sentence: str) -> bool:
        return bool(next(_numbers(_plain(sentence)), None))

    def _value(self, text: str, *, marked: bool) -> str | Unreadable:
        text = _plain(_main_clause(text) if marked else text)
        found = _said(text, marked=marked)
        if not found:
            return Unreadable("no number follows the marker")
        if len({number.value for number in found}) > 1:
            several = ", ".join(dict.fromkeys(number.text for number in found))
            return Unreadable(f"several numbers and none of them marked: {several}")
        return _checked(text, found[0])


def _is_result(text: str, number: _Found) -> bool:
    """Return whether a number is what an equation comes to: `x = 3` or `3 = x`, but not `x = 3y` or `x = 3(4) + 1`."""
    if _RESULT.search(text[: number.start]):
        return not _FACTOR.match(text, number.end)
    return _UNKNOWN.match(text, number.end) is not None


def _main_clause(text: str) -> str:
    """Return the first sentence, without reasons that follow its number: `8, since 2 * 4 = 8` -> `8`."""
    first = next(iter(sentences(text)), "")
    reason = regex.search(r"\d\W*?[\s,;(]+(?:because|since|as|which|where|given|from)\b", first)
    return first[: reason.start() + 1] if reason else first


def _said(text: str, *, marked: bool) -> list[_Found]:
    """Return the numbers that a sentence comes to: one if it is clear which, else all that it might be."""
    equations = list(_EQUATION.finditer(text))
    if marked and len({match["unknown"] for match in equations if match["unknown"].isalpha()}) > 1:
        return list(_numbers(text))  # x = 3 and y = 5
    found = list(_numbers(text, equations[-1].end() if equations else 0)) or list(_numbers(text))
    if marked or equations:
        return found[:2] if len(found) > 1 and _listed(text, found[0], found[1]) else found[:1]
    return _favoured(text, found)


def _favoured(text: str, found: list[_Found]) -> list[_Found]:
    """Return of several numbers those in bold type, then those of money, then what follows "total of"."""
    bold = [number for match in _BOLD.finditer(text) for number in _numbers(text, *match.span())]
    signs: tuple[Callable[[_Found], bool], ...] = (
        lambda number: number in bold,
        lambda number: number.money,
        lambda number: _TOTAL.search(text[: number.start]) is not None,
    )
    for is_favoured in signs:
        if len({number.value for number in found}) > 1:
            found = [number for number in found if is_favoured(number)] or found
    return found


def _checked(text: str, number: _Found) -> str | Unreadable:
    """Return the value of a number, unless it is part of something else."""
    if number.value is None:
        return Unreadable(f"'{number.text}' is no number: a time, a date, a ratio, an unclear comma or too long")
    if _EXPRESSION_BEFORE.search(text[: number.start]) or _EXPRESSION_AFTER.match(text, number.end):
        return Unreadable(f"'{number.text}' is part of an expression that was not worked out")
    if regex.search(r"(?:\bnot|n't|n’t|\bnever)\s+\Z", text[: number.start]):
        return Unreadable("a number is named only to deny it")
    return number.value


def _listed(text: str, one: _Found, other: _Found) -> bool:
    """Return whether two numbers are a list or a range: `3 and 5`, `3 or 5`, `3 to 5`, `3-5`, `3, 5`."""
    return bool(regex.fullmatch(r"\s*(?:,|and|or|to|-|–|&|,\s*and)\s*[$€£]?", text[one.end : other.start]))


def _plain(text: str) -> str:
    """Remove what LaTeX and typography add to numbers."""
    for pattern, to in (
        (r"\\[dt]frac", r"\\frac"),
        (r"\\(?:text|mathrm|mathbf|textbf|mbox)\s*\{([^{}]*)\}", r" \1 "),
        (r"(?<=\d)(?:\{,\}|\\,|\\!|\u202f|\u00a0|\u2009)(?=\d{3})", ","),
        (r"\\left|\\right|\\displaystyle|\\[!,;: ]", ""),
        (r"\\([%$#&])", r"\1"),
        (r"[−–—](?=\s?[$€£]?\d)", "-"),
        (r"\\cdot", "×"),
    ):
        text = regex.sub(pattern, to, text)
    return regex.sub(r"(\d?)\s?([¼-¾⅐-⅞])", lambda match: _vulgar(match[1], match[2]), text)


def _vulgar(before: str, sign: str) -> str:
    value = Fraction(unicodedata.numeric(sign)).limit_denominator(10)
    return f"{before} {value.numerator}/{value.denominator}"


def _numbers(text: str, start: int = 0, end: int | None = None) -> Iterator[_Found]:
    for match in _NUMBER.finditer(text, start, len(text) if end is None else end):
        yield _Found(_canonical(match), match[0].strip(), match.start(), match.end(), match["money"] is not None)


def _canonical(match: "regex.Match[str]") -> str | None:
    """`1,234.50` -> `1234.50`, `2 1/2` -> `5/2`, `3 million` -> `3000000`; decimals keep their places."""
    if match["odd"] or len(match[0]) > _LONGEST:
        return None
    value = _fraction(match) if match["plain"] is None else _decimal(match)
    if value is None:
        return None
    sign = "-" if match["sign"] or match["sign2"] else ""
    percent = "%" if match["percent"] else ""
    return f"{sign}{value}{percent}".replace("--", "")


def _decimal(match: "regex.Match[str]") -> str | Fraction | None:
    """Return a decimal as it was written, but for commas and leading zeros, or its value where something scales it."""
    digits, power, scale = match["plain"].replace(",", ""), match["power"], _scale(match)
    if power is None and scale == 1:
        whole, point, places = digits.partition(".")
        return f"{int(whole or 0)}{point}{places}"
    if abs(int(power or 0)) > _GREATEST_POWER:
        return None
    return Fraction(digits) * scale * Fraction(10) ** int(power or 0)


def _fraction(match: "regex.Match[str]") -> Fraction | None:
    """Return the value of a fraction, with the whole number before it."""
    top, bottom = (
        Fraction((match[name] or match[f"{name}1"] or match[f"{name}2"]).replace(",", "")) for name in ("top", "bottom")
    )
    return None if bottom == 0 else (int(match["whole"] or 0) + top / bottom) * _scale(match)


def _scale(match: "regex.Match[str]") -> int:
    return _BIG[match["big"].strip().casefold()] if match["big"] else 1


class _Parsed(NamedTuple):
    value: Fraction
    places: int | None
    """Decimal places that were written; None: a whole number or a fraction, which is exact."""


def _parsed(value: str) -> tuple[_Parsed, bool]:
    match = _VALUE.fullmatch(value)
    assert match is not None, value
    number = Fraction(value.rstrip("%"))
    number = round(number, _FLOAT_PLACES) if match[2] else number
    return _Parsed(number, min(len(match[2]), _FLOAT_PLACES) if match[2] else None), bool(match[3])


def _equal(a: _Parsed, b: _Parsed) -> bool:
    return a.value == b.value or _rounds_to(a, b) or _rounds_to(b, a)


def _rounds_to(exact: _Parsed, rounded: _Parsed) -> bool:
    """Return whether `rounded` is a decimal that stands for `exact`."""
    if rounded.places is None or rounded.places < 2 or (exact.places is not None and exact.places < rounded.places):
        return False
    unit = Fraction(1, 10**rounded.places)
    return abs(rounded.value) >= 10 * unit and abs(exact.value - rounded.value) <= unit / 2
