"""Rationales whose size the attribution itself chooses: one unit for each of its peaks."""

import math
from collections import Counter

import numpy as np
import pytest
from tests.results.test_schemas import assert_conforms
from tests.small_runs import Plain, files_of, line_of, lines_of, picks, results_of, rows_of, run, texts

import ice_eval as ice
from ice_eval.analysis.measures import measured, measures
from ice_eval.rationales import n_peaks, rationale_size
from ice_eval.report import conclude, summary_table
from ice_eval.report.analyses import measure_tables
from ice_eval.report.figures import figures

TEXTS = texts(18, seed=5)
SETTINGS = {"operators": ["delete"], "m": 20, "k": [0.2, "dynamic"]}


@pytest.mark.parametrize(
    ("values", "peaks"),
    [
        ([0, 1, 0, 1, 0], 2),
        ([1, 0, 0, 1], 2),  # the first and the last unit have one neighbour
        ([5, 0, 1, 0, 5, 0], 2),  # 1 is higher than its neighbours, and below the mean 11/6
        ([0, 3, 3, 0, 2], 2),  # equal neighbours are one peak
        ([3, 3, 0, 2], 2),
        ([0, 3, 3, 4, 0], 1),  # … and none where they lean on a higher one
        ([1, 2, 3, 4], 1),
        ([0.1, 0.1, 0.1], 1),
        ([-1, -3, -1, -9], 2),  # the mean is -3.5
        ([0, 2, 0, 1, 0, 1, 0], 3),  # 4/7: both ones lie above
        ([2, 0, 1, 0], 2),  # 1 is above 3/4
        ([7], 1),
        ([], 0),
    ],
)
def test_peaks_are_counted_as_one_would_by_eye(values, peaks):
    assert n_peaks(np.array(values, dtype=float)) == peaks


def test_a_unit_at_the_mean_is_a_peak():
    assert n_peaks(np.array([0.0, 1.0, 0.0, 3.0])) == 2  # the mean is 1


def test_magnitudes_have_peaks_of_their_own():
    values = [1, -5, 1, 0, 2]
    assert rationale_size(values, "dynamic") == 3  # both ones and 2, over the mean -0.2
    assert rationale_size(values, "dynamic", magnitude=True) == 2  # 5 and 2, over the mean 1.8


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    own = {"mine": picks("mine", towards=1.0), "hat": picks("hat")}
    return run(TEXTS, attributions=own, out=tmp_path_factory.mktemp("dynamic") / "run", **SETTINGS)


def peaks_by_eye(vector):
    """The definition, a unit at a time; the numbers of a hat never tie."""
    mean = sum(vector) / len(vector)
    return sum(
        vector[i] >= mean
        and (i == 0 or vector[i] > vector[i - 1])
        and (i == len(vector) - 1 or vector[i] > vector[i + 1])
        for i in range(len(vector))
    )


def test_the_rationale_is_the_top_of_as_many_units_as_there_are_peaks(found):
    vectors = {row.example_id: row.attributions for part in found.folder.parts() for row in found.folder.inputs(part)}
    drawn = Counter((row.key.example_id, row.key.size) for row in rows_of(found, "random"))
    sizes = set()
    for line in lines_of(found, k="dynamic"):
        plain, vector = Plain(TEXTS[int(line.example_id)]), vectors[line.example_id][line.attribution]
        size = peaks_by_eye(vector)
        sizes.add(size)
        assert tuple(line.rationale) == plain.top(vector, size)
        assert drawn[line.example_id, size] == min(21, math.comb(plain.n_units, size))
    assert len(sizes) > 2


def test_it_stands_beside_shares_in_every_output(found):
    assert [line.k for line in found.folder.summary().configurations] == [0.2, "dynamic"] * 2
    table = summary_table([found.folder.summary()])
    assert [row[table.header.index("k")] for row in table.rows] == ["0.2", "dynamic"] * 2
    assert_conforms(found.path)
    assert "keeping as many top units as it has peaks" in {
        each.name for each in conclude(found.folder.summary(), found.folder.manifest()).others
    }
    assert "k-sweep" not in {figure.name for figure in figures([found.folder])}  # one share is no sweep
    assert "dynamic" in found.report().read_text(encoding="utf-8")
    every = {name: known() for name, known in measures.items()}
    shown = {table.title: table for table in measure_tables(measured(every, [found.folder]), [found.folder])}
    contiguity = shown["Contiguity of rationales"]
    assert {row[contiguity.header.index("k")] for row in contiguity.rows} == {"0.2", "dynamic"}


def test_all_statistics_come_again_from_the_folder(found):
    before = results_of(found)
    found.rescore()
    assert results_of(found) == before


def test_it_may_be_added_later_and_changes_nothing_else(found, tmp_path):
    own = {"mine": picks("mine", towards=1.0), "hat": picks("hat")}
    run(TEXTS, attributions=own, out=tmp_path / "run", **{**SETTINGS, "k": 0.2})
    added = run(TEXTS, attributions=own, out=tmp_path / "run", **{**SETTINGS, "k": "dynamic"})
    assert results_of(added) == results_of(found)
    before = files_of(added.path)
    again = run(TEXTS, attributions=own, out=tmp_path / "run", **SETTINGS)
    same = {name: content for name, content in files_of(again.path).items() if name.suffix == ".parquet"}
    assert same == {name: content for name, content in before.items() if name.suffix == ".parquet"}


def test_a_sequential_test_takes_its_size(found):
    done = run(TEXTS[:6], attributions={"hat": picks("hat")}, operators=["delete"], k="dynamic", adaptive="examples")
    plain = {line.example_id: line.rationale for line in lines_of(found, k="dynamic", attribution="hat")}
    assert {line.example_id: line.rationale for line in lines_of(done)} == {
        name: rationale for name, rationale in plain.items() if int(name) < 6
    }


def test_the_sign_decides_whose_peaks_count():
    signed = {"mine": lambda item: [1, -5, 1, 0, 2, *([0] * (item.n_units - 5))]}
    sizes = {
        sign: {len(line.rationale) for line in lines_of(run(TEXTS[:3], attributions=signed, k="dynamic", sign=sign))}
        for sign in ("support", "abs")
    }
    assert sizes == {"support": {3}, "abs": {2}}


def test_a_random_attribution_wins_half_of_the_time_at_its_own_peaks():
    rate = line_of(run(texts(400, seed=8), m=20, k="dynamic"))
    low, high = rate.win_rate_ci
    assert low < 0.5 < high
    assert rate.win_rate == pytest.approx(0.5, abs=0.05)


def test_another_word_is_refused():
    with pytest.raises(ice.ConfigError, match="k = 'dynamc': a share between 0 and 1 or 'dynamic' is expected"):
        run(TEXTS[:2], k="dynamc")
