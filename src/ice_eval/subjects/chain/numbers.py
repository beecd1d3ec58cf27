"""Numbers as answers: whole, decimal, fractions, mixed, scientific, in digits or words, with or without units."""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import regex

from ice_eval.subjects.chain.answers import LINKS, AnswerKind, AnswerReading, FinalAnswer, Unreadable
from ice_eval.subjects.chain.steps import last_marked, sentences

# Numbers: what they look like once `_plain` has made their signs, digits and groups alike.

_SPELLED = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion"
)
_WORDS = dict(zip(_SPELLED.split(), (*range(20), *range(20, 101, 10), 10**3, 10**6, 10**9), strict=True))
_WORD = "|".join(sorted(_WORDS, key=len, reverse=True))
_UNREAD = (  # parts and multiples, and the number words of other languages: amounts, but none that is read
    rf"(?:{_WORD}|an?)[ -](?:half|third|quarter|fourth|fifth|sixth|seventh|eighth|ninth|tenth)s?|half|halves|thirds"
    r"|quarters|twice|double|triple|dozens?|several|none|nobody|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|zwölf|zwanzig|deux"
    r"|trois|quatre|cinq|sept|huit|neuf|dix|onze|douze|vingt|dos|tres|cuatro|cinco|siete|ocho|nueve|diez|doce|veinte"
)
_POWERS = {3: "thousand tausend k 千", 4: "万 萬", 5: "lakh", 6: "million millionen millones m", 7: "crore", 8: "亿 億"}
_POWERS |= {9: "billion milliard milliarden b bn", 12: "trillion"}
_SCALES = {word: 10**power for power, words in _POWERS.items() for word in words.split()}
_PLAIN = r"(?:\d{1,3}(?:,\d{3}){1,99}(?![\d,])|\d{1,2}(?:,\d{2}){1,9},\d{3}(?![\d,])|\d+)(?:\.\d+)?|\.\d+"
_NUMBER = regex.compile(
    r"(?P<odd>\d+(?::\d+)+|\d+(?:\.\d+){2,}|\d+/\d+/\d+|\d{4}-\d\d?-\d\d?|\d+\ue003\d+"  # times, versions, dates
    r"|\d+,\d\d?(?![\d,])|\d+,\d{4,}"  # 3,5
    r"|(?<![\\\w])(?!(?:USD?|EUR|GBP|INR|CHF|CAD|AUD|Rs|RM)\d)\p{Latin}[\p{Latin}_]*-?\d\w*)"  # H2O, COVID-19
    r"|(?P<sign>[−±]\s?)?(?P<money>[$€£¥₹]\s?)?(?P<sign2>(?<=[$€£¥₹])−)?"
    r"(?:(?P<whole>\d+)(?:\s+(?=\d+\s?/\s?\d)|\s*(?=\\frac)))?"
    rf"(?:\\frac\{{(?P<top>−?(?:{_PLAIN}))\}}\{{(?P<bottom>{_PLAIN})\}}|\\frac(?P<top1>\d)(?P<bottom1>\d)"
    rf"|(?P<top2>\d+)\s?/\s?(?P<bottom2>\d+)(?![\d/]|\.\d)"
    rf"|(?P<plain>{_PLAIN})(?:(?:\s*(?:[×x*·]|\\times)\s*10\s*\^\s*\{{?|e)(?P<power>[-−+]?\d+)\}}?)?)(?!\d)"
    r"(?:\s*(?P<big>(?:thousand|tausend|lakh|million|crore|milliard|billion|trillion)(?=s?\b)|millionen\b|millones\b"
    r"|milliarden\b|[万萬亿億]|千(?![克米瓦卡]))|(?P<short>k|m|bn?)\b(?![/^²]))?"
    r"(?P<percent>\s*(?:%|(?:percent|per cent|prozent|pour cent|por ciento)\b))?"
    rf"|(?P<sign3>[−±])?(?<![\p{{Latin}}\d-])(?:(?P<dozen>a dozen)|(?P<unread>{_UNREAD})"
    rf"|(?!(?<!\A\W{{0,5}})one\b(?![\s-](?:hundred|thousand|million)))"  # `one` alone is mostly a pronoun
    rf"(?P<words>(?:a (?=hundred|thousand|million))?(?:{_WORD})(?:(?:[\s-]|\sand\s)(?:{_WORD}))*+))(?!-?\p{{Latin}})"
    r"|(?<!第)(?P<cjk>(?!一(?![十百千万萬亿億])|千[克米瓦卡])[零〇一二两兩三四五六七八九十百千万萬亿億]+)",
    regex.IGNORECASE,
)

# What stands around a number, and says whether it is the answer.

_EQUATION = regex.compile(r"(?P<unknown>\w?)\s*(?:=|≈|\\approx)")
_AND_ALSO = regex.compile(rf"(?:[,;]|{LINKS})\s*\p{{L}}\s*=")
_RESULT = regex.compile(r"(?:=|≈|\\approx|\bequals)\s*[*_\\(\[{]*\s*\Z")
_FACTOR = regex.compile(r"\s*(?:[*×÷/^+−-]\s*[$€£]?[\d(\\]|\\(?:times|div|sqrt)\b)|\([−\d\\-]|[A-KN-Zxyz](?!\w)")
_UNKNOWN = regex.compile(r"\s*=\s*\p{L}(?=\W*(?:[.,;]|\Z|\n))")
_SO = regex.compile(r"\W*(?:so|thus|therefore|hence|in total|altogether|in conclusion|finally)\b", regex.IGNORECASE)
_TOTAL = regex.compile(r"\btotal of\s*[*_]*\Z", regex.IGNORECASE)
_IS = regex.compile(
    r"(?:\b(?:is|are|was|were|be|equals|makes|ist|est|es|beträgt|ergibt)|[是为は])"
    r"(?:\s+(?:about|approximately|only|exactly|now|then|thus|therefore))?[\s:*_(\[{\\$]*\Z",
    regex.IGNORECASE,
)
_LEAD = (
    r"\W*(?i:(?:(?:about|approximately|approx|roughly|around|exactly|only|just|nearly|almost|equal to|at least|thus"
    r"|then|that|it is|it's|there are|is|are|the|an?|total|of|number|loss|profit|usd?|eur|gbp|inr|rm)\b\W*)*)"
)
"""Text between a marker and the number that it marks."""
_REASON = regex.compile(
    rf"(?:\d\W*?[\s,;(]+|\A{_LEAD}\d[\d.,]*+[^=\d]{{0,60}}?[,;(]\s*)(?P<why>(?:because|since|as|which|where|given|from)\b)"
)
_BESIDE = r"(?:in|per|for|from|with|by|at|on|after|within|over|during|when|if)"
_VERB = regex.compile(r"\b(?:has|have|had|is|are|was|were|will|would|gets?|makes?|costs?|needs?|earns?|pays?)\b")
_RESTATED = regex.compile(r"\s*\p{L}+, or (?:about )?[$€£]?")
_CONVERSIONS = frozenset({10, 100, 1000, 12, 16, 24, 60, 3600, 7})
_OPERATOR = r"(?:plus|minus|times|divided by|multiplied by|choose|mal|fois)"
_EXPRESSION_BEFORE = regex.compile(
    rf"(?:\b\p{{L}}\(|\\sqrt\s*\{{?|√|\^\s*\{{?|[\d)}}\]%°]\s*[-*×÷+/]\s*[$€£]?|\b{_OPERATOR}\s+)\Z", regex.IGNORECASE
)
_EXPRESSION_AFTER = regex.compile(
    r"\s*(?:[\^_]\{?\w|[*×÷/+-]\s*[$€£]?[\d(\\]|\\(?:times|div|pi|sqrt)\b|[xyznπ√](?!\p{L}))|\("
    rf"|\s*(?:\p{{L}}\s*[-+*×÷]\s*\d|{_OPERATOR}\s+[\w$])|!(?=\s*\S)|(?<=(?<![\d.])1?\d)!|\p{{Latin}}+\d"
    r"|(?![mghsl])\p{Latin}(?!\p{L})|\s*(?:factorial|squared|cubed|pi)\b|\s*[多余几]|[+/]\W*\Z"
    r"|\D{0,20}\bbelow (?:zero|0)\b",
    regex.IGNORECASE,
)
_WORKED = regex.compile(r"\s*(?:[+*×÷/]|\^\{?)\s*")
_FUNCTION = regex.compile(
    r"\\(?:frac|sqrt|pi|log|ln|sin|cos|tan|binom|sum|prod|int|infty|in)\b|[√π∞]|\b(?:log|ln|sqrt)\("
)
_BOUND = regex.compile(
    r"(?:(?<![-=]|<[\w/]{1,9})[<>≤≥≠]=?|\\(?:[lgn]eq?)|\b(?:more|less|fewer|greater) than)\s*[$€£]?\Z"
)
_DENIAL = regex.compile(r"(?:\bnot|n't|n’t|\bnever|\brather than|\binstead of)\s+\Z", regex.IGNORECASE)
_BOLD = regex.compile(r"\*\*(?!\W*(?:step|part|case|day|week|question|problem|option)\b)([^*]+)(?<!:)\*\*(?!:)")

_LONGEST = 200
"""Characters; what is longer is a loop of a model, not a number."""
_GREATEST_POWER = 400
"""Largest power of ten; beyond, a fraction would take all memory and mean nothing."""
_FLOAT_PLACES = 10
"""Decimals are compared to this many places: what stands behind is the noise of floating-point arithmetic."""


class _NumberMatch(NamedTuple):
    """A number in a text: its value in canonical form, or None where it is none that we can read."""

    value: str | None
    text: str
    start: int
    end: int
    money: bool
    in_words: bool


@dataclass(frozen=True)
class NumberAnswer(AnswerKind):
    """A number; units and currency signs are read over.

    Two numbers are the same if their fractions are equal, or if one is a decimal with two places or more (and two
    significant digits) and the other rounds to it. So 0.67 is 2/3, but 0.7 is not, and 12.5 is not 12.46. A percentage
    equals both the number before its sign and the fraction that it means, since data sets write either.
    """

    noun = form = "a number"

    def same(self, one: FinalAnswer, other: FinalAnswer) -> bool:
        a, b = _parsed(one.value), _parsed(other.value)
        if a.percent == b.percent:
            return _equal(a, b)
        percentage, number = (a, b) if a.percent else (b, a)
        meant = _Parsed(percentage.value / 100, None if percentage.places is None else percentage.places + 2)
        return _equal(percentage, number) or _equal(meant, number)

    def states(self, step: str, answer: FinalAnswer, *, given: str = "") -> bool:
        """Return whether it is a result, behind a marker, the last number, or in a sentence that concludes.

        A number that the question holds already is stated only as a result, or alone in a sentence that concludes.
        """
        text = _plain(step)
        found = [number for number in _amounts(text) if not number.in_words and number.value is not None]
        same = [number for number in found if self._is(number, answer)]
        if not same:
            return False
        if last_marked(step) is not None or any(_is_result(text, number) for number in same):
            return True
        concludes = _SO.match(step) is not None
        if any(self._is(number, answer) for number in _amounts(_plain(given)) if not number.in_words):
            return concludes and same == found
        return concludes or same[-1] == found[-1]

    def _is(self, number: "_NumberMatch", answer: FinalAnswer) -> bool:
        return number.value is not None and self.same(FinalAnswer(number.value, "last"), answer)

    def read(self, text: str) -> AnswerReading:
        return super().read(_localized(text))

    def _whole(self, text: str) -> str | None:
        text = _plain(text)
        found = list(_amounts(text))
        if len(found) != 1 or isinstance(_checked(text, found[0]), Unreadable):
            return None
        before = text[: found[0].start]
        if found[0].in_words and regex.search(r"\w", before):
            return None
        rest = before + " " + text[found[0].end :]
        # A unit is a word or two: `5 apples`, `USD 12.50`, `3 m/s²`, `x = 5`.
        return found[0].value if len(regex.findall(r"\p{L}+", rest)) <= 3 and "?" not in rest else None

    def _mentions(self, sentence: str) -> bool:
        return bool(next(_amounts(_plain(sentence)), None))

    def _value(self, text: str, *, marked: bool) -> str | Unreadable:
        text = _plain(_main_clause(text) if marked else text)
        found = list(_amounts(text))
        if not found:
            return Unreadable("no number follows the marker")
        if not marked and all(number.in_words for number in found):
            return Unreadable("the last number is a word, and no marker says that it is the answer")
        if _DENIAL.search(_before(text, found[0])):
            return Unreadable("a number is named only to deny it")
        found = _meant(text, [found[0], *(n for n in found[1:] if not _DENIAL.search(_before(text, n)))], marked=marked)
        if len({number.value for number in found}) > 1:
            several = ", ".join(dict.fromkeys(number.text for number in found))
            return Unreadable(f"several numbers and none of them marked: {several}")
        return _checked(text, found[0])


def _is_result(text: str, number: _NumberMatch) -> bool:
    """Return whether a number is what an equation comes to: `x = 3` or `3 = x`, but not `x = 3y` or `x = 3(4) + 1`."""
    if _RESULT.search(text[: number.start]):
        return not _FACTOR.match(text, number.end)
    return _UNKNOWN.match(text, number.end) is not None


def _main_clause(text: str) -> str:
    """Return the first sentence, without reasons that follow its number: `8, since 2 * 4 = 8` -> `8`."""
    first = next(iter(sentences(text)), "")
    number = regex.match(r"[^\w\n]{0,9}\d[\d,.]{0,30}?\.(?=\s+[^\d\s])", first)  # `17. To check: …` is no list
    if number and not regex.search(r"\b2[.)]\s", first):
        return number[0]
    reason = _REASON.search(first)
    return first[: reason.start("why")] if reason else first


def _meant(text: str, found: list[_NumberMatch], *, marked: bool) -> list[_NumberMatch]:
    """Return the numbers that a sentence comes to: one if it is clear which, else all that it might be."""
    equations = list(_EQUATION.finditer(text))
    if equations:
        first, last = equations[0].end(), equations[-1].end()
        unknowns = [match for match in equations if match["unknown"].isalpha()]
        if (marked and len(unknowns) > 1) or _AND_ALSO.search(text, first):  # x = 3 and y = 5
            return [number for number in found if number.start >= first] or found
        results = [number for number in found if number.start >= last and "dozen" not in number.text]
        if results:
            apart = len(results) > 1 and text[results[0].end : results[1].start].isspace()  # = 12 5-dollar bills
            return results[:1] if apart else _first_and_linked(text, results)
    if len({number.value for number in found}) == 1:
        return found
    in_bold = {place for match in _BOLD.finditer(text) for place in range(*match.span())}
    bold = [number for number in found if number.start in in_bold]
    if marked and not bold and _leads(text, found):
        return _first_and_linked(text, found)
    return _favoured(text, found, bold)


def _leads(text: str, found: list[_NumberMatch]) -> bool:
    """Return whether the marker marks the first number, and the next one only describes it: `42 apples in 3 bags`."""
    gap = text[found[0].end : found[1].start]
    alone = regex.fullmatch(rf"\s*{_BESIDE}\s*", gap)  # 1 in 6
    beside = not alone and regex.search(rf"\(|\b(?:{_BESIDE}|obtained|i\.e)\b", gap)
    clear = beside or _WORKED.fullmatch(gap) or _is_restated(gap, *found[:2]) or _listed(text, *found[:2])
    return bool(regex.fullmatch(_LEAD, text[: found[0].start]) and clear and not _VERB.search(gap.partition("(")[0]))


def _favoured(text: str, found: list[_NumberMatch], bold: list[_NumberMatch]) -> list[_NumberMatch]:
    """Return the numbers in bold type, of money, behind "total of", or the last one if it alone follows "is"."""
    equated = [number for number in found if _IS.search(_before(text, number))]
    signs = (
        set(bold),
        {number for number in found if number.money},
        {number for number in found if _TOTAL.search(_before(text, number))},
        set(equated if equated == found[-1:] else ()),
    )
    chosen = found
    for favoured in signs:
        if len({number.value for number in chosen}) > 1:
            chosen = [number for number in chosen if number in favoured] or chosen
    after = [number for number in found if number.start >= chosen[-1].start]
    return chosen if len({number.value for number in chosen}) > 1 else _first_and_linked(text, after)


def _before(text: str, number: _NumberMatch) -> str:
    return text[max(0, number.start - _LONGEST) : number.start]


def _first_and_linked(text: str, found: list[_NumberMatch]) -> list[_NumberMatch]:
    return found[:2] if len(found) > 1 and _listed(text, *found[:2]) else found[:1]


def _listed(text: str, one: _NumberMatch, other: _NumberMatch) -> bool:
    """Return whether two numbers are a list, a range or one amount: `3 and 5`, `3-5`, `3, 5`, `2 hours 30 minutes`."""
    gap = text[one.end : other.start]
    n_words = len(regex.findall(r"\w+", gap))
    if one.value == other.value or n_words > 4:
        return False
    if regex.search(LINKS, gap):
        return not _is_restated(gap, one, other)
    if "(" in gap or _WORKED.fullmatch(gap) or regex.fullmatch(rf"[^\w,;]*{_BESIDE}[^\w,;]*", gap):
        return bool(regex.match(r" (?:if|with|without|when|including)\b", text[other.end :][:20]))  # 9 (10 with tip)
    return n_words <= (2 if regex.search("[,;，；]", gap) else 1)


def _is_restated(gap: str, one: _NumberMatch, other: _NumberMatch) -> bool:
    """Return whether the second number is the first one in another unit: `100 metres, or 0.1 km`."""
    if one.value is None or other.value is None or not _RESTATED.fullmatch(gap):
        return False
    small, large = sorted(abs(_parsed(number.value).value) for number in (one, other) if number.value)
    return small > 0 and large / small in _CONVERSIONS


def _checked(text: str, number: _NumberMatch) -> str | Unreadable:
    """Return the value of a number, unless it is part of something else."""
    before = _before(text, number)
    if number.text.startswith("±"):
        return Unreadable(f"the sign of '{number.text[1:]}' is unclear")
    if number.value is None:
        return Unreadable(f"'{number.text}' is no number: a time, a date, a ratio, an unclear comma or too long")
    around = before.rpartition("=")[2] + text[number.end :].partition("=")[0]
    if _EXPRESSION_BEFORE.search(before) or _EXPRESSION_AFTER.match(text, number.end) or _FUNCTION.search(around):
        return Unreadable(f"'{number.text}' is part of an expression that was not worked out")
    if _BOUND.search(before):
        return Unreadable(f"'{number.text}' is a bound, not a number")
    return number.value


# One form for all that is written alike.

_CHARACTERS = str.maketrans("．％－＋＝／（）：٫٬", ".%-+=/():.,")
_SIGN = regex.compile(
    r"(?P<mark>[-−–—]|(?<![\w-])(?:minus|negative)(?=\s)|[负負]|マイナス)(?P<gap>\s?)"
    rf"(?=(?:[$€£¥₹]\s?)?\.?\d|\\frac|(?:{_WORD})\b)",
    regex.IGNORECASE,
)
_SIGN_FOLLOWS = regex.compile(
    r"(?:[=:(\[{$]|\b(?:is|was|are|were|be|equals|to|at|of|ist|est|es|beträgt|lautet))\Z", regex.IGNORECASE
)
_COMMA_COUNTRIES = regex.compile(
    r"\b(?:antwort|lösung|ergebnis|lautet|beträgt|ist|und|insgesamt|réponse|résultat|est|donc|sont|respuesta|resultado"
    r"|entonces|risposta|risultato|quindi|resposta|portanto|antwoord|ответ)\b|\d\s?€",
    regex.IGNORECASE,
)


def _localized(text: str) -> str:
    """Read `3,5` as a decimal in a text whose language writes it so, and find `1.234` and `1,234` unclear there."""
    text = regex.sub(r"\bRs\.?\s?(?=\d)", "₹", text)
    if not _COMMA_COUNTRIES.search(text):
        return text
    text = regex.sub(r"(?<![\d.,])([1-9]\d{0,2})[.,](\d{3})(?![.,]?\d)", "\\1\ue003\\2", text)
    return regex.sub(r"(?<![\d.,])(\d+),(\d+)(?![.,]?\d)", r"\1.\2", text)


def _plain(text: str) -> str:
    """Remove what LaTeX and typography add to numbers; a minus that is a sign becomes `−`, an unclear one `±`."""
    text = regex.sub(r"(?![0-9])\d", lambda match: str(unicodedata.decimal(match[0])), text.translate(_CHARACTERS))
    for pattern, to in (
        (r"\\[dt]frac", r"\\frac"),
        (r"\\(?:text|mathrm|mathbf|textbf|mbox)\s*\{([^{}]*)\}", r" \1 "),
        (r"(?<=\d)(?:\{,\}|\\,|\\!|\u202f|\u00a0|\u2009)(?=\d{3})", ","),
        (r"\^\s*\{?\s*\\circ\s*\}?", "°"),
        (r"(?<=\p{L}\s*)\^\{?[23]\}?", "²"),
        (r"\\left|\\right|\\displaystyle|\\[!,;: ]", ""),
        (r"\\([%$#&])", r"\1"),
        (r"\\pm|\\mp|∓|\+/-", "±"),
        (r"\\cdot", "×"),
        # 1.234,5; 1.234.567
        (r"(?<![\d.,])(\d{1,3}(?:\.\d{3}){1,9})(?:,(\d+)|(?<=\.\d{3}\.\d{3}))(?![.,]?\d)", _ungrouped),
        (r"(?<![\d.,'’_])([1-9]\d{0,2}([ '’_])\d{3}(?:\2\d{3})*)(?![\d'’_]|\s?/)(?:,(\d\d?)(?!\d))?", _ungrouped),
        (r"(?<=\d)[⁻⁰¹²³⁴-⁹]+", lambda match: "^" + unicodedata.normalize("NFKC", match[0])),
        (r"\s?[¼-¾⅐-⅞]", lambda match: " " + unicodedata.normalize("NFKC", match[0].strip()).replace("⁄", "/")),
    ):
        text = regex.sub(pattern, to, text)
    return _SIGN.sub(_signed, text)


def _ungrouped(match: "regex.Match[str]") -> str:
    decimals = match.groups()[-1]
    return regex.sub(r"\D", "", match[1]) + (f".{decimals}" if decimals else "")


def _signed(match: "regex.Match[str]") -> str:
    """Return what a dash or "minus" before a number is: a sign, an operator, a hyphen, or unclear."""
    mark, gap = match["mark"], match["gap"]
    before = match.string[max(0, match.start() - 20) : match.start()]
    left = before.rstrip()
    if regex.search(r"[\d)}\]%°]\Z", left):
        return match[0] if mark.isalpha() else "-" + gap
    if regex.search(r"\p{Latin}\Z", before):
        return "-" if mark == "-" else "±"
    if mark == "—" and gap:
        return match[0]
    if mark != "—" and (mark.casefold() == "negative" or not gap):
        return "−"
    if _SIGN_FOLLOWS.search(left) or (mark.isalpha() and not left):
        return "−"
    return match[0] if mark.isalpha() else "±"


def _amounts(text: str) -> Iterator[_NumberMatch]:
    """Yield the numbers of a plain text, in digits and in words."""
    for match in _NUMBER.finditer(text):
        shown, in_words = match[0].strip().replace("\ue003", "."), not regex.search(r"\d", match[0])
        money = match["money"] is not None and not text.startswith("$", match.end())  # `$3$` is a formula
        yield _NumberMatch(_canonical(match), shown, match.start(), match.end(), money, in_words)


def _canonical(match: "regex.Match[str]") -> str | None:
    """`1,234.50` -> `1234.50`, `2 1/2` -> `5/2`, `3 million` -> `3000000`; decimals keep their places."""
    if match["odd"] or match["unread"] or len(match[0]) > _LONGEST or "±" in match[0]:
        return None
    in_words = match["words"] or match["cjk"] or match["dozen"]
    value = _spelled(match) if in_words else _fraction(match) if match["plain"] is None else _decimal(match)
    if value is None:
        return None
    sign = "-" if match["sign"] or match["sign2"] or match["sign3"] else ""
    percent = "%" if match["percent"] else ""
    return f"{sign}{value}{percent}".replace("--", "")


def _decimal(match: "regex.Match[str]") -> str | Fraction | None:
    """Return a decimal as it was written, but for commas and leading zeros, or its value where something scales it."""
    digits, scale = match["plain"].replace(",", ""), _scale(match)
    power = int((match["power"] or "0").replace("−", "-"))
    if power == 0 and scale == 1:
        whole, point, places = digits.partition(".")
        return f"{int(whole or 0)}{point}{places}"
    return None if scale is None or abs(power) > _GREATEST_POWER else Fraction(digits) * scale * Fraction(10) ** power


def _fraction(match: "regex.Match[str]") -> Fraction | None:
    """Return the value of a fraction, with the whole number before it."""
    names, scale = (("top", "top1", "top2"), ("bottom", "bottom1", "bottom2")), _scale(match)
    written = (next(filter(None, map(match.group, own))) for own in names)
    top, bottom = (Fraction(each.replace(",", "").replace("−", "-")) for each in written)
    return None if bottom == 0 or scale is None else (int(match["whole"] or 0) + top / bottom) * scale


def _scale(match: "regex.Match[str]") -> int | None:
    """Return what a number is multiplied by; None: `12k`, which means thousands only of money."""
    if match["short"] and not match["money"]:
        return 1 if match["short"] == "m" else None
    word = match["big"] or match["short"]
    return _SCALES[word.casefold()] if word else 1


def _spelled(match: "regex.Match[str]") -> str | None:
    """Return the value of number words: each group of digits counts what follows it, `two hundred thousand`."""
    if match["dozen"]:
        return "12"
    words = match["words"] and [_WORDS[word] for word in regex.findall(_WORD, match["words"].casefold())]
    # Python 3.11 knows the value of 兩, but not that of 两.
    values = words or [int(unicodedata.numeric(character)) for character in match["cjk"].replace("两", "兩")]
    small, group = (100, 10**3) if words else (10, 10**4)
    total = part = digit = 0
    for value in values:
        if value >= group:
            total, part, digit = total + (part + digit or 1) * value, 0, 0
        elif value >= small:
            part, digit = part + (digit or 1) * value, 0
        elif digit and not (digit >= 20 and digit % 10 == 0 and value < 10):
            return None  # `three four`
        else:
            digit += value
    return str(total + part + digit)


class _Parsed(NamedTuple):
    value: Fraction
    places: int | None
    """Decimal places that were written; None: a whole number or a fraction, which is exact."""
    percent: bool = False


def _parsed(value: str) -> _Parsed:
    number, decimals = Fraction(value.rstrip("%")), value.rstrip("%").partition(".")[2]
    if decimals:
        return _Parsed(round(number, _FLOAT_PLACES), min(len(decimals), _FLOAT_PLACES), value.endswith("%"))
    return _Parsed(number, None, value.endswith("%"))


def _equal(a: _Parsed, b: _Parsed) -> bool:
    return a.value == b.value or _rounds_to(a, b) or _rounds_to(b, a)


def _rounds_to(exact: _Parsed, rounded: _Parsed) -> bool:
    """Return whether `rounded` is a decimal that stands for `exact`."""
    if rounded.places is None or rounded.places < 2 or (exact.places is not None and exact.places < rounded.places):
        return False
    unit = Fraction(1, 10**rounded.places)
    return abs(rounded.value) >= 10 * unit and abs(exact.value - rounded.value) <= unit / 2
