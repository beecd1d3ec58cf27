from dataclasses import replace

import numpy as np
import pytest
from tests.small_runs import picks, run, texts

from ice_eval.analysis import GridRun, grid_results
from ice_eval.analysis.across import guidelines, languages, operators, prompts, sizes, tuning, worse_than_random
from ice_eval.analysis.measures import Missing
from ice_eval.results.summary import adjusted_jointly

TEXTS = texts(24)
OPERATORS = ["mask-unk", "mask-pad"]


@pytest.fixture(scope="module")
def folders():
    """The same texts twice: once one explanation is good and one bad, once two are equally good."""
    given = {"random": None, "good": picks("good", towards=20), "bad": picks("bad", towards=-20)}
    first = run(TEXTS, attributions=given, operators=OPERATORS, m=20, k=[0.2, 0.4])
    alike = {"good": picks("good", towards=20), "alike": picks("good", towards=20)}
    second = run(TEXTS, attributions=alike, operators=OPERATORS, m=20, k=[0.2], seed=1)
    return first, second


def grid_of(*runs):
    return grid_results(runs, adjusted_jointly([each.folder.summary() for each in runs]))


def run_of(found, **changes):
    given = {"name": "first", "folder": found.folder, "model": "waves", "task": "waves", "prompt": "standard"}
    return GridRun(**given | changes)


@pytest.fixture(scope="module")
def grid(folders):
    """Two prompts of one task."""
    return grid_of(run_of(folders[0]), run_of(folders[1], name="second", prompt="other"))


def lines_of(found, title):
    [part] = [part for part in found.parts if part.title == title]
    return part.lines


def test_an_attribution_is_advised_where_the_intervals_settle_it(grid):
    lines = lines_of(guidelines(grid), "Guidelines")
    assert [(line["prompt"], line["k"], line["advice"]) for line in lines] == [
        ("standard", 0.2, "good"),
        ("standard", 0.4, "good"),
        ("other", 0.2, "not settled"),
    ]
    assert lines[2]["reason"].startswith("good lies above 55 % under every operator, and its lead over alike")


def test_nothing_is_advised_where_no_interval_lies_above_55_percent():
    weak = run(texts(12), attributions={"weak": picks("weak")}, operators=["delete"], m=10)
    [line] = lines_of(guidelines(grid_of(run_of(weak))), "Guidelines")
    assert (line["advice"], line["reason"]) == (
        "not settled",
        "no attribution's interval lies above 55 % under every operator",
    )


def test_an_attribution_that_was_compared_with_nothing_is_not_advised():
    good = run(TEXTS, attributions={"good": picks("good", towards=20)}, operators=OPERATORS, m=20)
    [line] = lines_of(guidelines(grid_of(run_of(good))), "Guidelines")
    assert (line["advice"], line["reason"]) == ("not settled", "there is no other attribution to compare with")


def test_rationales_of_their_own_size_compete_with_those_of_every_k(folders):
    given = grid_of(run_of(folders[0]))
    lines = [changed(each, k=None) if each.line.attribution == "good" else each for each in given.configurations]
    own = [each for each in lines if each.line.k is None][: len(OPERATORS)]
    rest = [each for each in lines if each.line.k is not None]
    found = lines_of(guidelines(replace(given, configurations=[*own, *rest])), "Guidelines")
    assert [line["k"] for line in found] == [0.2, 0.4]


def test_an_attribution_without_a_win_rate_under_an_operator_is_not_advised(folders):
    def without(each):
        gone = (each.line.attribution, each.line.operator) == ("good", OPERATORS[1])
        return changed(each, win_rate=None) if gone else each

    given = grid_of(run_of(folders[0]))
    found = guidelines(replace(given, configurations=[without(each) for each in given.configurations]))
    assert {line["advice"] for line in lines_of(found, "Guidelines")} == {"not settled"}


def test_controls_alone_get_no_advice():
    control = run(texts(6), attributions=["random"], m=5)
    assert isinstance(guidelines(grid_of(run_of(control))), Missing)


def test_explanations_that_random_sets_beat_are_listed_the_worst_first(grid):
    lines = lines_of(worse_than_random(grid), "Anti-faithful")
    assert {line["attribution"] for line in lines} == {"bad"}
    assert len(lines) == len(OPERATORS) * 2
    rates = [line["win_rate"] for line in lines]
    assert rates == sorted(rates)
    assert all(line["win_rate_ci"][1] < 0.5 for line in lines)


def test_explanations_whose_p_value_does_not_hold_over_the_grid_are_counted_only(grid):
    weaker = replace(grid, configurations=[changed(each, p_adjusted=0.06) for each in grid.configurations])
    found = worse_than_random(weaker)
    assert found.parts == ()
    assert found.notes[0].startswith(
        f"{len([x for x in grid.configurations if below(x)])} further win rates below 50 %"
    )


def below(each):
    return each.line.operator != "all" and each.line.win_rate < 0.5


def changed(each, **fields):
    """A line of a grid with other values."""
    return replace(each, line=replace(each.line, **fields))


def test_operators_are_compared_over_all_configurations(grid):
    by_name = {line["attribution"]: line for line in lines_of(operators(grid), "Operator dependence")}
    rates = {
        (each.run.name, each.line.attribution, each.line.k, each.line.operator): each.line.win_rate
        for each in grid.configurations
        if each.line.operator != "all"
    }
    for name, line in by_name.items():
        gaps = [
            rate - rates[*place, "mask-pad"]
            for (*place, operator), rate in rates.items()
            if operator == "mask-unk" and place[1] == name
        ]
        assert line["n_configurations"] == len(gaps)
        assert line["mean_gap"] == pytest.approx(np.mean(gaps))
        assert line["median_gap"] == pytest.approx(np.median(gaps))
        assert abs(line["widest_gap"]) == pytest.approx(max(map(abs, gaps)))
        assert line["first_exceeds"] == np.mean([gap > 0 for gap in gaps])


def test_a_crossing_is_sure_where_the_run_says_so(grid):
    def moved(each):
        """As if masks put all of one attribution on the other side of 55 %."""
        moves = (each.line.attribution, each.line.operator) == ("good", "mask-pad")
        return changed(each, win_rate=0.3) if moves else each

    other = replace(
        grid,
        configurations=tuple(map(moved, grid.configurations)),
        agreement=tuple(
            changed(each, crosses_threshold="yes" if each.line.k == 0.2 else "unclear") for each in grid.agreement
        ),
    )
    found = operators(other)
    [line] = [line for line in lines_of(found, "Operator dependence") if line["attribution"] == "good"]
    assert (line["n_crossings"], line["n_confirmed"]) == (3, 2)
    crossings = [line for line in lines_of(found, "Configurations that cross 55 %") if line["attribution"] == "good"]
    assert sorted(line["crossing"] for line in crossings) == ["unclear", "yes", "yes"]


def test_operators_may_stand_in_another_order_in_some_runs(grid):
    turned = tuple(changed(each, operators=each.line.operators[::-1]) for each in grid.agreement)
    both = (grid, replace(grid, agreement=turned))
    ours, theirs = (lines_of(operators(each), "Operator dependence") for each in both)
    assert ours == theirs


def test_prompts_stand_beside_accuracy_and_confidence(grid, folders):
    found = prompts(grid)
    lines = lines_of(found, "Prompts")
    assert {(line["prompt"], line["operator"]) for line in lines} == {
        (prompt, operator) for prompt in ("standard", "other") for operator in OPERATORS
    }
    scores = {line.example_id: line.score_full for line in folders[0].folder.examples()}
    assert lines[0]["confidence"] == pytest.approx(np.mean(list(scores.values())))
    assert lines[0]["accuracy"] is None
    for line in lines_of(found, "Sensitivity to the prompt"):
        assert line["attribution"] == "good"
        assert line["width"] == pytest.approx(line["highest"] - line["lowest"])


def test_the_correlation_of_confidence_and_win_rate_needs_four_prompts(folders):
    runs = [run_of(folders[i % 2], name=str(i), prompt=f"p{i}") for i in range(4)]
    for place, each in enumerate(runs):
        each.__dict__["confidence"] = 0.5 + 0.1 * (place % 2) + 0.01 * place
    grid = grid_of(*runs)
    lines = lines_of(prompts(grid), "Confidence and win rate, over prompts")
    [line] = [line for line in lines if (line["operator"], line["k"]) == ("mask-unk", 0.2)]
    rates = [
        each.line.win_rate
        for each in grid.configurations
        if (each.line.attribution, each.line.operator, each.line.k) == ("good", "mask-unk", 0.2)
    ]
    assert line["n"] == 4
    assert line["r"] == pytest.approx(np.corrcoef([each.confidence for each in runs], rates)[0, 1])


def test_sizes_show_the_range_over_k(grid):
    lines = lines_of(sizes(grid), "Sensitivity to k")
    assert {line["prompt"] for line in lines} == {"standard"}
    assert [line["width"] for line in lines] == sorted((line["width"] for line in lines), reverse=True)
    assert all({line["lowest_k"], line["highest_k"]} <= {0.2, 0.4} for line in lines)


def test_a_tuned_model_is_compared_with_its_base_over_the_same_examples(folders):
    base = run_of(folders[0], model="base", tuning="base")
    tuned = run_of(folders[1], name="second", model="tuned", base="base", tuning="instruct")
    found = tuning(grid_of(base, tuned))
    lines = lines_of(found, "Tuned models and their base")
    assert {(line["attribution"], line["operator"]) for line in lines} == {("good", name) for name in OPERATORS}
    for line in lines:
        assert line["paired"]
        assert line["difference"] == pytest.approx(line["win_rate_tuned"] - line["win_rate_base"])
        assert line["p_adjusted"] >= line["p_value"]
    means = lines_of(found, "Tuned and base models")
    assert [(line["n_base"], line["n_tuned"]) for line in means] == [(1, 1)] * 2
    assert means[0]["difference"] == pytest.approx(lines[0]["difference"])


def test_languages_are_set_against_english(folders):
    english = run_of(folders[0])
    short = run(["w1 w2 w3 w4", "w5 w6 w7 w8"], operators=["delete"], m=3)
    found = languages(grid_of(english, run_of(short, name="second", task="kurz", language="de")))
    lines = lines_of(found, "Languages")
    # The toy's tokens are words; "w1 w2 w3 w4" has eleven characters.
    per_character = [sum(len(text.split()) for text in TEXTS) / sum(map(len, TEXTS)), 4 / 11]
    assert lines[0]["tokens_per_word"] == 1
    assert lines[0]["tokens_per_character"] == pytest.approx(per_character[0])
    assert lines[-1]["expansion"] == pytest.approx(per_character[1] / per_character[0])
    assert lines[0]["expansion"] == 1
    assert lines[-1]["tokens_median"] == 4


def test_texts_are_long_from_a_hundred_tokens_on(folders):
    long = run(texts(2, words=(100, 101)), operators=["delete"], m=3)
    assert (run_of(long).texts.length, run_of(folders[0]).texts.length) == ("long", "short")


@pytest.mark.parametrize("question", [operators, prompts, sizes, tuning, languages])
def test_a_single_run_has_nothing_to_compare(question):
    single = run(texts(6), operators=["delete"], m=5)
    assert isinstance(question(grid_of(run_of(single))), Missing)
