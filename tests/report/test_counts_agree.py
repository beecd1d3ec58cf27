"""The summary and the example browser count the same, whatever the options of a run."""

import itertools
from collections import Counter

import numpy as np
import pytest
from tests.toy_runs import NEUTRAL, planted, run

from ice_eval import stats
from ice_eval.models.toy import WEIGHTS
from ice_eval.report.browser import BUDGET, COLUMNS, browser_data, run_record
from ice_eval.results.agreements import N_NAMED
from ice_eval.results.summary import ALPHA

HEAD = ("attribution", "direction", "k", "null")
ROUNDED = 5e-5
"""Numbers of the browser have four digits."""


def reviews(n=24):
    """Texts of 5 to 11 words: the shorter ones have fewer sets than are asked for. The last text is one word."""
    rng = np.random.default_rng(3)
    known = [*WEIGHTS, *NEUTRAL]
    lengths = [5 + index % 7 for index in range(n)]
    found = [" ".join(rng.choice(known, length, replace=False)) for length in lengths]
    return [*({"text": text, "label": index % 2} for index, text in enumerate(found)), {"text": "alone"}]


def halves(item):
    """An explanation that is right about every other word."""
    return planted(item) * (-1.0) ** np.arange(item.n_units)


TWO, THREE = ["delete", "infill"], ["delete", "infill", "mask-unk"]
WHOLE = {"nulls": ["size", "contiguity"], "directions": ["sufficiency", "necessity"], "k": [0.2, "dynamic"]}
NUMBERS = {None: 12, "dataset": 12, "examples": 499}
"""Random sets, or the most of them, by the way they are chosen."""
GRID = {
    f"{protocol}, {adaptive or 'fixed'}, {len(operators)} operators, {n_fills} fills": {
        **WHOLE, "protocol": protocol, "adaptive": adaptive, "operators": operators, "n_fills": n_fills,
        "m": NUMBERS[adaptive],
    }
    for protocol, adaptive, (operators, n_fills) in itertools.product(
        ("default", "paper"), NUMBERS, ((TWO, 6), (THREE, 1))
    )
} | {
    f"released, {len(operators)} operators": {
        **WHOLE, "nulls": ["size"], "protocol": "released", "operators": operators, "n_fills": 6, "m": 12,
        "target": "gold",  # the words of the prompt are units there, so that a single word of text is no reason to skip
    }
    for operators in (TWO, THREE)
}  # fmt: skip


@pytest.fixture(scope="module", params=GRID)
def folder(request):
    attributions = {"planted": planted, "halves": halves}
    return run(reviews(), attributions=attributions, **GRID[request.param]).folder


@pytest.fixture(scope="module")
def shown(folder):
    return run_record(folder, budget=BUDGET)


@pytest.fixture(scope="module")
def columns(shown):
    """Configuration -> the browser's cells of all examples, by example; an example without numbers has a text."""
    found = {}
    for place, cell in enumerate(shown["configurations"]):
        found[tuple(cell.values())] = {
            each["id"]: row if isinstance(row := each["cells"][place], str) else dict(zip(COLUMNS, row, strict=True))
            for each in shown["examples"]
        }
    return found


@pytest.fixture(scope="module")
def outcomes(folder):
    """(configuration, example) -> its outcome."""
    return {(tuple(line.configuration), line.example_id): line for line in folder.examples()}


def numbers(columns, line):
    """The cells of a configuration that have numbers, by example."""
    cells = columns[tuple(line.configuration)]
    return {name: cell for name, cell in cells.items() if not isinstance(cell, str)}


def test_the_page_shows_the_run(folder, shown):
    [page] = browser_data([folder])["runs"]
    assert {name: value for name, value in page.items() if name != "title"} == shown


def test_examples_and_skipped_ones_are_counted_alike(folder, shown, columns):
    lines = folder.summary().configurations
    assert [tuple(line.configuration) for line in lines] == list(columns)
    assert shown["total"] == len(shown["examples"]) == 25
    assert [example["id"] for example in shown["examples"] if example["skip"] is not None] == ["24"]
    for line in lines:
        cells = numbers(columns, line)
        assert (line.n, line.n_skipped) == (len(cells), 25 - len(cells))
        assert "24" not in cells
    assert max(line.n for line in lines) == 24


def test_some_tests_are_exact_and_others_are_not(folder):
    exact = Counter(line.exact for line in folder.examples() if line.error is None)
    released = folder.manifest().config.protocol == "released"
    assert exact[False] > 0 and (exact[True] > 0) == (not released)  # independent draws are never all there are


def test_mean_win_rates_ties_and_effects_are_those_of_the_cells(folder, columns):
    for line in folder.summary().configurations:
        cells = numbers(columns, line).values()
        assert np.mean([cell["win_rate"] for cell in cells]) == pytest.approx(line.win_rate, abs=ROUNDED)
        assert np.mean([cell["ties"] for cell in cells]) == pytest.approx(line.tie_rate, abs=ROUNDED)
        effects = [cell["effect_size"] for cell in cells if cell["effect_size"] is not None]
        assert line.effect_size_undefined == len(cells) - len(effects)
        if effects:
            assert np.mean(effects) == pytest.approx(line.effect_size, abs=0.005)


def test_p_values_of_the_cells_are_those_that_the_summary_counts(folder, columns, outcomes):
    for line in folder.summary().configurations:
        found = numbers(columns, line)
        own = [outcomes[tuple(line.configuration), name] for name in found]
        for cell, outcome in zip(found.values(), own, strict=True):
            assert (cell["p"], cell["p_lower"]) == (
                pytest.approx(outcome.p_value, abs=ROUNDED),
                pytest.approx(outcome.p_lower, abs=ROUNDED),
            )
        if folder.manifest().config.adaptive is not None:
            continue
        # Without stopping a p-value is a count over one more than the sets: four digits tell which.
        sets = np.array([outcome.m for outcome in own]) + 1
        for tail, rate in (("p", line.significant_rate), ("p_lower", line.significant_rate_lower)):
            exact = np.rint(np.array([cell[tail] for cell in found.values()]) * sets) / sets
            assert stats.significant_rate(exact, floor=1 / sets.max(), alpha=ALPHA).rate == rate


def test_nulls_of_the_cells_have_as_many_sets_as_were_looked_at(shown, columns, outcomes):
    nulls = {example["id"]: example["nulls"] for example in shown["examples"]}
    for cell, found in columns.items():
        for name, each in found.items():
            if isinstance(each, str):
                assert outcomes[cell, name].error == each
            elif each["null"] is not None:
                assert len(nulls[name][each["null"]]) == outcomes[cell, name].m


def worth(outcome):
    """Independent sets behind a win rate: fewer than there are where fills are drawn."""
    if outcome.m_effective is not None:
        return outcome.m_effective
    return 1e12 if outcome.exact else outcome.m


def pairs(line, columns, outcomes):
    """Examples that both operators of a pair have numbers of: whether the browser's numbers lie on two sides."""
    cells = [(line.attribution, operator, line.direction, line.k, line.null) for operator in line.operators]
    for name in columns[cells[0]]:
        both = [columns[cell][name] for cell in cells]
        if not any(isinstance(each, str) for each in both):
            rates = [np.array([each["win_rate"]]) for each in both]
            sets = [np.array([worth(outcomes[cell, name])]) for cell in cells]
            yield name, bool(stats.sides_differ(*rates, *sets).item()), both


def test_disagreements_of_every_pair_of_operators_are_counted_alike(folder, columns, outcomes):
    n_operators = len(folder.manifest().config.operators)
    lines = folder.summary().agreement
    assert len(lines) == len(columns) // (n_operators + 1) * n_operators * (n_operators - 1) // 2
    for line in lines:
        found = list(pairs(line, columns, outcomes))
        differ = [name for name, sides, _ in found if sides]
        assert line.n == len(found)
        n_fills = folder.manifest().config.n_fills
        assert (line.disagree_rate is None) == ("infill" in line.operators and n_fills == 1)
        assert len(differ) == pytest.approx((line.disagree_rate or 0) * line.n, abs=1e-9)
        assert set(line.disagree or ()) <= set(differ) and len(line.disagree or ()) == min(len(differ), N_NAMED)
        if n_operators == 2:
            assert [name for name, _, both in found if both[0]["disagree"]] == differ
        assert all(both[0]["disagree"] == both[1]["disagree"] for _, _, both in found)


def test_an_example_is_marked_where_some_pair_of_operators_disagrees(folder, columns, outcomes):
    marked, named = {}, {}
    for line in folder.summary().agreement:
        head = tuple(getattr(line, name) for name in HEAD)
        for name, sides, both in pairs(line, columns, outcomes):
            marked.setdefault(head, set()).update([name] if both[0]["disagree"] else [])
            named.setdefault(head, set()).update([name] if sides else [])
    assert marked == named
    for cell, found in columns.items():
        head = (cell[0], *cell[2:])
        for name, each in found.items():
            assert isinstance(each, str) or bool(each["disagree"]) == (name in marked[head])


def test_operators_disagree_somewhere(folder):
    if folder.manifest().config.protocol == "released":  # others have too few sets and fills here
        assert any(line.disagree_rate for line in folder.summary().agreement)
