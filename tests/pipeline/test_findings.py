"""What whole runs find: the right explanation wins, a random one takes every rank, labels and fields are as asked."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from scipy.stats import chisquare
from tests.rows import each_row
from tests.small_runs import line_of, lines_of, rows_of
from tests.toy_runs import NEUTRAL, planted, reviews, run, task_of

import ice_eval
from ice_eval.models.toy import WEIGHTS, Toy


class Hashed(Toy):
    """Every word has a weight of its own, so that no two sets of words score the same."""

    def __init__(self):
        super().__init__()
        self.name = "hashed"

    def log_scores(self, batch, labels, *, prefix=0):
        log_odds = np.array([np.sin(row.ids * 0.7371).sum() for row in each_row(batch)])
        return np.stack([-np.logaddexp(0, log_odds), -np.logaddexp(0, -log_odds)], axis=1)


def test_planted_explanations_always_win_and_their_opposites_never(tmp_path):
    # Two words for each side and neutral ones: one set of two supports most, and one least.
    rng = np.random.default_rng(2)
    good, bad = ([w for w in WEIGHTS if sign * WEIGHTS[w] > 0] for sign in (1, -1))
    texts = [
        " ".join(rng.permutation(np.concatenate([rng.choice(words, size, replace=False) for words, size in parts])))
        for parts in [((good, 2), (bad, 2), (NEUTRAL, 8 + index % 3)) for index in range(60)]
    ]
    # The lexicon keeps every decisive word out of the fills, so that infill and deletion have the same right answer.
    task = task_of([{"text": text} for text in texts], lexicon=frozenset(WEIGHTS))
    methods = {"planted": planted, "opposite": lambda item: -planted(item)}
    found = run(task=task, attributions=methods, m=20, out=tmp_path / "run")
    for operator in ("delete", "infill", "all"):
        best, worst = (line_of(found, attribution=name, operator=operator) for name in methods)
        assert (best.n, best.win_rate, best.tie_rate, str(best.verdict)) == (60, 1.0, 0.0, "faithful")
        assert (worst.n, worst.win_rate, worst.tie_rate, str(worst.verdict)) == (60, 0.0, 0.0, "anti-faithful")
        assert best.p_value == worst.p_value == 1 / 10_000


@pytest.fixture(scope="module")
def controls(tmp_path_factory):
    """Random explanations of 1,000 texts of 12 to 15 words, under a model that ties on none of them."""
    rng = np.random.default_rng(7)
    vocabulary = np.array([f"w{number}" for number in range(500)])
    texts = [" ".join(rng.choice(vocabulary, 12 + index % 4, replace=False)) for index in range(1000)]
    return ice_eval.evaluate(
        Hashed(),
        task_of([{"text": text} for text in texts]),
        attributions=["random"],
        n=1000,
        m=9,
        n_fills=1,  # ranks are exact under each fill, not on the average of several
        out=tmp_path_factory.mktemp("controls") / "run",
    )


@pytest.mark.parametrize("operator", ["delete", "infill"])
def test_random_explanations_take_every_rank_equally_often(controls, operator):
    lines = lines_of(controls, operator=operator)
    ranks = Counter(round(line.p_value * 10) for line in lines)
    assert sum(ranks.values()) == 1000 and set(ranks) == set(range(1, 11))
    assert chisquare([ranks[rank] for rank in range(1, 11)]).pvalue > 0.001
    summary = line_of(controls, operator=operator)
    assert abs(summary.win_rate - 0.5) < 4 * 0.32 / 1000**0.5
    assert summary.p_value > 0.001
    assert summary.tie_rate < 0.001
    assert not summary.excludes_chance


def test_random_explanations_of_fills_of_their_own_win_half_too(tmp_path):
    vocabulary = np.array([f"w{number}" for number in range(300)])
    rng = np.random.default_rng(8)
    records = [{"text": " ".join(rng.choice(vocabulary, 12, replace=False))} for _ in range(400)]
    found = run(
        records,
        model=Hashed(),
        attributions=["random"],
        operators=["infill"],
        fills="own",
        n_fills=1,
        m=9,
        out=tmp_path / "run",
    )
    ranks = Counter(round(line.p_value * 10) for line in lines_of(found))
    assert chisquare([ranks[rank] for rank in range(1, 11)]).pvalue > 0.001
    assert line_of(found).p_value > 0.001


def fills_of(found):
    """(example, unit) -> the tokens that stand there in the rows that do not keep the unit."""
    start = 2  # the template begins with "Review" and ":"
    tokens = defaultdict(set)
    for row in rows_of(found, operator="infill"):
        for unit in range(len(row.input_ids) - 4):  # and ends with "Sentiment" and ":"
            if unit not in row.kept:
                tokens[row.key.example_id, unit].add(row.input_ids[start + unit])
    return tokens


def test_fills_are_shared_by_all_rows_or_drawn_for_each(tmp_path):
    shared = run(reviews(6), operators=["infill"], n_fills=1, out=tmp_path / "shared")
    own = run(reviews(6), operators=["infill"], n_fills=1, fills="own", out=tmp_path / "own")
    assert {len(tokens) for tokens in fills_of(shared).values()} == {1}
    assert np.mean([len(tokens) for tokens in fills_of(own).values()]) > 3
    assert [row.kept for row in rows_of(shared)] == [row.kept for row in rows_of(own)]


def test_several_fills_are_scored(tmp_path):
    found = run(reviews(6), n_fills=2, operators=["delete", "infill"], out=tmp_path / "run")
    draws = Counter((row.key.operator, row.key.draw) for row in rows_of(found, "random"))
    assert draws == {("delete", 0): 54, ("infill", 0): 30, ("infill", 1): 24}
    first, second = ([r.input_ids for r in rows_of(found, "random", operator="infill", draw=d)] for d in (0, 1))
    assert first != second
    for line in lines_of(found, attribution="attention", operator="infill"):
        rows = rows_of(found, "rationale:attention", operator="infill", example_id=line.example_id)
        probabilities = [np.exp(row.scores[line.target]) for row in rows]
        assert len(probabilities) == 2
        assert line.score == pytest.approx(np.mean(probabilities), rel=1e-9)


def test_the_first_fill_is_the_same_however_many_there_are(tmp_path):
    one = run(reviews(6), operators=["infill"], n_fills=1, out=tmp_path / "one")
    two = run(reviews(6), operators=["infill"], n_fills=2, out=tmp_path / "two")
    first = {(r.key.example_id, r.key.kind, r.key.attribution, r.key.set): r.input_ids for r in rows_of(one, draw=0)}
    same = rows_of(two, operator="infill", draw=0)
    assert len(same) > 30
    assert all(first[r.key.example_id, r.key.kind, r.key.attribution, r.key.set] == r.input_ids for r in same)


def test_the_gold_label_can_be_explained(tmp_path):
    records = [{"text": "awful dull film with a fun cast", "label": 1}, {"text": "a witty good plot", "label": 0}]
    predicted = run(records, out=tmp_path / "predicted")
    gold = run([*records, {"text": "no label here at all"}], target="gold", out=tmp_path / "gold")
    assert [line.target for line in lines_of(predicted, attribution="attention", operator="delete")] == [0, 1]
    lines = lines_of(gold, attribution="attention", operator="delete")
    assert [line.target for line in lines] == [1, 0, None]
    assert lines[2].error == "the example has no gold label to explain"
    assert line_of(gold, attribution="attention", operator="delete").accuracy == 0.0


def test_three_labels_and_two_fields(tmp_path):
    records = [
        {"premise": "a great film", "hypothesis": "the film is good fun", "label": "yes"},
        {"premise": "a boring film", "hypothesis": "the film is awful", "label": 2},
        {"premise": "two people", "hypothesis": "worst of all", "label": None},
    ]
    task = task_of(
        records,
        prompt="{premise} So: {hypothesis}?",
        label_words={"no": " no", "yes": " yes", "maybe": " maybe"},
        explain=("hypothesis",),
    )
    found = run(task=task, operators=["delete"], out=tmp_path / "run")
    lines = lines_of(found, attribution="attention")
    assert [line.gold for line in lines] == [1, 2, None]
    assert [line.n_units for line in lines] == [5, 4, 3]
    assert line_of(found, attribution="attention").accuracy == 0.5
