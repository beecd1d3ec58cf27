"""ERASER's measures, against numbers that are worked out by hand."""

import math
import shutil
from itertools import combinations

import numpy as np
import pytest
from tests.rows import name_of
from tests.small_runs import Plain, files_of, picks, results_of, rows_of, run, task_of, texts

import ice_eval as ice
from ice_eval.analysis.measures import Found, Missing
from ice_eval.analysis.measures.eraser import EraserMeasure
from ice_eval.models.toy import BIAS, WEIGHTS
from ice_eval.rationales import ERASER_SHARES
from ice_eval.report.page import page

TEXTS = texts(17, words=(7, 9), seed=2)
OWN = {"mine": picks("mine", towards=1.0), "hat": picks("hat")}
SETTINGS = {"attributions": OWN, "operators": ["mask-unk"], "m": 4, "k": [0.2, "dynamic"]}
BOTH = ["sufficiency", "necessity"]


def parts_of(done):
    found = EraserMeasure().of(done.folder)
    assert isinstance(found, Found)
    return {part.title: list(part.lines) for part in found.parts}


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def test_five_words_worked_by_hand():
    """Log-odds are a bias and a weight per word, so every probability can be written down."""
    text, vector = "gorgeous film with dull scenes", [5.0, 1.0, 2.0, 4.0, 3.0]
    good, bad = WEIGHTS["gorgeous"], WEIGHTS["dull"]
    assert good + bad + BIAS > 0  # the model says positive
    task = task_of([text])
    done = ice.evaluate("toy", task, attributions={"mine": [vector]}, operators=["delete"], m=3, eraser=True)
    full, without_good, without_bad = (sigmoid(BIAS + x) for x in (good + bad, bad, good))
    # Of five words 1, 5, 10 and 20 % are one word, gorgeous; 50 % are two, gorgeous and dull.
    kept_one, kept_two = sigmoid(BIAS + good), full
    removed_one, removed_two = without_good, sigmoid(BIAS)
    found = parts_of(done)
    [aopc] = found["ERASER over several sizes"]
    assert aopc["aopc_suff"] == pytest.approx((4 * (full - kept_one) + (full - kept_two)) / 5)
    assert aopc["aopc_compr"] == pytest.approx((4 * (full - removed_one) + (full - removed_two)) / 5)
    raw = {line["measure"]: line for line in found["ERASER beside win rates"]}
    assert raw["sufficiency"]["raw"] == pytest.approx(full - kept_one)
    assert raw["comprehensiveness"]["raw"] == pytest.approx(full - removed_one)
    # Left out alone: gorgeous takes most, dull gives back, film, with and scenes do nothing. Of ten pairs of words
    # three tie there; of the others four are in order (gorgeous first) and three are not (dull is below the rest).
    assert full > without_good and full < without_bad
    assert aopc["taucorr_loo"] == pytest.approx((4 - 3) / math.sqrt(10 * 7))


@pytest.fixture(scope="module")
def plain_run(tmp_path_factory):
    return run(TEXTS, out=tmp_path_factory.mktemp("plain") / "run", directions=BOTH, **SETTINGS)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return run(TEXTS, out=tmp_path_factory.mktemp("eraser") / "run", directions=BOTH, eraser=True, **SETTINGS)


def test_no_other_number_changes(plain_run, found):
    assert results_of(found) == results_of(plain_run)
    assert found.folder.manifest().config_hash == plain_run.folder.manifest().config_hash
    assert found.folder.manifest().noise_guard == plain_run.folder.manifest().noise_guard
    found.rescore()
    assert results_of(found) == results_of(plain_run)


def probability(plain, units, operator, direction):
    return sigmoid(plain.log_odds(units, operator, direction))


@pytest.fixture(scope="module")
def titles(found):
    return parts_of(found)


def test_means_are_those_of_plain_loops(found, titles):
    vectors = {row.example_id: row.attributions for part in found.folder.parts() for row in found.folder.inputs(part)}
    for line in titles["ERASER over several sizes"]:
        operator, suff, compr, taus = line["operator"], [], [], []
        for example_id, vector in ((name, each[line["attribution"]]) for name, each in vectors.items()):
            plain = Plain(TEXTS[int(example_id)])
            full = probability(plain, range(plain.n_units), operator, "sufficiency")
            tops = [plain.top(vector, plain.size(share)) for share in ERASER_SHARES]
            suff.append(np.mean([full - probability(plain, top, operator, "sufficiency") for top in tops]))
            compr.append(np.mean([full - probability(plain, top, operator, "necessity") for top in tops]))
            drops = [full - probability(plain, [unit], operator, "necessity") for unit in range(plain.n_units)]
            pairs = list(combinations(range(plain.n_units), 2))
            order = [(vector[i] - vector[j]) * (drops[i] - drops[j]) for i, j in pairs]
            taus.append(sum(map(np.sign, order)) / len(pairs))
        assert line["n"] == len(TEXTS)
        assert line["aopc_suff"] == pytest.approx(np.mean(suff), abs=1e-9)
        assert line["aopc_compr"] == pytest.approx(np.mean(compr), abs=1e-9)
        assert line["taucorr_loo"] == pytest.approx(np.mean(taus), abs=1e-9)
        low, high = line["aopc_compr_ci"]
        assert low < line["aopc_compr"] < high


def test_raw_scores_stand_beside_the_win_rates_of_the_run(found, titles):
    lines = titles["ERASER beside win rates"]
    assert [(line["k"], line["measure"]) for line in lines[:4]] == [
        (0.2, "sufficiency"), ("dynamic", "sufficiency"), (0.2, "comprehensiveness"), ("dynamic", "comprehensiveness"),
    ]  # fmt: skip
    direction_of = {"sufficiency": "sufficiency", "comprehensiveness": "necessity"}
    examples = list(found.folder.examples())
    for line in lines:
        where = {**{n: line[n] for n in ("attribution", "operator", "k")}, "direction": direction_of[line["measure"]]}
        mine = [each for each in examples if all(getattr(each, name) == value for name, value in where.items())]
        assert line["raw"] == pytest.approx(np.mean([each.score_full - each.score for each in mine]))
        assert line["win_rate"] == pytest.approx(np.mean([each.win_rate for each in mine]))
        good = 1 - line["raw"] if line["measure"] == "sufficiency" else line["raw"]
        by_eraser, by_rate = good >= 0.5, line["win_rate"] >= 0.55
        words = ("both", "ERASER alone") if by_eraser else ("win rate alone", "none")
        assert line["positive"] == words[not by_rate]


def test_who_was_positive_alone_is_counted(titles):
    for line in titles["Verdicts of ERASER and of win rates"]:
        words = [each["positive"] for each in titles["ERASER beside win rates"] if each["measure"] == line["measure"]]
        assert line["n_configurations"] == len(words) == 4
        assert line["eraser_alone"] == words.count("ERASER alone")
        assert line["win_rate_alone"] == words.count("win rate alone")
        assert line["agree"] == words.count("both") + words.count("none")


def test_rows_are_added_to_a_finished_run_and_only_those(plain_run, found, titles, tmp_path):
    out = tmp_path / "run"
    shutil.copytree(plain_run.path, out)
    before = files_of(out)
    assert isinstance(EraserMeasure().of(plain_run.folder), Missing)
    added = run(TEXTS, out=out, directions=BOTH, eraser=True, **SETTINGS)
    assert results_of(added) == results_of(found)
    old = {name: content for name, content in before.items() if name.name.startswith("part-")}
    assert {name: files_of(out)[name] for name in old} == old
    assert parts_of(added) == titles
    names = {name_of(row) for row in rows_of(added)} - {name_of(row) for row in rows_of(plain_run)}
    assert names == {"leave-one-out", "eraser:mine", "eraser:hat"}
    # Without the flag they stay, and what is added gets them too.
    more = run(TEXTS, out=out, directions=BOTH, **{**SETTINGS, "attributions": {**OWN, "other": picks("other")}})
    assert len(parts_of(more)["ERASER over several sizes"]) == 3
    again = files_of(out)
    run(TEXTS, out=out, directions=BOTH, **{**SETTINGS, "attributions": {**OWN, "other": picks("other")}})
    assert {n: c for n, c in files_of(out).items() if n.suffix == ".parquet"} == {
        n: c for n, c in again.items() if n.suffix == ".parquet"
    }


def test_the_page_has_its_tables_where_there_are_rows(plain_run, found):
    pages = [page([done.folder]) for done in (plain_run, found)]
    titles = [{table.title for table in each["tables"]} for each in pages]
    assert titles[1] - titles[0] == {
        "ERASER beside win rates", "ERASER over several sizes", "Verdicts of ERASER and of win rates",
    }  # fmt: skip


def test_rationales_of_their_own_size_have_raw_scores_and_no_average():
    marked = [{"text": text, "rationale": [[0, len(text.split()[0])]]} for text in TEXTS]
    done = run(task_of(marked), attributions=["human"], operators=["delete"], m=9, eraser=True)
    found = parts_of(done)
    assert [line["k"] for line in found["ERASER beside win rates"]] == [None, None]
    [line] = found["ERASER over several sizes"]
    assert (line["aopc_suff"], line["aopc_compr"], line["aopc_suff_ci"]) == (None, None, None)
    assert line["taucorr_loo"] is not None
    kept, removed = found["ERASER beside win rates"]
    assert kept["positive"] is not None
    assert (removed["win_rate"], removed["positive"]) == (None, None)  # the run has one direction


def test_fills_of_infill_are_averaged_as_probabilities():
    done = run(TEXTS, attributions=OWN, operators=["infill"], m=5, n_fills=3, directions=BOTH, eraser=True)
    examples = list(done.folder.examples())
    for line in parts_of(done)["ERASER beside win rates"]:
        direction = "sufficiency" if line["measure"] == "sufficiency" else "necessity"
        mine = [e for e in examples if (e.attribution, e.direction) == (line["attribution"], direction)]
        assert line["raw"] == pytest.approx(np.mean([e.score_full - e.score for e in mine]))


def test_a_pilot_finds_the_same_number_of_sets_with_and_without():
    settings = {"attributions": {"hat": OWN["hat"]}, "operators": ["delete"], "adaptive": "dataset", "m": 40}
    without, with_rows = (run(TEXTS, eraser=flag, **settings) for flag in (False, True))
    assert results_of(with_rows) == results_of(without)
