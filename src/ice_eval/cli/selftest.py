"""`ice selftest`."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from ice_eval.cli._options import Json
from ice_eval.cli._output import print_json, print_line, print_tables, print_text

if TYPE_CHECKING:
    from ice_eval.report import Table
    from ice_eval.selftest import Check, Report


def selftest(
    seed: Annotated[int, Option(help="Defines texts, random sets and every other draw.")] = 0,
    quick: Annotated[bool, Option("--quick", help="A fraction of the examples: gross faults only.")] = False,
    full: Annotated[bool, Option("--full", help="Print the worst check of each kind.")] = False,
    every: Annotated[bool, Option("--all", help="Print every check.")] = False,
    as_json: Json = False,
) -> None:
    """Test the method itself, on models whose truth is known.

    Random explanations must pass no more often than the level says, true ones must be found, and opposite ones named.
    Exits with 1 if a guarantee fails: p < 0.001. Takes three to five minutes on two cores.
    """
    print_text("loading the self-test …", error=True)
    from ice_eval import selftest as tests
    from ice_eval.api.progress import Bar

    report = tests.selftest(seed=seed, sizes=tests.QUICK if quick else tests.FULL, say=Bar().say)
    if as_json:
        print_json(report.content())
    else:
        _print(report, full=full, every=every)
    if not report.ok:
        raise typer.Exit(1)


def _print(report: "Report", *, full: bool, every: bool) -> None:
    if not (full or every):
        print_tables([_overview(report)])
    else:
        measured = [check for check in report.checks if not check.is_guarantee]
        for title, checks in (("Guarantees", report.guarantees), ("Measured", measured)):
            print_tables([_table(title, [[check] for check in checks] if every else list(_alike(checks)))])
    for line in (*report.skipped, *_conclusion(report)):
        print_line(line, indent=2)


def _overview(report: "Report") -> "Table":
    """Return a row for every model, with the number of guarantees and the least likely of them."""
    from ice_eval.report import Table

    by_model: dict[str, list[Check]] = {}
    for check in report.guarantees:
        by_model.setdefault(check.about.model, []).append(check)
    rows = []
    for model, checks in by_model.items():
        worst = min(checks, key=lambda check: 1.0 if check.p is None else check.p)
        holds = "yes" if all(check.ok for check in checks) else "NO"
        rows.append((model, str(len(checks)), holds, f"{worst.about.attribution}: {worst.name}", _p_value(worst.p)))
    return Table("Guarantees", ("model", "checks", "hold", "least likely", "p"), tuple(rows))


def _alike(checks: "Sequence[Check]") -> "Iterator[list[Check]]":
    """Yield checks of the same name, model and attribution, the worst first."""
    groups: dict[tuple[str, str, str], list[Check]] = {}
    for check in checks:
        groups.setdefault((check.name, check.about.model, check.about.attribution), []).append(check)
    for group in groups.values():
        # Of those that are equally likely, the one that is furthest on the bad side.
        worse = -1 if group[0].bound.startswith("≤") else 1
        yield sorted(group, key=lambda check: (1.0 if check.p is None else check.p, worse * check.observed))


def _table(title: str, groups: "Sequence[Sequence[Check]]") -> "Table":
    from ice_eval.report import Table

    promised = title == "Guarantees"
    header = ("model", "explanation", "what", "checks", "expected", "worst", "95 % CI", "where", "n")
    rows = tuple(_row(group, promised=promised) for group in groups)
    return Table(title, (*header, *(("p", "holds") if promised else ())), rows)


def _row(group: "Sequence[Check]", *, promised: bool) -> tuple[str, ...]:
    worst = group[0]
    about, where = worst.about, f"{worst.about.operator}, {worst.about.direction}"
    end = (_p_value(worst.p), "yes" if all(check.ok for check in group) else "NO") if promised else ()
    named = (about.model, about.attribution, worst.name, str(len(group)), worst.bound)
    return (*named, _observed(worst), _interval(worst), where, str(worst.n), *end)


def _observed(check: "Check") -> str:
    return f"{check.observed:.1f}" if check.low is None else f"{100 * check.observed:.1f} %"


def _interval(check: "Check") -> str:
    from ice_eval.table import interval

    return interval(None if check.low is None or check.high is None else (check.low, check.high))


def _p_value(value: float | None) -> str:
    return "–" if value is None else f"{value:.2g}"


def _conclusion(report: "Report") -> Iterator[str]:
    """Yield every guarantee that fails, or that all hold."""
    n = len(report.guarantees)
    if report.ok:
        yield f"All {n} guarantees hold (seed {report.seed}, {report.seconds:.0f} s)."
        return
    for check in report.failed:
        yield (
            f"fails: {check.name} ({check.about}): {_observed(check)} {_interval(check)} of {check.n}, expected "
            f"{check.bound}, p = {_p_value(check.p)}"
        )
    yield f"{len(report.failed)} of {n} guarantees fail (seed {report.seed}, {report.seconds:.0f} s)."
