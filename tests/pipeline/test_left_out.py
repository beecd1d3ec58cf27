"""Examples that take no part, and what is refused before anything is written."""

import numpy as np
import pytest
from tests.rows import each_row
from tests.small_runs import line_of, lines_of, results_of, rows_of
from tests.toy_runs import planted, reviews, run

from ice_eval.errors import CapabilityError, DataError, ModelError
from ice_eval.models.toy import Toy
from ice_eval.results import RunFolder


class Fails(Toy):
    """Answers NaN wherever it reads the words it cannot stand."""

    def __init__(self, *words):
        super().__init__()
        self.bad = [self.codec.tokenize(word).ids[0] for word in words]

    def log_scores(self, batch, labels, *, prefix=0):
        scores = super().log_scores(batch, labels, prefix=prefix)
        scores[[np.isin(row.ids, self.bad).any() for row in each_row(batch)]] = np.nan
        return scores


def test_empty_and_one_unit_texts_are_recorded_counted_and_not_averaged(tmp_path):
    odd = [{"text": ""}, {"text": "awful"}, {"text": " \n "}, *reviews(4)]
    found, clean = run(odd, out=tmp_path / "odd"), run(reviews(4), operators=["delete"], out=tmp_path / "clean")
    where = {"attribution": "attention", "operator": "delete"}
    assert [line.error for line in lines_of(found, **where)] == [
        "the text has no unit",
        "the text has one unit, so there is no other set to compare with",
        "the text has no unit",
        *[None] * 4,
    ]
    line = line_of(found, **where)
    assert (line.n, line.n_skipped) == (4, 3)
    assert line_of(clean, **where).n == 4
    assert {row.key.example_id for row in rows_of(found)} == {"3", "4", "5", "6"}
    reasons = [row.skip_reason for row in found.folder.inputs(0)]
    assert reasons[1] == "the text has one unit, so there is no other set to compare with"


def test_a_share_that_takes_every_unit_leaves_nothing_to_compare(tmp_path):
    # Two units and one set: k below 1 never takes all of them.
    found = run([{"text": "awful film"}, {"text": "good film"}], k=0.99, operators=["delete"], out=tmp_path / "run")
    assert [line.m for line in lines_of(found, attribution="attention")] == [1, 1]


def test_a_run_without_any_usable_example_fails_and_says_why(tmp_path):
    with pytest.raises(ModelError, match=r"no example could be evaluated \(example '0': the text has one unit"):
        run([{"text": "awful"}, {"text": ""}], operators=["delete"], out=tmp_path / "run")
    lines = list(RunFolder.existing(tmp_path / "run").examples())
    assert len(lines) == 4 and all(line.error is not None for line in lines)


def test_scores_that_are_nan_are_recorded_and_counted(tmp_path):
    records = [*reviews(4), {"text": "the plague film had a fun and witty cast with a great deal of light"}]
    found = run(records, model=Fails("plague"), operators=["delete"], out=tmp_path / "run")
    [line] = lines_of(found, attribution="attention", example_id="4")
    assert line.error == "the model's score of the full or the empty input is not finite"
    assert (line_of(found, attribution="attention").n, line_of(found, attribution="attention").n_skipped) == (
        4,
        1,
    )
    [full] = rows_of(found, "full", example_id="4")
    assert np.isnan(full.scores).all()


class FailsAlone(Fails):
    """Answers NaN where it reads the first bad word without the second."""

    def log_scores(self, batch, labels, *, prefix=0):
        scores = Toy.log_scores(self, batch, labels, prefix=prefix)
        scores[[self.bad[0] in row.ids and self.bad[1] not in row.ids for row in each_row(batch)]] = np.nan
        return scores


def test_a_random_row_that_is_nan_spoils_its_example_alone(tmp_path):
    records = [*reviews(4), {"text": "plague cure film had a fun and witty cast with great music"}]
    found = run(records, model=FailsAlone("plague", "cure"), operators=["delete"], m=30, out=tmp_path / "run")
    [line] = lines_of(found, attribution="attention", example_id="4")
    assert line.error == "a score is not finite"
    assert line_of(found, attribution="attention").n == 4
    again = run(records, model=FailsAlone("plague", "cure"), operators=["delete"], m=30, out=tmp_path / "run")
    assert again.folder.manifest().cost.rows == found.folder.manifest().cost.rows


def test_a_model_that_answers_nothing_but_nan_fails_the_run(tmp_path):
    with pytest.raises(ModelError, match="no example could be evaluated"):
        run(model=Fails("Review"), operators=["delete"], out=tmp_path / "run")


def test_an_attribution_that_is_nan_is_recorded_and_the_others_go_on(tmp_path):
    def sometimes(item):
        return np.full(item.n_units, np.nan) if item.example_id == "1" else planted(item)

    found = run(attributions={"mine": sometimes, "random": None}, operators=["delete"], out=tmp_path / "run")
    [line] = lines_of(found, attribution="mine", example_id="1")
    assert line.error == "the attribution 'mine' is not finite"
    assert (line_of(found, attribution="mine").n, line_of(found, attribution="random").n) == (23, 24)
    assert np.isnan(found.folder.inputs(0)[1].attributions["mine"]).all()
    results = results_of(found)
    again = run(attributions={"mine": sometimes, "random": None}, operators=["delete"], out=tmp_path / "run")
    assert results_of(again) == results


def test_ids_with_odd_characters_come_through(tmp_path):
    ids = ["a/b", "..", "é\u2028ü", 'quo"te', "new\nline", " ", "👩‍🚀", "0" * 300]
    records = [{**record, "id": identity} for identity, record in zip(ids, reviews(8), strict=True)]
    found = run(records, out=tmp_path / "run")
    assert [line.example_id for line in lines_of(found, attribution="attention", operator="delete")] == ids
    assert {row.key.example_id for row in rows_of(found)} == set(ids)


@pytest.mark.parametrize("field", ["text", "id", "group"])
def test_text_that_is_no_unicode_is_refused_before_anything_is_written(tmp_path, field):
    with pytest.raises(DataError, match="example 1.*half of a character"):
        records = [{"text": "a fine film"}, {"text": "a dull film", field: "half a \ud83d pair"}]
        run(records, operators=["delete"], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


class Bare(Toy):
    offers = frozenset()


@pytest.mark.parametrize(("name", "need"), [("attention", "attentions"), ("gradient", "gradients")])
def test_a_model_that_cannot_support_an_attribution_stops_at_planning(tmp_path, name, need):
    match = f"the attribution '{name}' needs {need}, which the model 'toy' does not offer"
    with pytest.raises(CapabilityError, match=match):
        run(model=Bare(), attributions=["random", name], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert line_of(run(model=Bare(), attributions=["random"], operators=["delete"], out=tmp_path / "run")).n == 24


def test_infill_of_a_single_example_stops_at_planning(tmp_path):
    with pytest.raises(DataError, match="infill draws from other examples, and the data hold 1"):
        run(reviews(1), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


VECTORS = [list(range(12 + index % 3)) for index in range(24)]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1.0, 2.0]] * 24, "the attribution 'mine' gave 2 numbers for example '0', which has 12 units"),
        (VECTORS[:23] + [[1.0, 2.0]], "the attribution 'mine' gave 2 numbers for example '23', which has 14 units"),
        (VECTORS[:20], "the attribution 'mine' has no values for example '20'"),
        (dict(enumerate(VECTORS[:20])), "the attribution 'mine' has no values for example '20'"),
        ({}, "the attribution 'mine' has no values for example '0'"),
        ([[[1.0]] * 12] * 24, "the attribution 'mine' gave"),
    ],
)
def test_numbers_that_do_not_fit_the_units_are_refused_and_nothing_is_written(tmp_path, values, message):
    with pytest.raises(DataError, match=message):
        run(attributions={"mine": values}, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_function_whose_numbers_do_not_fit_the_units_is_refused(tmp_path):
    with pytest.raises(DataError, match="the attribution 'mine' gave 11 numbers for example '0', which has 12 units"):
        run(attributions={"mine": lambda item: planted(item)[1:]}, out=tmp_path / "run")
