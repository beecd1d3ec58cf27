"""Win rates of attributions of a chain, in tokens and in steps."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from tests.subjects.chain.plain_scores import PROBLEM, answer_ids, one_by_one

from ice_eval.subjects.chain import NumberAnswer, Problem, local, reasoning_steps, split_steps
from ice_eval.subjects.chain.local import AnswerScorer, encode_chain

STEPS = ("3 films.", "And 4 more.", "They are good.", "The end: 3 + 4", "a film")


@pytest.fixture
def chain(chatty):
    return encode_chain(chatty, PROBLEM, STEPS, "7 films")


@pytest.fixture
def scorer(chatty):
    return AnswerScorer(chatty)


def answer_tests(*args, **options):
    return [SimpleNamespace(**line) for line in local.answer_tests(*args, **options)]


def kept_score(model, item, kept):
    """The slow way: delete by hand, one plain pass."""
    stays = [unit < 0 or unit in kept for unit in item.unit_of.tolist()]
    return one_by_one(model, item.ids[stays], "7 films")


def test_every_unit_attribution_direction_and_size_has_a_record(scorer, chain):
    tests = answer_tests(scorer, chain, k=(0.2, 0.3, 0.5), m=10)
    keys = [(test.unit, test.attribution, test.direction, test.k) for test in tests]
    assert keys == list(
        itertools.product(("token", "step"), ("attention", "gradient"), ("sufficiency", "necessity"), (0.2, 0.3, 0.5))
    )
    assert {(test.n_units, test.size) for test in tests if test.unit == "step"} == {(5, 1), (5, 2)}
    assert {test.n_units for test in tests if test.unit == "token"} == {chain.tokens.n_units}
    first, second = ([test for test in tests if (test.unit, test.k) == ("step", k)] for k in (0.2, 0.3))
    for one, other in zip(first, second, strict=True):
        assert {**vars(one), "k": 0} == {**vars(other), "k": 0}  # both are one step


@pytest.mark.parametrize("direction", ["sufficiency", "necessity"])
def test_steps_are_compared_with_all_other_sets_scored_one_by_one(chatty, scorer, chain, direction):
    [test] = answer_tests(scorer, chain, attributions=["gradient"], k=[0.4], directions=[direction], units=["step"])
    every = set(range(5))
    scores = {
        units: kept_score(chatty, chain.steps, units if direction == "sufficiency" else every - {*units})
        for units in itertools.combinations(range(5), 2)
    }
    own = scores[test.rationale]
    worse = sum(score < own for score in scores.values())
    wins, n_others = (worse if direction == "sufficiency" else 9 - worse), 9
    assert (test.exact, test.m, test.size, test.n_units) == (True, 9, 2, 5)
    assert (test.win_rate, test.p_value) == pytest.approx((wins / n_others, (10 - wins) / 10))
    assert test.p_lower == pytest.approx((1 + wins) / 10)
    assert test.score == pytest.approx(own, abs=2e-5)
    others = [score for units, score in scores.items() if units != test.rationale]
    distance = (own - np.mean(others)) / np.std(others)
    assert test.effect_size == pytest.approx(distance if direction == "sufficiency" else -distance, rel=1e-3)
    assert test.score_full == pytest.approx(kept_score(chatty, chain.steps, every), abs=2e-5)
    assert test.score_empty == pytest.approx(kept_score(chatty, chain.steps, set()), abs=2e-5)
    top = np.argsort(scorer.attributions(chain, ["gradient"])["step"]["gradient"])[-2:]
    assert test.rationale == tuple(sorted(top))


def test_the_unit_whose_removal_hurts_most_is_found_necessary(scorer, chain):
    for test in answer_tests(scorer, chain, attributions=["occlusion"], directions=["necessity"], k=[0.01]):
        assert (test.size, test.exact, test.win_rate) == (1, True, 1.0)
        assert test.p_value == pytest.approx(1 / test.n_units)


def test_neither_other_attributions_nor_sizes_change_a_test(scorer, chain):
    together = answer_tests(scorer, chain, attributions=["gradient", "random", "attention"], k=(0.1, 0.2), m=10)
    alone = answer_tests(scorer, chain, attributions=["attention"], k=(0.2,), m=10)
    same = [test for test in together if (test.attribution, test.k) == ("attention", 0.2)]
    for one, other in zip(same, alone, strict=True):
        assert one.rationale == other.rationale
        assert (one.win_rate, one.p_value) == (other.win_rate, other.p_value)
        assert one.score == pytest.approx(other.score, abs=2e-5)


def test_another_seed_draws_other_sets(scorer, chain):
    first, again, other = (
        answer_tests(scorer, chain, units=["token"], attributions=["attention"], m=10, seed=seed) for seed in (0, 0, 1)
    )
    assert first == again
    assert [test.effect_size for test in first] != [test.effect_size for test in other]
    assert not any(test.exact for test in first)


def test_a_single_step_has_nothing_to_compare_but_its_tokens_do(chatty, scorer):
    chain = encode_chain(chatty, PROBLEM, STEPS[:1], "7")
    assert {test.unit for test in answer_tests(scorer, chain, m=5)} == {"token"}
    assert answer_tests(scorer, chain, units=["step"]) == []


@pytest.mark.smollm2
@pytest.mark.slow
def test_a_real_model_needs_its_chain(smollm2):
    question = (
        "A baker fills 6 trays with 8 rolls each. She sells 29 rolls in the morning and bakes 12 more at noon. "
        "How many rolls has she then?"
    )
    problem = Problem("bakery", question, (), None, NumberAnswer())
    response = "6 * 8 = 48 rolls were baked.\n48 - 29 = 19 rolls are left.\n19 + 12 = 31 rolls at noon.\nAnswer: 31"
    found = split_steps(response)
    steps = [step.text for step in reasoning_steps(found, NumberAnswer().read(response), NumberAnswer(), policy="keep")]
    chain, scorer = encode_chain(smollm2, problem, steps, "31"), AnswerScorer(smollm2)
    tests = answer_tests(scorer, chain, k=(0.2,), m=20)
    assert (len(tests), scorer.notes) == (8, [])
    assert all(0 <= test.win_rate <= 1 for test in tests)
    full = one_by_one(smollm2, chain.tokens.ids, "31")
    assert tests[0].score_full == pytest.approx(full, abs=1e-3)
    assert len(answer_ids(smollm2, "31")) == 3  # the space and each digit
    assert tests[0].score_full > tests[0].score_empty + 1
    last = scorer.scores(chain, [("step", np.array([[False, False, True], [True, True, False]]))])
    assert last[0] > last[1]  # the step that states the answer does more than those before it
