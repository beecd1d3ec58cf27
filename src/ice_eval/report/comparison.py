"""Runs compared with a first one: sentences that answer, tables, notes, and a page with differences as intervals."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from ice_eval.analysis.chains import CHAINS, capacities
from ice_eval.analysis.checks import Answered
from ice_eval.files import as_text, write_asked
from ice_eval.nulls import SIZE
from ice_eval.report.chains import chain_verdict
from ice_eval.report.citations import CARRIED, headline
from ice_eval.report.colours import word_of
from ice_eval.report.conclusion import listed
from ice_eval.report.page import html_page
from ice_eval.report.sentences import flag_note, setting_of
from ice_eval.report.tables import run_names
from ice_eval.results import Configuration, RunDifference, Summary, WinRateDifference
from ice_eval.results.outcomes import ALL
from ice_eval.results.records import Adaptation
from ice_eval.results.summary import CONTROL, SMALL_N
from ice_eval.table import EMPTY, Column, Table, beside, columns, estimate, naming, share, table_of, written

SETTLED = 0.05
"""Largest adjusted p-value of a difference that names the better run."""
_NAMED = 3
"""Differences that a sentence names."""
_MOST = 8
"""Settings that a sentence names."""
_LONGEST = 24
"""Characters of a setting in a sentence."""
_HASH = re.compile(r"[0-9a-f]{8,}")
_SCALES = (0.05, 0.1, 0.25, 0.5, 1.0)


def write_comparison(found: Sequence[RunDifference], path: Path) -> Path:
    """Write the page of some comparisons with the same first run; raise `ConfigError` if that fails."""
    write_asked(path, comparison_page(found).encode("utf-8"))
    return path


def comparison_page(found: Sequence[RunDifference], **content: Any) -> str:
    """Return the page of some comparisons with the same first run; `content` is added to what its template gets."""
    folders = [found[0].first, *(each.second for each in found)]
    letters, names = run_letters(len(folders)), map(" on ".join, run_names(folders))
    runs = list(zip(letters, names, (as_text(Path(folder.path.name)) for folder in folders), strict=True))
    page = {
        "title": f"ICE comparison: {', '.join(name for _, name, _ in runs)}",
        "runs": runs,
        "answers": [answer(each, letter) for letter, each in zip(letters[1:], found, strict=True)],
        "subjects": list(_of_subjects(letters, [folder.summary() for folder in folders])),
        "plot": _plot(found, letters),
        "tables": difference_tables(found),
        "notes": difference_notes(found),
        **content,
    }
    return html_page("comparison.html", page)


def comparison_lines(found: Sequence[RunDifference]) -> list[str]:
    """Return the answer about each run, which runs these are, and the settings that differ."""

    def changed(field: str, first: object, second: object) -> str:
        if all(isinstance(value, str) and _HASH.fullmatch(value) for value in (first, second)):
            return f"other {field}"
        return f"{field} {setting(first, _LONGEST)} → {setting(second, _LONGEST)}"

    letters, folders = run_letters(len(found) + 1), [found[0].first, *(each.second for each in found)]
    lines = [answer(each, letter) for letter, each in zip(letters[1:], found, strict=True)]
    for letter, each in zip(letters[1:], found, strict=True):
        changes = [changed(*one) for one in each.settings[:_MOST]]
        changes += [f"{len(each.settings) - _MOST} more settings"] * (len(each.settings) > _MOST)
        said = ", ".join(changes) or "the same settings"
        lines.append(f"A is {folders[0].path}, {letter} is {each.second.path}: {said}.")
    return [*lines, *_of_subjects(letters, [folder.summary() for folder in folders])]


def comparison_table(found: Sequence[RunDifference], *, most: int) -> Table:
    letters = run_letters(len(found) + 1)[1:]
    pairs = [(letter, line) for letter, each in zip(letters, found, strict=True) for line in leading(each)]
    shown = sorted(pairs, key=lambda pair: pair[1].p_adjusted or 0.0)[:most]
    columns = [each for each in rate_columns(found) if each.field not in ("n", "p_value", "verdict_second")]
    columns = [replace(each, header="difference") if each.field == "difference" else each for each in columns]
    title = "Differences" if len(shown) == len(pairs) else f"Differences, the clearest {len(shown)} of {len(pairs)}"
    runs = [name for name, _ in shown] if len(found) > 1 else ()
    return table_of(title, [line for _, line in shown], columns, runs=runs)


def answer(found: RunDifference, letter: str) -> str:
    """Return which run's explanations win more, under which operators and how surely."""
    lines = sorted(leading(found), key=lambda line: (line.p_adjusted, -abs(line.difference or 0.0)))
    if not lines:
        return f"A and {letter} share no explanation whose difference can be tested."
    several = len({_place(line) for line in lines}) > 1
    settled = [line for line in lines if line.p_adjusted is not None and line.p_adjusted <= SETTLED]
    if not settled:
        closest = f"the clearest difference is that of {_named(lines[0], letter, several)}"
        return f"The examples do not show whether A or {letter} is better: {closest}."
    wins = [line for line in settled if (line.difference or 0.0) > 0]
    better = {letter: wins, "A": [line for line in settled if line not in wins]}
    sides = [f"{name} is better for {_listed(side, letter, several)}" for name, side in better.items() if side]
    said = f"{'Neither run is better throughout: ' if len(sides) > 1 else ''}{'; '.join(sides)}."
    left = len(lines) - len(settled)
    others = "difference" if left == 1 else f"{left} differences"
    return said + (f" The other {others} of {len(lines)} {'is' if left == 1 else 'are'} not settled." if left else "")


def leading(found: RunDifference) -> list[WinRateDifference]:
    """Return the tested differences without those of the control, and under single operators if there are any."""
    tested = [line for line in found.configurations if line.p_adjusted is not None and line.difference is not None]
    lines = [line for line in tested if line.attribution != CONTROL]
    return [line for line in lines if line.operator != ALL] or lines


def _place(line: WinRateDifference) -> str:
    return setting_of(Configuration("", "", line.direction, line.k, line.null))  # type: ignore[arg-type]


def _named(line: WinRateDifference, letter: str, several: bool) -> str:
    where = f", {_place(line)}" if several else ""
    return f"{line.attribution} under {line.operator}{where} ({letter} − A = {numbers(line)})"


def numbers(line: WinRateDifference) -> str:
    """Return a difference with its interval and its adjusted p-value."""
    p = written(line.p_adjusted, "p-value")
    named = f"p < {p[1:]}" if p.startswith("<") else f"p = {p}"
    limits = "" if line.difference_ci is None else f" {written(line.difference_ci, 'points interval')}"
    return f"{written(line.difference, 'points')}{limits}, adjusted {named}"


def _listed(lines: Sequence[WinRateDifference], letter: str, several: bool) -> str:
    more = [f"{len(lines) - _NAMED} more"] * (len(lines) > _NAMED)
    return listed([*(_named(line, letter, several) for line in lines[:_NAMED]), *more])


def _of_subjects(letters: Sequence[str], summaries: Sequence[Summary]) -> Iterator[str]:
    """Yield what chains or cited answers show in each run, which is not tested against the others."""
    said = [
        chain_verdict(each).title if each.chains is not None else headline(each.citations) if each.citations else ""
        for each in summaries
    ]
    if any(said):
        yield from (
            f"{letter}: {text or 'no chains and no cited answers.'}" for letter, text in zip(letters, said, strict=True)
        )
        yield "These are statements on each run by itself; their differences are not tested."


def _plot(found: Sequence[RunDifference], letters: Sequence[str]) -> dict[str, Any]:
    """Return the rows of a plot of all differences from A, with positions in percent of its width, and its limit."""
    pairs = [
        (letter, line)
        for letter, each in zip(letters[1:], found, strict=True)
        for line in each.configurations
        if line.difference is not None and (line.operator != ALL or not leading(each))
    ]
    several = len({_place(line) for _, line in pairs}) > 1
    ends = [abs(end) for _, line in pairs for end in (line.difference_ci or (line.difference or 0.0,))]
    limit = next(each for each in _SCALES if each >= min(max(ends, default=0.0), 1.0))

    def at(value: float) -> float:
        return 50 + 50 * value / limit

    rows = []
    for letter, line in sorted(pairs, key=lambda pair: (pair[0], pair[1].attribution == CONTROL)):
        own = line.difference or 0.0
        low, high = line.difference_ci or (own, own)
        place = {"low": at(low), "high": at(high), "at": at(own), "setting": _place(line) if several else ""}
        rows.append({"run": letter, "line": line, **place})
    return {"rows": rows, "limit": limit}


# --- tables and notes ------------------------------------------------------------------------------------------------


def run_letters(n: int) -> list[str]:
    return [*ascii_uppercase[:n], *(f"R{i + 1}" for i in range(len(ascii_uppercase), n))]


def difference_tables(found: Sequence[RunDifference]) -> list[Table]:
    """Return all tables of some comparisons with the same first run, A, that have a row."""
    letters = run_letters(len(found) + 1)
    folders = [found[0].first, *(each.second for each in found)]
    runs = {letter: folder.summary() for letter, folder in zip(letters, folders, strict=True)}
    lines = [line for each in found for line in each.configurations]
    named = [letter for letter, each in zip(letters[1:], found, strict=True) for _ in each.configurations]
    tables = (
        _settings_table(found, letters),
        _capacities_table(runs),
        _carried_table(runs),
        table_of("Win rates", lines, rate_columns(found), runs=named),  # p-values are adjusted over all of its rows
        _rankings_table(runs),
    )
    return [table for table in tables if table.rows]


def _capacities_table(runs: Mapping[str, Summary]) -> Table:
    """Return capacity and verdict of chains; each number has the interval of its own run, none that of a difference."""
    numbers = (
        *estimate("src_adjusted", "SRC adj.", "fraction"),
        Column("verdict", "verdict", "text", word=lambda line: line.verdict and line.verdict.pattern),
    )
    lines = {letter: () if each.chains is None else capacities(each.chains) for letter, each in runs.items()}
    place = (*naming("operator", "k"), Column("chains", "chains", "text", get=lambda line: CHAINS[line.chains]))
    return _shared_table("Do the steps carry the answer?", lines, place, numbers)


def _carried_table(runs: Mapping[str, Summary]) -> Table:
    lines = {letter: () if each.citations is None else each.citations.carried for letter, each in runs.items()}
    return _shared_table("Carried claims", lines, naming("attribution", "operator", "k"), CARRIED)


def _shared_table(
    title: str, runs: Mapping[str, Sequence[Any]], place: Sequence[Column], numbers: Sequence[Column]
) -> Table:
    """Return the lines that A shares with others, by the fields of `place`, with the numbers of both runs."""
    first, *letters = runs
    key = attrgetter(*(column.field for column in place))
    found = list[tuple[str, Any, Any]]()
    for letter in letters:
        known = {key(line): line for line in runs[letter]}
        found += [(letter, line, known[key(line)]) for line in runs[first] if key(line) in known]
    counts = Column("n", "n", "text", get=lambda pair: f"{pair[0].n}, {pair[1].n}")
    ones, others = ([pair[which] for pair in found] for which in (1, 2))
    second = letters[0] if len(letters) == 1 else "other"
    parts = [
        table_of(title, lines, [replace(each, header=f"{each.header} {name}") for each in numbers])
        for name, lines in ((first, ones), (second, others))
    ]
    named = table_of("", ones, place, runs=[letter for letter, _, _ in found])
    return beside(named, table_of("", list(zip(ones, others, strict=True)), [counts]), *parts)


def _settings_table(found: Sequence[RunDifference], letters: Sequence[str]) -> Table:
    firsts = {one.field: one.first for each in found for one in each.settings}
    # A run that does not appear under a field agrees with the first about it.
    runs = [firsts, *(firsts | {one.field: one.second for one in each.settings} for each in found)]
    rows = tuple((field, *(setting(run[field]) for run in runs)) for field in firsts)
    return Table("Settings that differ", ("field", *letters), rows)


def setting(value: object, longest: int = 60) -> str:
    """Return the value of a setting on one line, cut to a length."""
    text = ", ".join(map(str, value)) if isinstance(value, list) else written(value, "text")
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[:longest]}…"


def rate_columns(found: Sequence[RunDifference]) -> tuple[Column, ...]:
    """Return the columns of win rates in two runs, of which the second is B where it is the only one."""
    second = "B" if len(found) == 1 else "other"
    return (
        *naming("attribution", "null", "operator", "direction", "k"),
        Column("n", "n", "text", get=lambda line: line.n_first if line.paired else f"{line.n_first}, {line.n_second}"),
        Column("win_rate_first", "A", "percent", word=lambda x: word_of(x.attribution, x.verdict_first)),
        Column("win_rate_second", second, "percent", word=lambda x: word_of(x.attribution, x.verdict_second)),
        *estimate("difference", f"{second} − A", "points"),
        *columns("p-value", p_value="p", p_adjusted="p adj."),
        Column(
            "verdict_second", "verdict", "text", get=_verdicts, word=lambda x: word_of(x.attribution, x.verdict_second)
        ),
    )


def _rankings_table(runs: Mapping[str, Summary]) -> Table:
    """Return the order of attributions in every run, for the settings that the first one has."""
    place = attrgetter("operator", "direction", "k", "null")
    known = {letter: {place(line): str(line) for line in summary.rankings} for letter, summary in runs.items()}
    columns = [
        Column(letter, letter, "text", get=lambda line, own=own: own.get(place(line)))  # type: ignore[misc]
        for letter, own in known.items()
    ]
    return table_of("Head to head", runs["A"].rankings, (*naming("null", "operator", "direction", "k"), *columns))


def _verdicts(line: WinRateDifference) -> str:
    if line.attribution == CONTROL:
        return "control"
    first, second = (str(verdict or EMPTY) for verdict in (line.verdict_first, line.verdict_second))
    return f"{second} (both)" if first == second else f"{first} → {second}"


def difference_notes(found: Sequence[RunDifference]) -> list[str]:
    """Return notes beside the differences of some runs from a first one."""
    notes = [f"A is {as_text(found[0].first.path)}."]
    for letter, each in zip(run_letters(len(found) + 1)[1:], found, strict=True):
        notes.append(f"{letter} is {as_text(each.second.path)}. {_shared_examples(each)}")
        if not each.settings:
            notes.append(f"A and {letter} have the same settings.")
        for cells, name in ((each.only_first, "A"), (each.only_second, letter)):
            if cells:
                notes.append(f"Only {name} has, for {_placed(cells)}.")
    lines = [line for each in found for line in each.configurations]
    if any(min(line.n_first, line.n_second) < SMALL_N for line in lines):
        notes.append(flag_note("small_n"))
    return notes


def _shared_examples(each: RunDifference) -> str:
    same = "have the same id as in A" if each.by_id else "are the same as in A"
    shared = f"{each.n_shared} examples {same} ({each.n_first} there, {each.n_second} here)"
    which = "of them" if each.by_id else "with the same id"
    texts = f"; {each.n_other_text} {which} have another text" if each.n_other_text else ""
    how = {
        (True,): " Differences are paired: win rates over the examples that both runs evaluated.",
        (False,): " Differences are unpaired: all examples of each run, which are taken to be independent.",
        (False, True): " Rows with one n are paired, those with two are not.",
    }.get(tuple(sorted({line.paired for line in each.configurations})), "")
    return f"{shared}{texts}.{how}"


def _placed(cells: Sequence[Configuration]) -> str:
    """Return `sufficiency, k = 0.2: occlusion under delete, infill` for configurations that one run alone has."""
    by_place: dict[str, dict[str, list[str]]] = {}
    for cell in cells:
        place = f"{cell.direction}, k = {share(cell.k)}" + ("" if cell.null == SIZE else f", null {cell.null}")
        by_place.setdefault(place, {}).setdefault(cell.attribution, []).append(cell.operator)
    return "; ".join(
        f"{place}: " + ", ".join(f"{name} under {'/'.join(operators)}" for name, operators in by_attribution.items())
        for place, by_attribution in by_place.items()
    )


# --- an adapted copy beside its model ---------------------------------------------------------------------------------


def adapted_inputs(line: Answered) -> str:
    act = "kept" if line.direction == "sufficiency" else "removed"
    return "full" if line.operator is None else f"{line.operator}, random set {act}"


def adaptation_table(found: Sequence[Answered]) -> Table:
    """Return accuracy and loss of a deployed model, A, and its adapted copy, B; losses also at best temperatures."""
    models = (("deployed", "A"), ("adapted", "B"))
    shown = (
        Column("operator", "inputs", "text", get=adapted_inputs),
        *naming("rows"),
        *(Column(f"accuracy_{name}", f"accuracy {letter}", "percent") for name, letter in models),
        *(Column(f"{of}_{name}", f"{of} {letter}") for of in ("loss", "rescaled") for name, letter in models),
        *estimate("difference", "B − A", "signed"),
    )
    return table_of("How they answer", found, shown)


def adaptation_notes(adaptation: Adaptation, found: Sequence[Answered]) -> list[str]:
    """Return notes on the adapted copy of a classifier: its training, and whether it learnt something."""
    seen = "the evaluated ones too" if adaptation.rows_evaluated else "none of them evaluated"
    losses = ", ".join(f"{loss:.3f}" for loss in adaptation.losses)
    removed = [line for line in found if line.operator is not None]
    learnt = "; ".join(adapted_inputs(line) for line in removed if line.learnt)
    others = "; ".join(adapted_inputs(line) for line in removed if not line.learnt)
    notes = [
        f"B is {adaptation.of}, trained on {adaptation.rows} examples ({seen}; epochs: {adaptation.epochs}) "
        f"with up to {100 * adaptation.share:.0f} % of units removed by {', '.join(adaptation.operators)}: "
        f"losses {losses}, {adaptation.seconds:g} s."
    ]
    if learnt:
        notes.append(f"B predicts better than A, and is not just less confident: {learnt}.")
    if others:
        notes.append(
            f"B does not measurably predict better than A: {others}. If only the plain loss is lower, B is just less "
            "confident, and equal win rates are no evidence that unnatural inputs do not matter."
        )
    return [*notes, "Both explain A: explanations and explained labels are those of the deployed model."]
