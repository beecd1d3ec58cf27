"""What the numbers say, and what they do not, in sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ice_eval import stats
from ice_eval.nulls import SIZE
from ice_eval.protocols import PROTOCOLS
from ice_eval.rationales import DYNAMIC, Share
from ice_eval.records import Direction
from ice_eval.report.tables import percent
from ice_eval.results import Summary, SummaryLine
from ice_eval.results.outcomes import ALL
from ice_eval.results.records import AgreementLine, RobustnessLine

_THRESHOLD = f"{100 * stats.WEAKLY_FAITHFUL:g} %"


class Place(NamedTuple):
    """A configuration, whatever its operator."""

    attribution: str
    direction: Direction
    k: Share | None
    null: str


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


def verdicts(summary: Summary) -> Verdicts:
    """A statement for every attribution and setting, the settings in the order of the run."""
    units = _units([summary])
    lines = [line for line in summary.configurations if line.operator != ALL]
    words = {place_of(line): _over_all(line, units) for line in summary.robustness}
    leading = set(in_first_setting(lines))
    groups: dict[Place, list[SummaryLine]] = {}
    for line in lines:
        groups.setdefault(place_of(line), []).append(line)
    found = {place: _statement(group, words.get(place, ""), units) for place, group in groups.items()}
    return Verdicts(
        tuple(found[place] for place in found if place in leading),
        tuple(found[place] for place in found if place not in leading),
    )


def lead(summaries: Sequence[Summary]) -> str:
    """What the verdicts of some runs rest on, as far as it is the same in all of their configurations."""
    lines = [line for summary in summaries for line in summary.configurations]
    act = " or ".join(dict.fromkeys(_ACTS[line.direction] for line in lines))
    ranked = " or ".join(dict.fromkeys("marked" if line.k is None else "top-ranked" for line in lines))
    return (
        f"Each explanation's {ranked} {_units(summaries)} are {act}, and random sets of the same size{_matched(lines)} "
        f"are {act} in the same way. The win rate is the share of random sets that the explanation "
        f"beats{_chance(lines)}. "
        "A word other than “not distinguishable from random” is given only where the whole 95 % interval allows it and "
        f"the test agrees (p ≤ 0.05). The words are anti-faithful below 50 %, near-random up to {_THRESHOLD}, weakly "
        f"faithful up to {100 * stats.FAITHFUL:g} % and faithful above, or the range that the interval reaches over. "
        "Each verdict is about one configuration and is not adjusted for how many there are; “p adj.” in the table is."
    )


def _units(summaries: Sequence[Summary]) -> str:
    """What explanations choose from: the steps of chains, or whatever units texts were cut into."""
    return "steps" if all(summary.chains is not None for summary in summaries) else "units"


def _matched(lines: Sequence[SummaryLine]) -> str:
    """What random sets have in common with the explanation beside their size."""
    nulls = list(dict.fromkeys(line.null for line in lines))
    matched = ", ".join(null for null in nulls if null != SIZE)
    if not matched:
        return ""
    return f" (some also matched by {matched})" if SIZE in nulls else f" and matched by {matched}"


def _chance(lines: Sequence[SummaryLine]) -> str:
    """How ties count, and where chance lies then."""
    strict = {_is_strict(line) for line in lines if _ties(line)}
    if strict == {True, False}:
        return ". Ties count half, and 50 % is chance, or they are lost, and chance is below; each sentence says which"
    if strict == {True}:
        return ". Ties are lost, as in the protocol of the run: chance is below 50 % by half of the share that ties"
    return ", ties counted half: 50 % is chance" if strict else ": 50 % is chance"


def _is_strict(line: SummaryLine) -> bool:
    """Whether a tie was lost, by the protocol that the flags name."""
    return any(protocol.strict and f"protocol_{name}" in line.flags for name, protocol in PROTOCOLS.items())


def _ties(line: SummaryLine) -> bool:
    """Whether the share of sets that tie is more than 0.0 % when it is printed."""
    return line.tie_rate is not None and round(line.tie_rate, 3) > 0


_ACTS = {"sufficiency": "kept", "necessity": "removed"}


def in_first_setting(lines: Sequence[SummaryLine | AgreementLine]) -> list[Place]:
    """The first place of each attribution."""
    found: dict[str, Place] = {}
    for line in lines:
        found.setdefault(line.attribution, place_of(line))
    return list(found.values())


def place_of(line: SummaryLine | AgreementLine | RobustnessLine) -> Place:
    """The configuration of a line, whatever its operator."""
    return Place(line.attribution, line.direction, line.k, line.null)


def _over_all(line: RobustnessLine, units: str) -> str:
    """One sentence on all operators; it rests on other bounds than the intervals beside it, so it says which."""
    if line.word == "robust" and line.sides is not None:
        return f"All operators put it {line.sides[0]} {_THRESHOLD} (one-sided 95 % bounds)."
    if line.word == "operator-dependent":
        return (
            "The operators contradict each other (one-sided 95 % bounds): the answer depends on how "
            f"{units} are removed."
        )
    return "Whether the operators agree is not certain." if line.word else ""


def _statement(lines: Sequence[SummaryLine], over_all: str, units: str) -> Statement:
    return Statement(
        attribution=lines[0].attribution,
        setting=_words_for(lines[0]),
        sentences=tuple(sentence(line) for line in lines),
        over_all=over_all,
        silence=_silence(lines, units),
    )


def _words_for(line: SummaryLine) -> str:
    act = "keeping" if line.direction == "sufficiency" else "removing"
    null = "" if line.null == SIZE else f", random sets matched by {line.null}"
    return f"{act} {_units_of(line.k)}{null}"


def _units_of(k: Share | None) -> str:
    if k is None:
        return "what it marks"
    return "as many top units as it has peaks" if k == DYNAMIC else f"the top {100 * k:g} %"


def sentence(line: SummaryLine) -> Sentence:
    """The verdict with its win rate, interval and number of examples."""
    verdict, word = ("no verdict", None) if line.verdict is None else (str(line.verdict), line.verdict.lowest)
    if line.win_rate is None:
        text = "no example could be evaluated."
    else:
        interval = line.win_rate_ci
        between = "no interval" if interval is None else f"95 % interval {_limits(interval)}"
        sets = "random sets of the same size" + ("" if line.null == SIZE else f" and matched by {line.null}")
        # Half of the sets that tie are in the win rate, but nobody beat them.
        verb = "it wins against" if _ties(line) and not _is_strict(line) else "it beats"
        tied = f"{percent(line.tie_rate)} tie; " if _ties(line) else ""
        text = f"{verb} {percent(line.win_rate)} of {sets}{_counted(line)} ({tied}{between}, n = {line.n})."
    return Sentence(line.operator, verdict, word, text)


def _counted(line: SummaryLine) -> str:
    if not _ties(line):
        return ""
    return ", ties counted as lost" if _is_strict(line) else ", ties counted half"


def _limits(interval: Sequence[float]) -> str:
    return f"{100 * interval[0]:.1f}–{percent(interval[1])}"


def _silence(lines: Sequence[SummaryLine], units: str) -> str:
    """What a reader might take the verdicts for, and must not."""
    found = [line.verdict for line in lines if line.verdict is not None]
    parts = []
    if any(each.highest in ("weakly faithful", "faithful") and each.lowest != "anti-faithful" for each in found):
        parts.append(f"that these {units} are all the model looks at, or that people find them convincing")
    if any(verdict.reason == stats.NOT_DISTINGUISHABLE for verdict in found):
        limits = [line.detectable_win_rate for line in lines if line.detectable_win_rate is not None]
        seen = f"; a win rate under {percent(min(max(limits), 1.0))} may go unnoticed here" if limits else ""
        parts.append(f"that the explanation is no better than chance{seen}")
    if any(verdict.word == "near-random" for verdict in found):
        parts.append("that the explanation is no better than chance: it is, if by little")
    if any(verdict.lowest == "anti-faithful" for verdict in found):
        parts.append(f"why random {units} do better, or that another method or size would fare as badly")
    return f"It does not say {', nor '.join(parts)}." if parts else "It says nothing for or against the explanation."
