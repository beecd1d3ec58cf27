"""What changes no number of a run: the budget, other attributions, the operator, how many examples follow."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from tests.small_runs import line_of, lines_of, results_of, rows_of
from tests.toy_runs import reviews, run


def test_the_token_budget_changes_no_set_no_fill_and_no_verdict(tmp_path):
    small = run(token_budget=1, out=tmp_path / "small")
    large = run(token_budget=10_000, out=tmp_path / "large")
    assert (small.folder.manifest().token_budget, large.folder.manifest().token_budget) == (1, 10_000)
    ours, theirs = rows_of(small), rows_of(large)
    assert [(r.key, r.kept, r.input_ids, r.text) for r in ours] == [
        (r.key, r.kept, r.input_ids, r.text) for r in theirs
    ]
    np.testing.assert_allclose([r.scores for r in ours], [r.scores for r in theirs], rtol=0, atol=1e-5)
    for one, other in zip(*(found.folder.summary().configurations for found in (small, large)), strict=True):
        assert one.verdict == other.verdict
        assert one.win_rate == pytest.approx(other.win_rate, abs=1e-9)


def test_other_attributions_change_no_random_row_and_no_number(tmp_path):
    alone = run(attributions=["attention"], out=tmp_path / "one")
    among = run(attributions=["random", "attention", "gradient"], out=tmp_path / "three")
    assert rows_of(alone, "random") == rows_of(among, "random")
    assert lines_of(alone, attribution="attention") == lines_of(among, attribution="attention")
    for operator in ("delete", "infill", "all"):
        where = {"attribution": "attention", "operator": operator}
        # Adjusted p-values and simultaneous intervals are about the family of all configurations; nothing else is.
        of_all = dict.fromkeys(("p_adjusted", "win_rate_ci_simultaneous", "verdict_simultaneous"))
        assert replace(line_of(alone, **where), **of_all) == replace(line_of(among, **where), **of_all)
        low, high = line_of(among, **where).win_rate_ci_simultaneous
        assert low <= line_of(alone, **where).win_rate_ci_simultaneous.low
        assert high >= line_of(alone, **where).win_rate_ci_simultaneous.high


def test_attributions_with_the_same_numbers_have_the_same_p_values(tmp_path):
    def last(item):
        return range(item.n_units)

    found = run(attributions={"one": last, "other": last, "attention": None}, out=tmp_path / "twins")
    for operator in ("delete", "infill", "all"):
        one, other = (line_of(found, attribution=name, operator=operator) for name in ("one", "other"))
        assert (one.p_value, one.p_adjusted) == (other.p_value, other.p_adjusted)


def test_random_sets_are_the_same_under_every_operator(finished):
    deleted, filled = (
        {(r.key.example_id, r.key.set): r.kept for r in rows_of(finished, "random", operator=operator)}
        for operator in ("delete", "infill")
    )
    assert deleted == filled and len(deleted) == 24 * 9


def test_every_example_has_random_sets_of_its_own(tmp_path):
    found = run([{**record, "text": reviews(1)[0]["text"]} for record in reviews(6)], out=tmp_path / "run")
    sets = {
        tuple(row.kept for row in rows_of(found, "random", operator="delete", example_id=str(index)))
        for index in range(6)
    }
    assert len(sets) == 6


def test_ties_of_an_attribution_are_broken_by_chance_and_not_by_position(tmp_path):
    flat = {"flat": lambda item: np.zeros(item.n_units)}
    first, again = (run(attributions=flat, out=tmp_path / name) for name in "ab")
    chosen = [line.rationale for line in lines_of(first, operator="delete")]
    assert len({tuple(units) for units in chosen}) > 12
    assert np.mean([unit for units in chosen for unit in units]) == pytest.approx(6, abs=1.5)
    assert chosen == [line.rationale for line in lines_of(again, operator="delete")]


def test_shares_of_equal_size_share_their_rows(tmp_path):
    # 12 to 14 units: 0.2 and 0.21 both give two, 0.35 gives four.
    found = run(k=[0.2, 0.21, 0.35], out=tmp_path / "run")
    per_example = Counter((r.key.example_id, r.key.size) for r in rows_of(found, "random", operator="delete"))
    assert {size for _, size in per_example} == {2, 4}
    assert set(per_example.values()) == {9}
    one, other = ([replace(line, k=None) for line in lines_of(found, k=k)] for k in (0.2, 0.21))
    assert one == other
    assert line_of(found, k=0.35, attribution="attention", operator="delete").n == 24


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_sets(tmp_path):
    first, again = run(seed=3, out=tmp_path / "a"), run(seed=3, out=tmp_path / "b")
    other = run(seed=4, out=tmp_path / "c")
    assert results_of(first) == results_of(again)
    assert rows_of(first) == rows_of(again)
    assert [r.kept for r in rows_of(first, "random")] != [r.kept for r in rows_of(other, "random")]


def test_an_example_does_not_depend_on_how_many_follow(tmp_path):
    few, many = run(n=5, out=tmp_path / "few"), run(n=24, out=tmp_path / "many")
    first = {str(index) for index in range(5)}
    assert rows_of(few) == [row for row in rows_of(many) if row.key.example_id in first]
    assert lines_of(few) == [line for line in lines_of(many) if line.example_id in first]
