"""The first screen of a run: one sentence that answers, problems, key figures, and all methods, the best first."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ice_eval import stats
from ice_eval.report.chains import chain_verdict
from ice_eval.report.citations import headline
from ice_eval.report.colours import chance, expected, is_strict, verdict_of, word_of_line
from ice_eval.report.sentences import (
    has_ties,
    in_first_setting,
    over_all_sentence,
    place_of,
    setting_of,
    silence,
    units_of,
)
from ice_eval.results import Configuration, Manifest, Summary, SummaryLine
from ice_eval.results.outcomes import ALL
from ice_eval.results.records import NoiseGuard, RobustnessLine
from ice_eval.results.summary import CONTROL, Dropped, below_chance, dropped
from ice_eval.scoring import BATCHES, LARGEST_NOISE
from ice_eval.stats.verdict import MARGIN
from ice_eval.table import Column, Table, interval, percent, table_of, whole

NAMED_OTHERS = 2
"""Further methods that the sentence names."""
_AGREE = {"robust": "yes", "weak under all operators": "yes", "operator-dependent": "no"}
"""Agreement of operators, by the word on all of them."""
FAILS = 0.05
"""Largest adjusted p-value of the random control that is reported as a problem."""


class Tile(NamedTuple):
    name: str
    value: str
    note: str = ""


class Method(NamedTuple):
    """One attribution in one setting, under every operator."""

    attribution: str
    lines: tuple[SummaryLine, ...]
    over_all: RobustnessLine | None
    """All operators together; None with one operator."""
    agreement: str
    """The same in a sentence; empty if it says nothing."""
    rank: float
    """Win rate by which methods are sorted: that of the average over operators, where there is one."""

    @property
    def is_control(self) -> bool:
        return self.attribution == CONTROL


class MethodRanking(NamedTuple):
    """All methods that were tested in one setting, the best first and the control last."""

    name: str
    """The setting in words."""
    methods: tuple[Method, ...]

    @property
    def has_ties(self) -> bool:
        return any(has_ties(line) for method in self.methods for line in method.lines)


@dataclass(frozen=True)
class Conclusion:
    sentences: tuple[str, ...]
    """The answer, and what to know beside it."""
    problems: tuple[str, ...]
    """Whatever may make the sentence wrong: failed examples, a control that wins or loses too often."""
    tiles: tuple[Tile, ...]
    first: MethodRanking | None
    """Methods in the first setting of each; None without an explanation."""
    others: tuple[MethodRanking, ...]
    silence: str
    """Conclusions that the verdicts do not allow."""

    @property
    def sentence(self) -> str:
        return " ".join(self.sentences)


def conclude(summary: Summary, manifest: Manifest) -> Conclusion:
    rankings, failed = _rankings(summary), dropped(summary)
    first = rankings[0] if rankings else None
    return Conclusion(
        sentences=tuple(_sentences(summary, manifest, first, failed)),
        problems=tuple(_problems(summary, manifest, failed)),
        tiles=tuple(_tiles(summary, manifest, first, failed)),
        first=first,
        others=tuple(rankings[1:]),
        silence=silence([line for line in summary.configurations if line.attribution != CONTROL], units_of([summary])),
    )


def _rankings(summary: Summary) -> list[MethodRanking]:
    places: dict[Configuration, dict[str, SummaryLine]] = {}
    for line in summary.configurations:
        places.setdefault(place_of(line), {})[line.operator] = line
    over_all, units = {place_of(line): line for line in summary.robustness}, units_of([summary])
    first = set(in_first_setting(summary.configurations))
    rankings: dict[str, list[Method]] = {}
    for place, lines in sorted(places.items(), key=lambda each: each[0] not in first):
        leading = lines.get(ALL) or next(iter(lines.values()))
        single = tuple(line for name, line in lines.items() if name != ALL)
        together = over_all.get(place)
        said = "" if together is None or place.attribution == CONTROL else over_all_sentence(together, units)
        method = Method(place.attribution, single, together, said, leading.win_rate or 0.0)
        rankings.setdefault("" if place in first else setting_of(place), []).append(method)
    names = {"": " or ".join(dict.fromkeys(map(setting_of, filter(first.__contains__, places))))}
    return [
        MethodRanking(names.get(name, name), tuple(sorted(methods, key=lambda each: (each.is_control, -each.rank))))
        for name, methods in rankings.items()
    ]


def _sentences(summary: Summary, manifest: Manifest, first: MethodRanking | None, failed: Dropped) -> list[str]:
    """Return the sentences; the first one says which label is explained, if that is not each text's own."""
    if summary.chains is not None:
        said = [chain_verdict(summary).title]
    elif summary.citations is not None:
        said = [headline(summary.citations)]
    else:
        said = list(_explained(summary, manifest, first))
    said += [f"{lost(failed)}."] if failed.n else []
    config = manifest.config
    if config.target in manifest.labels and said:
        why = f"Why {config.target}{'' if config.versus is None else f' rather than {config.versus}'}: "
        said[0] = why + said[0]
    return said


def lost(failed: Dropped) -> str:
    have = "has" if failed.n == 1 else "have"
    return f"{failed.n} of {failed.total} examples {have} no result{failed.where and f' {failed.where}'}"


def _explained(summary: Summary, manifest: Manifest, first: MethodRanking | None) -> Iterator[str]:
    """Yield sentences on the best method, the others and the control."""
    shown = () if first is None else first.methods
    evaluated = [each for each in shown if any(line.win_rate is not None for line in each.lines)]
    methods = [each for each in evaluated if not each.is_control]
    if not evaluated:
        yield "No example could be evaluated."
    if methods:
        best, *rest = methods
        # Half of the sets that tie are in the win rate, but nobody beat them; a protocol may count them as lost.
        tied = any(has_ties(line) and not is_strict(line) for each in methods for line in each.lines)
        verb = "wins against" if tied else "beats"
        undecidable = all(line.verdict is not None and line.verdict.word == stats.UNDECIDABLE for line in best.lines)
        yield f"{_named(best)} is {_verdicts(best)}{'' if undecidable else f': it {_wins(best, verb, manifest)}'}."
        if len(rest) <= NAMED_OTHERS:
            verb = "hurts more than" if best.lines[0].direction == "necessity" else verb
            yield from (f"{_named(each)} {verb} {_rates(each)}." for each in rest)
        else:
            rates = [line.win_rate for each in rest for line in each.lines if line.win_rate is not None]
            yield f"The other {len(rest)} methods win {whole(min(rates))} to {whole(max(rates))}."
        yield from _ahead(summary, methods)
    for control in (each for each in evaluated if each.is_control):
        if any(map(control_fails, control.lines)):
            comment = f"where {expected(control.lines)} is expected"
        else:
            known = [line for line in control.lines if line.win_rate is not None]
            near = all(abs((line.win_rate or 0.0) - chance(line)) <= MARGIN for line in known)
            comment = "as it should be" if near else f"not far enough from {expected(known)} to be a problem"
        yield f"The random control is at {_rates(control)}, {comment}."


def _named(method: Method) -> str:
    return method.attribution[:1].upper() + method.attribution[1:]


def _wins(method: Method, verb: str, manifest: Manifest) -> str:
    line = method.lines[0]
    matched = "" if line.null == "size" else f", matched by {line.null}"
    verb = "hurts more, if removed, than" if line.direction == "necessity" else verb
    return f"{verb} {_rates(method)} of random {manifest.config.unit} sets of the same size{matched}"


def _rates(method: Method) -> str:
    known = [line for line in method.lines if line.win_rate is not None]
    several = len(known) > 1
    return listed([whole(line.win_rate) + (f" ({line.operator})" if several else "") for line in known])


def agreed(words: Iterable[str]) -> str:
    said = {_AGREE.get(word, "not settled") for word in words}
    return "no" if "no" in said else said.pop() if len(said) == 1 else "in part"


def _verdicts(method: Method) -> str:
    """Return `faithful under delete and infill`, or one word for each operator."""
    by_word: dict[str, list[str]] = {}
    for line in method.lines:
        by_word.setdefault(str(line.verdict) if line.verdict else "without a verdict", []).append(line.operator)
    parts = [(*word.partition(": "), listed(operators)) for word, operators in by_word.items()]
    return listed([f"{word} under {where}{said and f' ({said})'}" for word, _, said, where in parts])


def _ahead(summary: Summary, methods: Sequence[Method]) -> Iterator[str]:
    """Yield whether the best method is ahead of the second, by the intervals of paired differences."""
    if len(methods) < 2:
        return
    best, second = methods[0].attribution, methods[1].attribution
    line, apart = methods[0].lines[0], list[bool]()
    for each in summary.rankings:
        group = {name: place for place, names in enumerate(each.ranking) for name in names}
        is_there = (each.direction, each.k, each.null) == (line.direction, line.k, line.null) and each.operator != ALL
        if is_there and best in group and second in group:
            apart.append(group[best] < group[second])
    if apart and all(apart):
        yield f"{_named(methods[0])} is ahead of {second} under every operator."
    elif apart and not any(apart):
        n = max(line.n for line in methods[0].lines)
        which = "which of the two is better" if len(methods) == 2 else f"whether {best} is better than {second}"
        yield f"{n} example{' does' if n == 1 else 's do'} not settle {which}."


def control_fails(line: SummaryLine) -> bool:
    """Return True for a random control whose adjusted test rejects one half."""
    return line.attribution == CONTROL and line.n > 1 and line.p_adjusted is not None and line.p_adjusted <= FAILS


def _problems(summary: Summary, manifest: Manifest, failed: Dropped) -> Iterator[str]:
    if summary.cut is not None:
        yield f"{summary.cut.said(manifest.config.unit)}: explanations are about what is left."
    if failed.n:
        reasons = "; ".join(f"{why} ({n})" for why, n in failed.reasons.items())
        yield f"{lost(failed)} ({percent(failed.share)}): {reasons}."
    noise = list(_noise(manifest.noise_guard))
    yield from (each for each in manifest.warnings if not noise or BATCHES not in each)
    known = [line for line in summary.configurations if line.accuracy is not None and line.n_gold]
    if known and summary.chains is None and len(manifest.labels) > 1:
        line = max(known, key=lambda each: each.n_gold)
        if found := below_chance(line.accuracy or 0.0, line.n_gold, manifest.labels):
            yield found
    yield from noise
    for line in summary.configurations:
        if control_fails(line):
            place = f"{setting_of(place_of(line))}; p adj. {line.p_adjusted:.4f}"
            yield (
                f"The random control wins {percent(line.win_rate)} under {line.operator}, where {expected([line])} is "
                f"expected ({place}): win rates of this run may be wrong."
            )


def _noise(guard: NoiseGuard | None) -> Iterator[str]:
    """Yield what rows that were scored again alone say against the scores of a batch."""
    if guard is None:
        return
    changes = []
    if guard.unscored:
        changes.append(f"{guard.unscored} got NaN or infinity where the run has a score")
    if guard.probability is not None and guard.probability > LARGEST_NOISE:
        changes.append(f"a probability changed by {guard.probability:.2f}")
    if changes:
        advice = "" if guard.unscored else " --token-budget 1 scores each alone."
        yield f"Scores {BATCHES}: of {guard.rows} rows that were scored again alone, {listed(changes)}.{advice}"


def _tiles(summary: Summary, manifest: Manifest, first: MethodRanking | None, failed: Dropped) -> Iterator[Tile]:
    if first is None or summary.chains is not None:
        return
    lines = [line for method in first.methods for line in method.lines]
    widest = max(lines, key=lambda line: line.n)
    used = dict.fromkeys((min(line.n for line in lines), widest.n))
    counts = {"dropped": failed.n, "skipped": max(widest.n_skipped - failed.n, 0)}
    notes = [f"of {widest.n + widest.n_skipped}", *(f"{n} {name}" for name, n in counts.items() if n)]
    yield Tile("examples used", " to ".join(map(str, used)), ", ".join(notes))
    if widest.accuracy is not None:
        yield Tile("model accuracy", percent(widest.accuracy), f"{len(manifest.labels)} labels")
    ties = [line.tie_rate for line in lines if line.tie_rate is not None and line.attribution != CONTROL]
    if ties:
        yield Tile("random sets that tie", percent(max(ties)), "at most, for one method")
    together = [each.over_all for each in first.methods if not each.is_control and each.over_all is not None]
    words = {line.attribution: line.word for line in together if line.word is not None}
    if words:
        said = "; ".join(f"{name}: {word}" for name, word in words.items())
        yield Tile("operators agree", agreed(words.values()), said)
    judged = [line for line in summary.configurations if line.attribution != CONTROL]
    limits = [line.detectable_win_rate for line in judged if line.detectable_win_rate is not None]
    if limits:
        least = percent(max(limits)) if max(limits) <= 1 else "none"
        yield Tile("smallest detectable win rate", least, "with power 80 %")


def listed(names: Sequence[str]) -> str:
    """Return names as `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def conclusion_table(found: Mapping[str, Conclusion], *, most: int | None = None, kind: str = "95 %") -> Table:
    """Return the first ranking of each named run: a row for each method, a column for each operator.

    At most `most` rows are shown, of each run the best methods and the control. Intervals, of this `kind`, are shown
    for one or two operators; columns of more would not fit beside each other.
    """
    rankings = {name: each.first.methods for name, each in found.items() if each.first is not None}
    share = None if most is None else max(most // max(len(rankings), 1), 2)
    rows = [
        (name, method)
        for name, methods in rankings.items()
        for place, method in enumerate(methods, start=1)
        if share is None or place < share or place == len(methods)  # the control is last
    ][:most]
    methods = [method for _, method in rows]
    operators = dict.fromkeys(line.operator for method in methods for line in method.lines)
    has_intervals = len(operators) <= 2

    def rate(line: SummaryLine) -> str | None:
        limits = f" {interval(line.win_rate_ci)}" if has_intervals else ""
        return percent(line.win_rate) + limits if line.n else None

    def column(operator: str) -> Column:
        def under(of_line: Callable[[SummaryLine], str | None]) -> Callable[[Method], str | None]:
            return lambda method: next((of_line(line) for line in method.lines if line.operator == operator), None)

        return Column(operator, operator, "text", get=under(rate), word=under(word_of_line))

    columns = (
        Column("attribution", "attribution", "text"),
        *map(column, operators),
        Column("verdict", "verdict", "text", get=short_verdict),
    )
    n_rows = sum(map(len, rankings.values()))
    about = [f"{kind} intervals"] * has_intervals + [f"{len(rows)} of {n_rows} rows"] * (len(rows) < n_rows)
    title = "Win rates against random sets of the same size" + (f" ({'; '.join(about)})" if about else "")
    return table_of(title, methods, columns, runs=[name for name, _ in rows] if len(rankings) > 1 else ())


def short_verdict(method: Method) -> str:
    """Return the verdicts of a method under all operators, each once."""
    if method.is_control:
        return f"control, expected {expected(method.lines)}"
    return ", ".join(dict.fromkeys(verdict_of(line) for line in method.lines if line.n))
