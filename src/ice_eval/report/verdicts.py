"""What the numbers say, and what they do not, in sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ice_eval.nulls import SIZE
from ice_eval.protocols import PROTOCOLS
from ice_eval.rationales import DYNAMIC
from ice_eval.report.tables import percent, word_of_verdict
from ice_eval.results.outcomes import ALL
from ice_eval.stats.verdict import NOT_DISTINGUISHABLE

Line = Mapping[str, Any]


@dataclass(frozen=True)
class Sentence:
    """The verdict on one attribution under one operator."""

    operator: str
    verdict: str
    word: str | None
    """The word that the colour stands for, of a range the lower one; None where the verdict is no such word."""
    text: str


@dataclass(frozen=True)
class Statement:
    """What a run says of one attribution."""

    attribution: str
    setting: str
    """The direction and the size, and the null where sets are matched by more than their size."""
    sentences: tuple[Sentence, ...]
    over_all: str
    """Whether the operators allow one conclusion; empty with a single operator."""
    silence: str
    """What it does not say."""


@dataclass(frozen=True)
class Verdicts:
    """The statements of a run: on each attribution in its first setting, and in the others."""

    first: tuple[Statement, ...]
    others: tuple[Statement, ...]


def verdicts(summary: Mapping[str, Any]) -> Verdicts:
    """A statement for every attribution and setting, the settings in the order of the run."""
    units = _units([summary])
    lines = [line for line in summary["configurations"] if line["operator"] != ALL]
    words = {place_of(line): _over_all(line, units) for line in summary.get("robustness", ())}
    leading = set(in_first_setting(lines))
    groups: dict[tuple[Any, ...], list[Line]] = {}
    for line in lines:
        groups.setdefault(place_of(line), []).append(line)
    found = {place: _statement(group, words.get(place, ""), units) for place, group in groups.items()}
    return Verdicts(
        tuple(found[place] for place in found if place in leading),
        tuple(found[place] for place in found if place not in leading),
    )


def lead(summaries: Sequence[Mapping[str, Any]]) -> str:
    """What the verdicts of some runs rest on, as far as it is the same in all of their configurations."""
    lines = [line for summary in summaries for line in summary["configurations"]]
    act = " or ".join(dict.fromkeys(_ACTS[line["direction"]] for line in lines))
    ranked = " or ".join(dict.fromkeys("marked" if line["k"] is None else "top-ranked" for line in lines))
    return (
        f"Each explanation's {ranked} {_units(summaries)} are {act}, and random sets of the same size{_matched(lines)} "
        f"are {act} in the same way. The win rate is the share of random sets that the explanation "
        f"beats{_chance(lines)}. "
        "A word other than “not distinguishable from random” is given only where the whole 95 % interval allows it and "
        "the test agrees (p ≤ 0.05). The words are anti-faithful below 50 %, near-random up to 55 %, weakly faithful "
        "up to 60 % and faithful above, or the range that the interval reaches over. Each verdict is about one "
        "configuration and is not adjusted for how many there are; “p adj.” in the table is."
    )


def _units(summaries: Sequence[Mapping[str, Any]]) -> str:
    """What explanations choose from: the steps of chains, or whatever units texts were cut into."""
    return "steps" if all("cot" in summary for summary in summaries) else "units"


def _matched(lines: Sequence[Line]) -> str:
    """What random sets have in common with the explanation beside their size."""
    nulls = list(dict.fromkeys(_null(line) for line in lines))
    matched = ", ".join(null for null in nulls if null != SIZE)
    if not matched:
        return ""
    return f" (some also matched by {matched})" if SIZE in nulls else f" and matched by {matched}"


def _chance(lines: Sequence[Line]) -> str:
    """How ties count, and where chance lies then."""
    strict = {_is_strict(line) for line in lines if _ties(line)}
    if strict == {True, False}:
        return ". Ties count half, and 50 % is chance, or they are lost, and chance is below; each sentence says which"
    if strict == {True}:
        return ". Ties are lost, as in the protocol of the run: chance is below 50 % by half of the share that ties"
    return ", ties counted half: 50 % is chance" if strict else ": 50 % is chance"


def _is_strict(line: Line) -> bool:
    """Whether a tie was lost, by the protocol that the flags name."""
    return any(protocol.strict and f"protocol_{name}" in line["flags"] for name, protocol in PROTOCOLS.items())


def _ties(line: Line) -> bool:
    """Whether the share of sets that tie is more than 0.0 % when it is printed."""
    return line["tie_rate"] is not None and round(line["tie_rate"], 3) > 0


_ACTS = {"sufficiency": "kept", "necessity": "removed"}


def _null(line: Line) -> str:
    return str(line.get("null", SIZE))  # earlier runs do not name it


def in_first_setting(lines: Sequence[Line]) -> list[tuple[Any, ...]]:
    """Attribution, direction, size and null of the first line of each attribution."""
    found: dict[str, tuple[Any, ...]] = {}
    for line in lines:
        found.setdefault(line["attribution"], place_of(line))
    return list(found.values())


def setting(line: Line) -> tuple[Any, ...]:
    """The direction, the size and the null of a configuration."""
    return line["direction"], line["k"], _null(line)


def place_of(line: Line) -> tuple[Any, ...]:
    """What a configuration is about, whatever its operator."""
    return line["attribution"], *setting(line)


def _over_all(line: Line, units: str) -> str:
    """One sentence on all operators; it rests on other bounds than the intervals beside it, so it says which."""
    if line["word"] == "robust":
        return f"All operators put it {line['sides'][0]} 55 % (one-sided 95 % bounds)."
    if line["word"] == "operator-dependent":
        return (
            "The operators contradict each other (one-sided 95 % bounds): the answer depends on how "
            f"{units} are removed."
        )
    return "Whether the operators agree is not certain." if line["word"] else ""


def _statement(lines: Sequence[Line], over_all: str, units: str) -> Statement:
    return Statement(
        attribution=str(lines[0]["attribution"]),
        setting=_words_for(lines[0]),
        sentences=tuple(sentence(line) for line in lines),
        over_all=over_all,
        silence=_silence(lines, units),
    )


def _words_for(line: Line) -> str:
    act = "keeping" if line["direction"] == "sufficiency" else "removing"
    null = "" if _null(line) == SIZE else f", random sets matched by {_null(line)}"
    own = {None: "what it marks", DYNAMIC: "as many top units as it has peaks"}
    units = own.get(line["k"]) or f"the top {100 * line['k']:g} %"
    return f"{act} {units}{null}"


def sentence(line: Line) -> Sentence:
    """The verdict with its win rate, interval and number of examples."""
    verdict = str(line["verdict"] or "no verdict")
    word = None if verdict == NOT_DISTINGUISHABLE else word_of_verdict(line["verdict"])
    if line["win_rate"] is None:
        text = "no example could be evaluated."
    else:
        interval = line["win_rate_ci"]
        between = "no interval" if interval is None else f"95 % interval {_limits(interval)}"
        sets = "random sets of the same size" + ("" if _null(line) == SIZE else f" and matched by {_null(line)}")
        # Half of the sets that tie are in the win rate, but nobody beat them.
        verb = "it wins against" if _ties(line) and not _is_strict(line) else "it beats"
        tied = f"{percent(line['tie_rate'])} tie; " if _ties(line) else ""
        text = f"{verb} {percent(line['win_rate'])} of {sets}{_counted(line)} ({tied}{between}, n = {line['n']})."
    return Sentence(str(line["operator"]), verdict, word, text)


def _counted(line: Line) -> str:
    if not _ties(line):
        return ""
    return ", ties counted as lost" if _is_strict(line) else ", ties counted half"


def _limits(interval: Sequence[float]) -> str:
    return f"{100 * interval[0]:.1f}–{percent(interval[1])}"


def _silence(lines: Sequence[Line], units: str) -> str:
    """What a reader might take the verdicts for, and must not."""
    found = [str(line["verdict"] or "") for line in lines]
    parts = []
    if any(verdict.endswith("faithful") and not verdict.startswith("anti") for verdict in found):
        parts.append(f"that these {units} are all the model looks at, or that people find them convincing")
    if NOT_DISTINGUISHABLE in found:
        limits = [line["detectable_win_rate"] for line in lines if line["detectable_win_rate"] is not None]
        seen = f"; a win rate under {percent(min(max(limits), 1.0))} may go unnoticed here" if limits else ""
        parts.append(f"that the explanation is no better than chance{seen}")
    if "near-random" in found:
        parts.append("that the explanation is no better than chance: it is, if by little")
    if any(verdict.startswith("anti-faithful") for verdict in found):
        parts.append(f"why random {units} do better, or that another method or size would fare as badly")
    return f"It does not say {', nor '.join(parts)}." if parts else "It says nothing for or against the explanation."
