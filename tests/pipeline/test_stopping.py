"""Sequential tests: as many random sets as each example needs."""

import math
from collections import Counter

import numpy as np
import pytest
from tests.rows import each_row
from tests.small_runs import (
    DIRECTIONS,
    METHODS,
    OPERATORS,
    Interrupted,
    Plain,
    Waves,
    line_of,
    lines_of,
    picks,
    results_of,
    rows_of,
    run,
    texts,
)

from ice_eval.rationales import random_sets, units_of

# Texts of 11 to 14 words have at most 91 sets of two; those of 24 words have 10,626 sets of four.
TEXTS = [*texts(13), *texts(4, words=(24, 24), seed=1)]
NUMBERS = ("win_rate", "p_value", "p_lower", "m")


def order_of(plain, size, example_id):
    """The first 500 random sets of a text."""
    return [units_of(each) for each in random_sets(plain.n_units, size, 500, seed=0, example_id=example_id)]


def draw_by_draw(observed, stream, h=10):
    """Besag and Clifford's rule, one draw after the other."""
    seen, stops = [], {}
    hits = {"p_value": 0, "p_lower": 0}
    for value in stream:
        seen.append(value)
        hits["p_value"] += value >= observed
        hits["p_lower"] += value <= observed
        for tail, count in hits.items():
            if count == h:
                stops.setdefault(tail, len(seen))
        if len(stops) == 2:
            break
    rated = seen[:-1] if len(stops) == 2 else seen
    return {
        "win_rate": sum(value < observed for value in rated) / len(rated),
        "m": len(seen),
        **{tail: h / stops[tail] if tail in stops else (count + 1) / (len(seen) + 1) for tail, count in hits.items()},
    }


@pytest.fixture(scope="module")
def three():
    """All three attributions at once."""
    return run(TEXTS, attributions=METHODS, operators=OPERATORS, directions=DIRECTIONS, adaptive="examples", m=499)


def test_every_number_is_that_of_the_rule_applied_draw_by_draw(three):
    vectors = {row.example_id: row.attributions for part in (0, 1) for row in three.folder.inputs(part)}
    lines = {(line.example_id, line.attribution, line.operator, line.direction): line for line in lines_of(three)}
    taken = Counter()
    for index, text in enumerate(TEXTS):
        plain = Plain(text)
        size = plain.size(0.2)
        order = order_of(plain, size, str(index))
        for direction in DIRECTIONS:
            for operators in (["delete"], ["mask-unk"], OPERATORS):
                value = {units: plain.value(units, operators, direction) for units in order}
                for name in METHODS:
                    rationale = plain.top(vectors[str(index)][name], size)
                    stream = [value[units] for units in order if units != rationale][:499]
                    expected = draw_by_draw(plain.value(rationale, operators, direction), stream)
                    operator = operators[0] if len(operators) == 1 else "all"
                    line = lines[str(index), name, operator, direction]
                    assert {name: getattr(line, name) for name in NUMBERS} == pytest.approx(expected, abs=1e-12), (
                        index, name, operator, direction,
                    )  # fmt: skip
                    taken["all" if expected["m"] == len(stream) else "some"] += 1
    assert taken["some"] > 100 and taken["all"] > 20  # both endings were seen


def test_stored_sets_are_the_beginning_of_the_order(three):
    rows = rows_of(three, "random")
    for index in (0, 15):
        plain = Plain(TEXTS[index])
        order = order_of(plain, plain.size(0.2), str(index))
        for operator in OPERATORS:
            kept = [
                row.kept
                for row in rows
                if (row.key.example_id, row.key.operator, row.key.direction) == (str(index), operator, "sufficiency")
            ]
            assert kept == order[: len(kept)] != []


@pytest.mark.parametrize("name", ["strong", "hat"])
def test_a_stopping_time_is_an_attributions_own(three, name):
    alone = run(
        TEXTS, attributions={name: METHODS[name]}, operators=OPERATORS, directions=DIRECTIONS, adaptive="examples"
    )
    assert lines_of(alone) == lines_of(three, attribution=name)
    assert alone.folder.manifest().cost.rows < three.folder.manifest().cost.rows


def test_a_single_operator_has_a_stopping_time_of_its_own(three):
    alone = run(TEXTS, attributions=METHODS, operators=["mask-unk"], directions=["necessity"], adaptive="examples")
    assert lines_of(alone) == lines_of(three, operator="mask-unk", direction="necessity")


def test_an_attribution_that_is_added_scores_what_is_missing_and_changes_nothing(tmp_path):
    settings = {"operators": OPERATORS, "adaptive": "examples"}
    model = Waves()
    first = run(TEXTS, model=model, attributions={"hat": METHODS["hat"]}, out=tmp_path / "grown", **settings)
    asked, rows, lines = model.asked, rows_of(first), lines_of(first)
    both = {name: METHODS[name] for name in ("hat", "strong")}
    grown = run(TEXTS, model=model, attributions=both, out=tmp_path / "grown", **settings)
    assert lines_of(grown, attribution="hat") == lines
    assert Counter(row.key for row in rows_of(grown)).most_common(1)[0][1] == 1
    new = len(rows_of(grown)) - len(rows)
    assert 0 < model.asked - asked <= new
    whole = run(TEXTS, attributions=both, out=tmp_path / "whole", **settings)
    assert results_of(grown) == results_of(whole)
    assert {row.key for row in rows_of(grown)} == {row.key for row in rows_of(whole)}


def test_an_operator_that_is_added_changes_nothing_of_the_first(tmp_path):
    settings = {"attributions": {"strong": METHODS["strong"]}, "adaptive": "examples"}
    first = run(TEXTS, operators=["delete"], out=tmp_path / "grown", **settings)
    lines = lines_of(first)
    grown = run(TEXTS, operators=OPERATORS, out=tmp_path / "grown", **settings)
    assert lines_of(grown, operator="delete") == lines
    whole = run(TEXTS, operators=OPERATORS, out=tmp_path / "whole", **settings)
    assert results_of(grown) == results_of(whole)


def test_the_same_run_again_asks_nothing(tmp_path):
    model = Waves()
    first = run(TEXTS, model=model, adaptive="examples", out=tmp_path / "run")
    asked, results = model.asked, results_of(first)
    assert results_of(run(TEXTS, model=model, adaptive="examples", out=tmp_path / "run")) == results
    assert model.asked == asked


def test_a_part_that_is_lost_is_scored_again_to_the_same_numbers(tmp_path):
    found = run(TEXTS, attributions=METHODS, adaptive="examples", out=tmp_path / "run")
    results, rows = results_of(found), rows_of(found)
    for path in [*found.path.rglob("part-000001-*.parquet"), found.path / "summary.json"]:
        path.unlink()
    again = run(TEXTS, attributions=METHODS, adaptive="examples", out=tmp_path / "run")
    assert results_of(again) == results
    assert rows_of(again) == rows


@pytest.mark.parametrize("after", [10, 400])
def test_an_interrupted_run_ends_as_if_nothing_had_happened(tmp_path, after):
    settings = {"attributions": {"strong": METHODS["strong"]}, "adaptive": "examples", "token_budget": 512}
    whole = run(TEXTS, out=tmp_path / "whole", **settings)
    with pytest.raises(KeyboardInterrupt):
        run(TEXTS, model=Interrupted(after), out=tmp_path / "run", **settings)
    assert results_of(run(TEXTS, out=tmp_path / "run", **settings)) == results_of(whole)


def test_most_examples_need_far_fewer_sets_than_the_most():
    found = run(texts(48, words=(24, 24)), adaptive="examples")
    rows = found.folder.manifest().cost.rows_by_kind["random"]
    assert rows < 48 * 500 / 3
    used = [line.m for line in lines_of(found)]
    assert min(used) >= 20 and max(used) <= 499
    assert len(set(used)) > 20
    [line] = found.folder.summary().configurations
    assert "adaptive_examples" in line.flags


def test_matched_nulls_stop_by_themselves_too():
    found = run(texts(6, words=(24, 24)), attributions=METHODS, nulls=["size", "position"], adaptive="examples", k=0.25)
    for line in lines_of(found, null="position"):
        plain = Plain(texts(6, words=(24, 24))[int(line.example_id)])
        rows = [
            row
            for row in rows_of(found, f"random:position:{line.attribution}")
            if row.key.example_id == line.example_id
        ]
        observed, *stream = (
            plain.value(units, ["delete"], "sufficiency") for units in [line.rationale, *(row.kept for row in rows)]
        )
        expected = draw_by_draw(observed, stream)
        assert {name: getattr(line, name) for name in NUMBERS} == pytest.approx(expected, abs=1e-12)
        quarters = Counter(4 * unit // 24 for unit in line.rationale)
        n_others = math.prod(math.comb(6, taken) for taken in quarters.values()) - 1
        assert len(rows) == min(n_others, 499) or len(rows) < 1.5 * expected["m"] + 21
        assert expected["m"] == min(n_others, 499) or expected["win_rate"] not in (0, 1)


class Plague(Waves):
    """Answers NaN where a word stands alone in a kept set: some rows of a stream, and not the full text."""

    def __init__(self, word):
        super().__init__()
        self.bad = self.codec.tokenize(word).ids[0]

    def log_scores(self, batch, labels, *, prefix=0):
        scores = super().log_scores(batch, labels, prefix=prefix)
        scores[[row.ids[2] == self.bad and len(row.ids) < 20 for row in each_row(batch)]] = np.nan
        return scores


FEW = 0.05
"""Two words of forty, so that one word is in a twentieth of the sets."""


def first_with_the_first_word(text):
    """How many sets of the order come before one that keeps the first word of a text."""
    plain = Plain(text)
    order = order_of(plain, plain.size(FEW), "0")
    return next(place for place, units in enumerate(order) if 0 in units)


def standing_at(place, text):
    """An attribution whose rationale stands at a place among all sets: 0.5 is the middle, 1 the top."""
    plain = Plain(text)
    sets = sorted(plain.sets(plain.size(FEW)), key=lambda units: plain.value(units, ["delete"], "sufficiency"))
    chosen = [units for units in sets if 0 not in units]
    best = chosen[min(int(place * len(chosen)), len(chosen) - 1)]
    return lambda item: [float(unit in best) for unit in range(item.n_units)]


def test_a_score_that_is_not_finite_spoils_only_the_tests_that_look_at_it():
    text = next(text for text in [" ".join(f"w{97 * i + j}" for j in range(40)) for i in range(500)]
                if first_with_the_first_word(text) in range(30, 48))  # fmt: skip
    methods = {"middle": standing_at(0.5, text), "top": standing_at(1, text)}
    settings = {"adaptive": "examples", "k": FEW}
    sound = run([text], attributions=methods, **settings)
    spoiled = run([text], model=Plague(text.split()[0]), attributions=methods, **settings)
    [line] = lines_of(sound, attribution="middle")
    assert 20 <= line.m <= first_with_the_first_word(text) < lines_of(sound, attribution="top")[0].m
    assert lines_of(spoiled, attribution="middle") == [line]
    assert lines_of(spoiled, attribution="top")[0].error == "a score is not finite"
    alone = run([text], model=Plague(text.split()[0]), attributions={"middle": methods["middle"]}, **settings)
    assert lines_of(alone) == [line]


def calibrated(n, seed=0):
    """Random rationales of `n` texts of 18 words under a model that ties on nothing: all that chance can do."""
    return run(texts(n, words=(18, 18), vocabulary=3000, seed=seed), adaptive="examples", n=n)


def assert_calibrated(found, n):
    lines = lines_of(found)
    assert len(lines) == n
    for tail in ("p_value", "p_lower"):
        p_values = np.array([getattr(line, tail) for line in lines])
        for alpha in (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5):
            share, error = np.mean(p_values <= alpha), math.sqrt(alpha * (1 - alpha) / n)
            assert share <= alpha + 4 * error, (tail, alpha, share)
        # Not by being blunt: one in twenty is reached nearly as often as allowed.
        assert np.mean(p_values <= 0.05) > 0.05 - 4 * math.sqrt(0.05 * 0.95 / n)
    rates = np.array([line.win_rate for line in lines])
    assert abs(rates.mean() - 0.5) < 4 * rates.std() / math.sqrt(n)
    summary = line_of(found)
    assert summary.p_value > 1e-4
    assert summary.nonnull_share < 4 * 2 * math.sqrt(0.25 / n)


def test_random_explanations_are_significant_no_more_often_than_allowed():
    assert_calibrated(calibrated(500), 500)


@pytest.mark.slow
def test_random_explanations_are_significant_no_more_often_than_allowed_in_a_large_sample():
    assert_calibrated(calibrated(6000, seed=1), 6000)


def test_stopping_early_pulls_no_win_rate_towards_one_half():
    found = texts(64, words=(18, 18), vocabulary=3000, seed=2)
    settings = {"attributions": {"strong": picks("strong", towards=1)}, "operators": ["mask-unk"], "n": 64}
    early, whole = run(found, adaptive="examples", **settings), run(found, m=99, **settings)
    rates, full = (np.array([line.win_rate for line in lines_of(each)]) for each in (early, whole))
    assert full.mean() > 0.65  # far enough from one half for a pull to show
    gaps = rates - full
    assert abs(gaps.mean()) < 4 * gaps.std() / math.sqrt(64)
