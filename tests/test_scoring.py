import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row, join

from ice_eval.errors import OutOfMemoryError
from ice_eval.models import Labels, Model, Pending
from ice_eval.records import Inputs
from ice_eval.scoring import Scorer, _cuts, _order

LABELS = Labels(("no", "yes"), ((0,), (1,)))


class Recorder(Model):
    """Answers with the sum of a row's ids and segments, and remembers what it was asked; `fits` tokens at most."""

    name = "recorder"

    pass_tokens = 0

    def __init__(self, fits=10**9):
        self.batches = []
        self.prefixes = set()
        self.fits = fits

    codec = fingerprint = None

    def labels(self, task, *, scoring=None):
        return LABELS

    def log_scores(self, batch, labels, *, prefix=0):
        if len(batch) * (batch.lengths.max() - prefix) > self.fits:
            raise OutOfMemoryError("too large")
        self.batches.append([row.ids.tolist() for row in each_row(batch)])
        self.prefixes.add(prefix)
        return np.array(expected(each_row(batch)))


def row(*ids, segments=None):
    return Inputs.one(np.array(ids, dtype=np.int64), np.array(segments or [0] * len(ids), dtype=np.int64))


def expected(rows):
    return [[-float(r.ids.sum()), -float(r.segments.sum())] for r in rows]


ROWS = [row(1), row(2, 3, 4), row(5, 6), row(7, 8, 9, 10), row(11, 12), row(13)]


def test_scores_come_back_in_the_order_of_the_rows():
    scores = Scorer(Recorder(), LABELS, budget=5).score(join(ROWS))
    assert scores.tolist() == expected(ROWS)


def test_equal_rows_get_one_forward():
    model = Recorder()
    scorer = Scorer(model, LABELS, budget=100)
    rows = [row(1, 2), row(3), row(1, 2), row(1, 2)]
    assert scorer.score(join(rows)).tolist() == expected(rows)
    assert sorted(sum(model.batches, [])) == [[1, 2], [3]]
    assert (scorer.counts.rows, scorer.counts.forwards, scorer.counts.tokens) == (4, 2, 3)


def test_rows_whose_scores_are_known_get_no_forward_and_count_as_progress():
    model, seen = Recorder(), []
    scorer, rows = Scorer(model, LABELS, budget=2), join([row(1, 2), row(3), row(4), row(3), row(1, 2)])
    known = {row(3).keys[0]: np.array([0.5, np.nan]), row(9).keys[0]: np.zeros(2)}
    submitted = scorer.submit(rows, known=known, progress=seen.append)
    for _ in range(2):  # what has been collected stays
        scores = submitted.collect()
        assert np.isnan(scores[[1, 3], 1]).all() and scores[[1, 3], 0].tolist() == [0.5, 0.5]
        assert scores[[0, 2, 4]].tolist() == expected([row(1, 2), row(4), row(1, 2)])
    assert sorted(sum(model.batches, [])) == [[1, 2], [4]]
    assert seen[0] == 2 and sum(seen) == 5


def test_rows_with_equal_ids_and_other_segments_are_not_equal():
    model = Recorder()
    rows = [row(1, 2, segments=[0, 1]), row(1, 2, segments=[1, 1])]
    assert Scorer(model, LABELS, budget=100).score(join(rows)).tolist() == expected(rows)
    assert sum(map(len, model.batches)) == 2


def test_longest_rows_go_first_and_equal_lengths_keep_their_order():
    model = Recorder()
    Scorer(model, LABELS, budget=1).score(join(ROWS))
    assert model.batches == [[[7, 8, 9, 10]], [[2, 3, 4]], [[5, 6]], [[11, 12]], [[1]], [[13]]]


def test_a_batch_holds_as_many_rows_as_fit_the_budget_with_padding():
    model = Recorder()
    Scorer(model, LABELS, budget=8).score(join(ROWS))
    assert model.batches == [[[7, 8, 9, 10], [2, 3, 4]], [[5, 6], [11, 12], [1], [13]]]


def test_a_row_larger_than_the_budget_goes_alone():
    model = Recorder()
    Scorer(model, LABELS, budget=3).score(join([row(1, 2, 3, 4, 5), row(6, 7, 8, 9), row(1), row(2)]))
    assert [len(batch) for batch in model.batches] == [1, 1, 2]


def test_the_shared_prefix_is_passed_on_and_does_not_count():
    model = Recorder()
    scorer = Scorer(model, LABELS, budget=4)
    rows = [row(9, 9, 9, 1), row(9, 9, 9, 2, 3), row(9, 9, 9, 4, 5), row(9, 9, 9)]
    assert scorer.score(join(rows), prefix=3).tolist() == expected(rows)
    assert model.batches == [[[9, 9, 9, 2, 3], [9, 9, 9, 4, 5]], [[9, 9, 9, 1], [9, 9, 9]]]
    assert model.prefixes == {3}
    assert scorer.counts.tokens == 5


def test_no_rows_ask_nothing():
    model = Recorder()
    assert Scorer(model, LABELS, budget=10).score(join([])).shape == (0, 2)
    assert model.batches == []


def test_counts_add_up_over_calls():
    scorer = Scorer(Recorder(), LABELS, budget=10)
    scorer.score(join(ROWS))
    scorer.score(join(ROWS[:2]))
    assert (scorer.counts.rows, scorer.counts.forwards, scorer.counts.tokens) == (8, 8, 17)


def test_progress_adds_up_to_the_number_of_rows_with_duplicates():
    seen = []
    rows = [*ROWS, *ROWS[:3], ROWS[3]]
    Scorer(Recorder(), LABELS, budget=4).score(join(rows), progress=seen.append)
    assert sum(seen) == len(rows)
    assert len(seen) > 1


def test_progress_adds_up_when_memory_runs_out():
    seen = []
    Scorer(Recorder(fits=4), LABELS, budget=100).score(join([*ROWS, *ROWS]), progress=seen.append)
    assert sum(seen) == 2 * len(ROWS)


def test_running_out_of_memory_halves_the_batch_and_gives_the_same_scores():
    model = Recorder(fits=8)
    scorer = Scorer(model, LABELS, budget=32)
    assert scorer.score(join(ROWS)).tolist() == expected(ROWS)
    assert scorer.halvings == 2  # 6 rows of 4, then 3 rows of 4
    assert (scorer.budget, scorer.lowered) == (32, {4: 8})  # rows of up to 4 tokens get smaller batches from now on
    assert model.batches[:2] == [[[7, 8, 9, 10], [2, 3, 4]], [[5, 6]]]
    assert (scorer.counts.rows, scorer.counts.forwards, scorer.counts.tokens) == (6, 6, 13)


def test_a_smaller_budget_is_kept_for_what_follows():
    model = Recorder(fits=8)
    scorer = Scorer(model, LABELS, budget=16)
    rows = [row(*range(index, index + 4)) for index in range(12)]
    scorer.score(join(rows))
    assert scorer.halvings == 1
    assert all(len(batch) == 2 for batch in model.batches)


class Packer(Recorder):
    """Rows cost what they hold, not what the longest holds."""

    pads = False


def test_a_model_that_packs_gets_as_many_rows_as_hold_the_budget():
    model = Packer()
    Scorer(model, LABELS, budget=7).score(join(ROWS))
    assert [sum(map(len, batch)) for batch in model.batches] == [7, 6]


def test_one_long_row_does_not_make_a_batch_of_many_short_ones_wide():
    model = Packer()
    rows = [row(*range(64)), *(row(index) for index in range(100, 200))]
    Scorer(model, LABELS, budget=160).score(join(rows))
    assert max(len(batch) * max(map(len, batch)) for batch in model.batches) <= 4 * 160
    assert len(model.batches) == 2


def test_rows_that_begin_alike_are_neighbours():
    model = Packer()
    Scorer(model, LABELS, budget=100).score(join([row(2, 1), row(1, 1), row(2, 0), row(1, 0), row(3)]))
    assert model.batches == [[[1, 0], [1, 1], [2, 0], [2, 1], [3]]]


def test_budgets_are_lowered_for_rows_of_one_length_only():
    model = Recorder(fits=8)
    scorer = Scorer(model, LABELS, budget=16, lowered={4: 8})
    scorer.score(join(row(*range(i, i + 4)) for i in range(6)))
    assert scorer.halvings == 0
    assert all(len(batch) == 2 for batch in model.batches)
    scorer.score(join(row(i, i) for i in range(6)))
    assert scorer.lowered == {4: 8, 2: 8}


def test_rows_are_sent_before_any_answer_is_waited_for():
    events = []

    class Slow(Recorder):
        def submit(self, batch, labels, *, prefix=0):
            scores = self.log_scores(batch, labels, prefix=prefix)
            events.append("sent")
            return Pending(lambda: events.append("waited") or scores, len(batch))

    scores = Scorer(Slow(), LABELS, budget=4).score(join(ROWS))
    assert scores.tolist() == expected(ROWS)
    assert events == ["sent"] * (len(events) // 2) + ["waited"] * (len(events) // 2)
    assert len(events) > 2


def test_running_out_of_memory_on_one_row_is_an_error():
    with pytest.raises(OutOfMemoryError, match="too large"):
        Scorer(Recorder(fits=3), LABELS, budget=100).score(join(ROWS))


def test_nothing_is_halved_when_memory_is_enough():
    scorer = Scorer(Recorder(), LABELS, budget=8)
    scorer.score(join(ROWS))
    assert scorer.halvings == 0 and scorer.budget == 8


def test_other_errors_pass_through():
    class Broken(Recorder):
        def log_scores(self, batch, labels, *, prefix=0):
            raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        Scorer(Broken(), LABELS, budget=8).score(join(ROWS))


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), max_size=20), st.integers(1, 30), st.integers(6, 40)
)
def test_budget_and_memory_never_change_a_score(ids, budget, fits):
    rows = [row(*each) for each in ids]
    model, seen = Recorder(fits=fits), []
    scorer = Scorer(model, LABELS, budget=budget)
    assert scorer.score(join(rows), progress=seen.append).tolist() == expected(rows)
    assert sum(seen) == scorer.counts.rows == len(rows)
    assert scorer.counts.forwards == len({tuple(each) for each in ids})
    assert all(len(batch) == 1 or len(batch) * len(batch[0]) <= budget for batch in model.batches)


@given(st.lists(st.lists(st.sampled_from([0, 1, 255, 256, 2**24]), max_size=4), max_size=20), st.integers(0, 2))
def test_rows_are_ordered_by_length_and_then_as_numbers(ids, prefix):
    rows = join(row(*([9] * prefix), *each) for each in ids)
    right = sorted(range(len(ids)), key=lambda index: (-len(ids[index]), ids[index]))
    assert _order(rows, prefix).tolist() == right


LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=7).map(lambda each: np.array(sorted(each, reverse=True)))


def padded_cost(lengths, ends, pass_tokens):
    starts = [0, *ends[:-1]]
    return sum(lengths[start] * (end - start) + pass_tokens for start, end in zip(starts, ends, strict=True))


@given(LENGTHS, st.integers(1, 20))
def test_groups_of_rows_cost_least(lengths, pass_tokens):
    found = _cuts(lengths, pass_tokens, 10**6).tolist()
    inner = range(1, len(lengths))
    every = [[*chosen, len(lengths)] for size in range(len(lengths)) for chosen in itertools.combinations(inner, size)]
    assert found == sorted(set(found)) and found[-1] == len(lengths)
    assert padded_cost(lengths, found, pass_tokens) == min(padded_cost(lengths, ends, pass_tokens) for ends in every)


def test_a_model_says_what_one_more_pass_is_worth():
    model = Recorder()
    rows = [*(row(*range(i, i + 60)) for i in range(3)), *(row(1000 + i, i) for i in range(20))]
    Scorer(model, LABELS, budget=10_000).score(join(rows))
    assert [len(batch) for batch in model.batches] == [23]
    model.batches.clear()
    model.pass_tokens = 100
    assert Scorer(model, LABELS, budget=10_000).score(join(rows)).tolist() == expected(rows)
    assert [len(batch) for batch in model.batches] == [3, 20]
    model.batches.clear()
    Scorer(model, LABELS, budget=20).score(join(rows))
    assert [len(batch) for batch in model.batches] == [1, 1, 1, 10, 10]
