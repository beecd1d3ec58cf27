"""Whole runs of the toy model: what they find, what they keep, what they refuse."""

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict

import numpy as np
import pytest
from scipy.stats import chisquare

import ice_eval
from ice_eval._files import DRAFT
from ice_eval.attributions.lime import Lime
from ice_eval.attributions.occlusion import Occlusion
from ice_eval.errors import CapabilityError, ConfigError, DataError, ModelError
from ice_eval.models.toy import BIAS, WEIGHTS, Toy
from ice_eval.results import RunFolder, numbers_hash
from ice_eval.results.checksums import CHECKSUMS
from ice_eval.tasks import Records, Task

NEUTRAL = ["film", "plot", "cast", "scene", "music", "story", "camera", "actor", "ending", "script", "light", "town"]


class Hashed(Toy):
    """Every word has a weight of its own, so that no two sets of words score the same."""

    def __init__(self):
        super().__init__()
        self.name = "hashed"

    def log_scores(self, batch, labels, *, prefix=0):
        log_odds = np.array([np.sin(row.ids * 0.7371).sum() for row in batch])
        return np.stack([-np.logaddexp(0, log_odds), -np.logaddexp(0, -log_odds)], axis=1)


class Fails(Toy):
    """Answers NaN wherever it reads the words it cannot stand."""

    def __init__(self, *words):
        super().__init__()
        self.bad = [self.codec.tokenize(word).ids[0] for word in words]

    def log_scores(self, batch, labels, *, prefix=0):
        scores = super().log_scores(batch, labels, prefix=prefix)
        scores[[np.isin(row.ids, self.bad).any() for row in batch]] = np.nan
        return scores


class Counting(Toy):
    """Counts the inputs that it is asked about."""

    def __init__(self):
        super().__init__()
        self.asked = 0

    def log_scores(self, batch, labels, *, prefix=0):
        self.asked += len(batch)
        return super().log_scores(batch, labels, prefix=prefix)


def reviews(n=24, seed=1):
    """Reviews of 12 to 14 distinct words, three of them decisive for one side and one for the other, with labels."""
    rng = np.random.default_rng(seed)
    good, bad = ([w for w in WEIGHTS if sign * WEIGHTS[w] > 0] for sign in (1, -1))
    records = []
    for index in range(n):
        main, other = (good, bad) if index % 2 else (bad, good)
        words = [
            *rng.choice(main, 3, replace=False),
            rng.choice(other),
            *rng.choice(NEUTRAL, 8 + index % 3, replace=False),
        ]
        records.append({"text": " ".join(rng.permutation(words)), "label": index % 2})
    return records


def task_of(records, **changes):
    defaults = {
        "data": Records(records),
        "prompt": "Review: {text}\nSentiment:",
        "label_words": {"negative": " negative", "positive": " positive"},
        "name": "reviews",
    }
    return Task(**defaults | changes)


def run(records=None, *, model=None, task=None, **settings):
    settings = {"attributions": ["attention", "random"], "m": 8} | settings
    task = task or task_of(reviews() if records is None else records)
    return ice_eval.evaluate(model or Toy(), task, **settings)


def rows_of(found, kind=None, **key):
    folder = found.folder
    rows = [row for part in folder.parts() for row in folder.ledger(part, inputs=True)]
    wanted = [row for row in rows if kind is None or row.key.kind == kind]
    return [row for row in wanted if all(getattr(row.key, name) == value for name, value in key.items())]


def lines_of(found, **where):
    return [line for line in found.folder.examples() if all(line[name] == value for name, value in where.items())]


def line_of(found, **where):
    [line] = [
        line
        for line in found.folder.summary()["configurations"]
        if all(line[name] == value for name, value in where.items())
    ]
    return line


def files_of(path):
    """Every file of a folder, with its content and time; the lock is opened by every command, and says nothing."""
    files = [p for p in path.rglob("*") if p.is_file() and p.name != ".lock"]
    return {p.relative_to(path): (p.read_bytes(), p.stat().st_mtime_ns) for p in files}


def results_of(found):
    return [(found.path / name).read_bytes() for name in ("summary.json", "examples.jsonl")]


def weight_of(text):
    return WEIGHTS.get(text.lower(), 0.0)


def planted(item):
    """How much each word supports what the toy predicts: the right answer."""
    weights = np.array([weight_of(text) for text in item.texts])
    return weights if BIAS + weights.sum() > 0 else -weights


# --- what a run finds ---------------------------------------------------------------------------------------------


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
        assert (best["n"], best["win_rate"], best["tie_rate"], best["verdict"]) == (60, 1.0, 0.0, "faithful")
        assert (worst["n"], worst["win_rate"], worst["tie_rate"], worst["verdict"]) == (60, 0.0, 0.0, "anti-faithful")
        assert best["p_value"] == worst["p_value"] == 1 / 10_000


@pytest.fixture(scope="module")
def controls(tmp_path_factory):
    """Random explanations of 2,000 texts of 12 to 15 words, under a model that ties on none of them."""
    rng = np.random.default_rng(7)
    vocabulary = np.array([f"w{number}" for number in range(500)])
    texts = [" ".join(rng.choice(vocabulary, 12 + index % 4, replace=False)) for index in range(2000)]
    return ice_eval.evaluate(
        Hashed(),
        task_of([{"text": text} for text in texts]),
        attributions=["random"],
        n=2000,
        m=9,
        out=tmp_path_factory.mktemp("controls") / "run",
    )


@pytest.mark.parametrize("operator", ["delete", "infill"])
def test_random_explanations_take_every_rank_equally_often(controls, operator):
    lines = lines_of(controls, operator=operator)
    ranks = Counter(round(line["p_value"] * 10) for line in lines)
    assert sum(ranks.values()) == 2000 and set(ranks) == set(range(1, 11))
    assert chisquare([ranks[rank] for rank in range(1, 11)]).pvalue > 0.001
    summary = line_of(controls, operator=operator)
    assert abs(summary["win_rate"] - 0.5) < 4 * 0.32 / 2000**0.5
    assert summary["p_value"] > 0.001
    assert summary["tie_rate"] < 0.001
    assert not summary["excludes_chance"]


def test_random_explanations_of_fills_of_their_own_win_half_too(tmp_path):
    vocabulary = np.array([f"w{number}" for number in range(300)])
    rng = np.random.default_rng(8)
    records = [{"text": " ".join(rng.choice(vocabulary, 12, replace=False))} for _ in range(400)]
    found = run(
        records, model=Hashed(), attributions=["random"], operators=["infill"], fills="own", m=9, out=tmp_path / "run"
    )
    ranks = Counter(round(line["p_value"] * 10) for line in lines_of(found))
    assert chisquare([ranks[rank] for rank in range(1, 11)]).pvalue > 0.001
    assert line_of(found)["p_value"] > 0.001


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
    shared = run(reviews(6), operators=["infill"], out=tmp_path / "shared")
    own = run(reviews(6), operators=["infill"], fills="own", out=tmp_path / "own")
    assert {len(tokens) for tokens in fills_of(shared).values()} == {1}
    assert np.mean([len(tokens) for tokens in fills_of(own).values()]) > 3
    assert [row.kept for row in rows_of(shared)] == [row.kept for row in rows_of(own)]


def test_several_fills_are_scored_and_averaged(tmp_path):
    found = run(reviews(6), n_fills=2, operators=["delete", "infill"], out=tmp_path / "run")
    draws = Counter((row.key.operator, row.key.draw) for row in rows_of(found, "random"))
    assert draws == {("delete", 0): 54, ("infill", 0): 54, ("infill", 1): 54}
    first, second = ([r.input_ids for r in rows_of(found, "random", operator="infill", draw=d)] for d in (0, 1))
    assert first != second
    for line in lines_of(found, attribution="attention", operator="infill"):
        rows = rows_of(found, "rationale:attention", operator="infill", example_id=line["example_id"])
        probabilities = [np.exp(row.scores[line["target"]]) for row in rows]
        assert len(probabilities) == 2
        assert line["score"] == pytest.approx(np.mean(probabilities), rel=1e-9)


def test_the_first_fill_is_the_same_however_many_there_are(tmp_path):
    one = run(reviews(6), operators=["infill"], out=tmp_path / "one")
    two = run(reviews(6), operators=["infill"], n_fills=2, out=tmp_path / "two")
    assert [r.input_ids for r in rows_of(one, operator="infill")] == [
        r.input_ids for r in rows_of(two, operator="infill", draw=0)
    ]


def test_the_gold_label_can_be_explained(tmp_path):
    records = [{"text": "awful dull film with a fun cast", "label": 1}, {"text": "a witty good plot", "label": 0}]
    predicted = run(records, out=tmp_path / "predicted")
    gold = run([*records, {"text": "no label here at all"}], target="gold", out=tmp_path / "gold")
    assert [line["target"] for line in lines_of(predicted, attribution="attention", operator="delete")] == [0, 1]
    lines = lines_of(gold, attribution="attention", operator="delete")
    assert [line["target"] for line in lines] == [1, 0, None]
    assert lines[2]["error"] == "the example has no gold label to explain"
    assert line_of(gold, attribution="attention", operator="delete")["accuracy"] == 0.0


# --- what does not change a number --------------------------------------------------------------------------------


def test_the_token_budget_changes_no_set_no_fill_and_no_verdict(tmp_path):
    small = run(token_budget=1, out=tmp_path / "small")
    large = run(token_budget=10_000, out=tmp_path / "large")
    assert (small.folder.manifest()["token_budget"], large.folder.manifest()["token_budget"]) == (1, 10_000)
    ours, theirs = rows_of(small), rows_of(large)
    assert [(r.key, r.kept, r.input_ids, r.text) for r in ours] == [
        (r.key, r.kept, r.input_ids, r.text) for r in theirs
    ]
    np.testing.assert_allclose([r.scores for r in ours], [r.scores for r in theirs], rtol=0, atol=1e-5)
    for one, other in zip(*(found.folder.summary()["configurations"] for found in (small, large)), strict=True):
        assert one["verdict"] == other["verdict"]
        assert one["win_rate"] == pytest.approx(other["win_rate"], abs=1e-9)


def test_other_attributions_change_no_random_row_and_no_number(tmp_path):
    alone = run(attributions=["attention"], out=tmp_path / "one")
    among = run(attributions=["random", "attention", "gradient"], out=tmp_path / "three")
    assert rows_of(alone, "random") == rows_of(among, "random")
    assert lines_of(alone, attribution="attention") == lines_of(among, attribution="attention")
    for operator in ("delete", "infill", "all"):
        where = {"attribution": "attention", "operator": operator}
        # Adjusted p-values are about the family of all configurations; nothing else is.
        assert {**line_of(alone, **where), "p_adjusted": 0} == {**line_of(among, **where), "p_adjusted": 0}


def test_random_sets_are_the_same_under_every_operator(tmp_path):
    found = run(out=tmp_path / "run")
    deleted, filled = (
        {(r.key.example_id, r.key.set_index): r.kept for r in rows_of(found, "random", operator=operator)}
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
    chosen = [line["rationale"] for line in lines_of(first, operator="delete")]
    assert len({tuple(units) for units in chosen}) > 12
    assert np.mean([unit for units in chosen for unit in units]) == pytest.approx(6, abs=1.5)
    assert chosen == [line["rationale"] for line in lines_of(again, operator="delete")]


def test_shares_of_equal_size_share_their_rows(tmp_path):
    # 12 to 14 units: 0.2 and 0.21 both give two, 0.35 gives four.
    found = run(k=[0.2, 0.21, 0.35], out=tmp_path / "run")
    per_example = Counter((r.key.example_id, r.key.size) for r in rows_of(found, "random", operator="delete"))
    assert {size for _, size in per_example} == {2, 4}
    assert set(per_example.values()) == {9}
    one, other = ([{**line, "k": None} for line in lines_of(found, k=k)] for k in (0.2, 0.21))
    assert one == other
    assert line_of(found, k=0.35, attribution="attention", operator="delete")["n"] == 24


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
    assert lines_of(few) == [line for line in lines_of(many) if line["example_id"] in first]


# --- continuing a folder ------------------------------------------------------------------------------------------


def test_the_same_run_again_scores_nothing_and_leaves_the_same_bytes(tmp_path):
    model = Counting()
    found = run(model=model, out=tmp_path / "run")
    asked, results, rows = model.asked, results_of(found), rows_of(found)
    ledger = {name: content for name, content in files_of(found.path).items() if name.suffix == ".parquet"}
    again = run(model=model, out=tmp_path / "run")
    assert model.asked == asked > 0
    assert results_of(again) == results
    assert rows_of(again) == rows
    assert {name: c for name, c in files_of(found.path).items() if name.suffix == ".parquet"} == ledger


def unadjusted(found):
    """The lines of a summary without the one number that is about all of them."""
    return [{**line, "p_adjusted": None} for line in found.folder.summary()["configurations"]]


ADDITIONS = {
    "attributions": (["attention"], ["attention", "gradient"], {"rationale:gradient": 24 * 2}),
    "operators": (["delete"], ["delete", "infill"], {"random": 24 * 9, "rationale:attention": 24}),
    "k": ([0.2], [0.2, 0.35], {"random": 24 * 9 * 2, "rationale:attention": 24 * 2}),
}


@pytest.mark.parametrize("field", ADDITIONS)
def test_what_is_added_later_scores_only_what_is_missing(tmp_path, field):
    before, after, expected = ADDITIONS[field]
    base = {"attributions": ["attention"], "operators": ["delete", "infill"], "k": [0.2]}
    first = run(**base | {field: before}, out=tmp_path / "grown")
    counted, rows, lines = first.folder.manifest(), rows_of(first), lines_of(first)
    configurations = unadjusted(first)

    grown = run(**base | {field: after}, out=tmp_path / "grown")
    manifest = grown.folder.manifest()
    new = Counter(manifest["rows_by_kind"]) - Counter(counted["rows_by_kind"])
    assert new == expected
    assert manifest["rows"] - counted["rows"] == sum(expected.values())
    assert set(rows) <= set(rows_of(grown))
    assert all(line in lines_of(grown) for line in lines)
    assert all(line in unadjusted(grown) for line in configurations if line["operator"] != "all")

    whole = run(**base | {field: after}, out=tmp_path / "whole")
    assert results_of(grown) == results_of(whole)
    assert sorted(rows_of(grown), key=repr) == sorted(rows_of(whole), key=repr)


def test_what_a_folder_holds_need_not_be_named_again(tmp_path):
    run(attributions=["attention"], operators=["delete"], out=tmp_path / "run")
    grown = run(attributions=["random"], operators=["infill"], k=0.35, out=tmp_path / "run")
    config = grown.folder.manifest()["config"]
    assert (config["attributions"], config["operators"]) == (["attention", "random"], ["delete", "infill"])
    assert config["k"] == [0.2, 0.35]
    assert len(grown.summary()) == 2 * 3 * 2


def test_a_name_stands_for_one_method_with_its_fields(tmp_path):
    few = Lime(operator="mask-unk", n_samples=8)
    found = run(attributions={"lime": few, "mine": planted, "random": None}, operators=["delete"], out=tmp_path / "run")
    assert found.folder.manifest()["attributions"] == {
        "lime": {"method": "lime", "operator": "mask-unk", "n_samples": 8, "kernel_width": 0.25},
        "mine": {"method": "Computed", "numbers": numbers_hash(found.folder, "mine")},
        "random": {"method": "random"},
    }
    before = files_of(found.path)
    for other, difference in (
        (Lime(operator="mask-unk", n_samples=9), "n_samples is 8 there and 9 here"),
        (Lime(n_samples=8), "operator is 'mask-unk' there and 'delete' here"),
        (Occlusion(operator="mask-unk"), "method is 'lime' there and 'occlusion' here"),
        (None, "n_samples is 8 there and 500 here"),
    ):
        with pytest.raises(ConfigError, match=f"holds another attribution 'lime': .*{difference}"):
            run(attributions={"lime": other, "mine": planted}, operators=["delete"], out=tmp_path / "run")
    assert files_of(found.path) == before
    run(attributions={"lime": few, "mine": planted}, operators=["infill"], out=tmp_path / "run")


def test_a_brought_attribution_must_be_given_again_to_continue(tmp_path):
    run(attributions={"mine": planted}, out=tmp_path / "run")
    before = files_of(tmp_path / "run")
    with pytest.raises(ConfigError, match="the folder holds the attribution 'mine', which is not given now"):
        run(attributions=["random"], out=tmp_path / "run")
    assert files_of(tmp_path / "run") == before


def test_a_brought_attribution_with_other_values_is_refused_and_nothing_changes(tmp_path):
    found = run(attributions={"mine": planted}, out=tmp_path / "run")
    before = files_of(found.path)
    with pytest.raises(ConfigError, match="holds other values of the attribution 'mine' for example '0'"):
        run(attributions={"mine": lambda item: -planted(item)}, out=tmp_path / "run")
    assert files_of(found.path) == before
    found.rescore()  # the run is still a finished one


def test_a_brought_attribution_with_the_same_values_continues(tmp_path):
    found = run(attributions={"mine": planted}, out=tmp_path / "run")
    results = results_of(found)
    assert results_of(run(attributions={"mine": planted}, out=tmp_path / "run")) == results


REFUSED = {
    "m": {"m": 9},
    "seed": {"seed": 1},
    "n": {"n": 23},
    "target": {"target": "gold"},
    "fills": {"fills": "own"},
    "n_fills": {"n_fills": 2},
    "label_scoring": {"label_scoring": "full"},
    "task": {"task": task_of(reviews(), name="other")},
    "data": {"records": reviews(seed=2)},
    "prompt": {"task": task_of(reviews(), prompt="Text: {text}\nSentiment:")},
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return run(out=tmp_path_factory.mktemp("finished") / "run")


@pytest.mark.parametrize("field", REFUSED)
def test_another_run_is_refused_by_the_field_that_differs(finished, field):
    before = files_of(finished.path)
    with pytest.raises(ConfigError, match=rf"holds another run: {field} is [^;]*\. Use another --out") as caught:
        run(**REFUSED[field], out=finished.path)
    assert str(finished.path) in str(caught.value)
    assert files_of(finished.path) == before


def test_every_field_that_differs_is_named(finished):
    with pytest.raises(ConfigError) as caught:
        run(reviews(seed=2), m=9, seed=1, n=20, fills="own", out=finished.path)
    for part in ("data is", "m is 8 there and 9 here", "seed is 0 there and 1 here", "n is 500 there and 20 here"):
        assert part in str(caught.value)
    assert "fills is 'shared' there and 'own' here" in str(caught.value)


def test_another_model_or_other_weights_are_refused(finished):
    class Renamed(Toy):
        def __init__(self):
            super().__init__()
            self.name = "other"

    class Retrained(Toy):
        fingerprint = "0badf00d"

    with pytest.raises(ConfigError, match="model is 'toy' there and 'other' here"):
        run(model=Renamed(), out=finished.path)
    with pytest.raises(ConfigError, match="weights is '[0-9a-f]+' there and '0badf00d' here"):
        run(model=Retrained(), out=finished.path)


@pytest.mark.parametrize(
    "change",
    [
        lambda records: [{**records[0], "text": records[0]["text"] + "!"}, *records[1:]],
        lambda records: [{**records[0], "label": 1 - records[0]["label"]}, *records[1:]],
        lambda records: [*records, {"text": "one more film"}],
        lambda records: records[::-1],
    ],
)
def test_data_that_changed_under_the_same_name_are_refused(finished, change):
    with pytest.raises(ConfigError, match="holds another run: data is"):
        run(change(reviews()), out=finished.path)


def test_a_changed_lexicon_is_refused_because_it_changes_fills(finished):
    task = task_of(reviews(), lexicon=frozenset(NEUTRAL[:6]))
    with pytest.raises(ConfigError, match="holds another run"):
        run(task=task, operators=["delete", "infill"], out=finished.path)


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path):
    out = tmp_path / "thesis"
    out.mkdir()
    (out / "chapter.tex").write_text("x")
    before = files_of(out)
    with pytest.raises(ConfigError, match="is there and holds no run; choose an --out that is empty or new"):
        run(out=out)
    assert files_of(out) == before and [p.name for p in out.iterdir()] == ["chapter.tex"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("x")
    for out in (tmp_path / "out", tmp_path / "out" / "deeper"):
        with pytest.raises(ConfigError, match="out"):
            run(out=out)
    assert (tmp_path / "out").read_text() == "x"


def test_an_empty_folder_is_used(tmp_path):
    assert run(out=tmp_path).path == tmp_path


def test_a_run_killed_before_its_first_manifest_continues(tmp_path):
    expected = run(out=tmp_path / "whole")
    out = tmp_path / "run"
    for name in ("inputs", "ledger"):
        (out / name).mkdir(parents=True)
    (out / ".lock").touch()
    (out / f"{DRAFT}abc").write_bytes(b'{"schema"')
    found = run(out=out)
    assert results_of(found) == results_of(expected)
    assert not list(out.rglob(f"{DRAFT}*"))


def test_a_run_killed_between_a_ledger_and_its_inputs_continues(tmp_path):
    expected = run(out=tmp_path / "run")
    results, rows = results_of(expected), rows_of(expected)
    manifest = json.loads((expected.path / "manifest.json").read_text())
    for name in ("inputs/part-000001-000.parquet", CHECKSUMS, "summary.json", "examples.jsonl"):
        (expected.path / name).unlink()
    found = run(out=tmp_path / "run")
    assert results_of(found) == results
    assert Counter(row.key for row in rows_of(found)) == Counter(row.key for row in rows)
    assert found.folder.manifest()["rows_by_kind"] == manifest["rows_by_kind"]


def test_parts_without_a_manifest_are_refused(tmp_path):
    found = run(seed=1, out=tmp_path / "run")
    for name in ("manifest.json", "summary.json", "examples.jsonl"):
        (found.path / name).unlink()
    with pytest.raises(ConfigError, match="holds no run"):
        run(seed=2, out=tmp_path / "run")


@pytest.mark.skipif(os.name != "posix", reason="locks are POSIX locks")
def test_a_folder_in_use_is_refused_and_its_drafts_are_left_alone(tmp_path):
    found = run(out=tmp_path / "run")
    draft = found.path / "ledger" / f"{DRAFT}abc"
    with RunFolder(found.path).opened():
        draft.write_bytes(b"another process is writing this")
        with pytest.raises(ConfigError, match="another process is writing to"):
            run(out=tmp_path / "run")
        assert draft.exists()


def test_a_folder_that_another_process_filled_meanwhile_is_refused(tmp_path):
    class Overtaken(Toy):
        """While it is being planned, a run with another seed starts and ends in the same folder."""

        def labels(self, task, *, scoring=None):
            if not (tmp_path / "run").exists():
                run(seed=1, out=tmp_path / "run")
            return super().labels(task, scoring=scoring)

    with pytest.raises(ConfigError, match="holds another run: seed is 1 there and 0 here"):
        run(model=Overtaken(), seed=0, out=tmp_path / "run")
    assert RunFolder.existing(tmp_path / "run").manifest()["config"]["seed"] == 1


# --- examples that take no part -----------------------------------------------------------------------------------


def test_empty_and_one_unit_texts_are_recorded_counted_and_not_averaged(tmp_path):
    odd = [{"text": ""}, {"text": "awful"}, {"text": " \n "}, *reviews(4)]
    found, clean = run(odd, out=tmp_path / "odd"), run(reviews(4), operators=["delete"], out=tmp_path / "clean")
    where = {"attribution": "attention", "operator": "delete"}
    assert [line.get("error") for line in lines_of(found, **where)] == [
        "the text has no unit",
        "the text has one unit, so there is no other set to compare with",
        "the text has no unit",
        *[None] * 4,
    ]
    line = line_of(found, **where)
    assert (line["n"], line["n_skipped"]) == (4, 3)
    assert line_of(clean, **where)["n"] == 4
    assert {row.key.example_id for row in rows_of(found)} == {"3", "4", "5", "6"}
    reasons = [row.skip_reason for row in found.folder.inputs(0)]
    assert reasons[1] == "the text has one unit, so there is no other set to compare with"


def test_a_share_that_takes_every_unit_leaves_nothing_to_compare(tmp_path):
    # Two units and one set: k below 1 never takes all of them.
    found = run([{"text": "awful film"}, {"text": "good film"}], k=0.99, operators=["delete"], out=tmp_path / "run")
    assert [line["m"] for line in lines_of(found, attribution="attention")] == [1, 1]


def test_a_run_without_any_usable_example_fails_and_says_why(tmp_path):
    with pytest.raises(ModelError, match=r"no example could be evaluated \(example '0': the text has one unit"):
        run([{"text": "awful"}, {"text": ""}], operators=["delete"], out=tmp_path / "run")
    lines = list(RunFolder.existing(tmp_path / "run").examples())
    assert len(lines) == 4 and all("error" in line for line in lines)


def test_scores_that_are_nan_are_recorded_and_counted(tmp_path):
    records = [*reviews(4), {"text": "the plague film had a fun and witty cast with a great deal of light"}]
    found = run(records, model=Fails("plague"), operators=["delete"], out=tmp_path / "run")
    [line] = lines_of(found, attribution="attention", example_id="4")
    assert line["error"] == "the model's score of the full or the empty input is not finite"
    assert (line_of(found, attribution="attention")["n"], line_of(found, attribution="attention")["n_skipped"]) == (
        4,
        1,
    )
    [full] = rows_of(found, "full", example_id="4")
    assert np.isnan(full.scores).all()


class FailsAlone(Fails):
    """Answers NaN where it reads the first bad word without the second."""

    def log_scores(self, batch, labels, *, prefix=0):
        scores = Toy.log_scores(self, batch, labels, prefix=prefix)
        scores[[self.bad[0] in row.ids and self.bad[1] not in row.ids for row in batch]] = np.nan
        return scores


def test_a_random_row_that_is_nan_spoils_its_example_alone(tmp_path):
    records = [*reviews(4), {"text": "plague cure film had a fun and witty cast with great music"}]
    found = run(records, model=FailsAlone("plague", "cure"), operators=["delete"], m=30, out=tmp_path / "run")
    [line] = lines_of(found, attribution="attention", example_id="4")
    assert line["error"] == "a score is not finite"
    assert line_of(found, attribution="attention")["n"] == 4
    again = run(records, model=FailsAlone("plague", "cure"), operators=["delete"], m=30, out=tmp_path / "run")
    assert again.folder.manifest()["rows"] == found.folder.manifest()["rows"]


def test_a_model_that_answers_nothing_but_nan_fails_the_run(tmp_path):
    with pytest.raises(ModelError, match="no example could be evaluated"):
        run(model=Fails("Review"), operators=["delete"], out=tmp_path / "run")


def test_an_attribution_that_is_nan_is_recorded_and_the_others_go_on(tmp_path):
    def sometimes(item):
        return np.full(item.n_units, np.nan) if item.example_id == "1" else planted(item)

    found = run(attributions={"mine": sometimes, "random": None}, operators=["delete"], out=tmp_path / "run")
    [line] = lines_of(found, attribution="mine", example_id="1")
    assert line["error"] == "the attribution 'mine' is not finite"
    assert (line_of(found, attribution="mine")["n"], line_of(found, attribution="random")["n"]) == (23, 24)
    assert np.isnan(found.folder.inputs(0)[1].attributions["mine"]).all()
    results = results_of(found)
    again = run(attributions={"mine": sometimes, "random": None}, operators=["delete"], out=tmp_path / "run")
    assert results_of(again) == results


def test_ids_with_odd_characters_come_through(tmp_path):
    ids = ["a/b", "..", "é\u2028ü", 'quo"te', "new\nline", " ", "👩‍🚀", "0" * 300]
    records = [{**record, "id": identity} for identity, record in zip(ids, reviews(8), strict=True)]
    found = run(records, out=tmp_path / "run")
    assert [line["example_id"] for line in lines_of(found, attribution="attention", operator="delete")] == ids
    assert {row.key.example_id for row in rows_of(found)} == set(ids)


@pytest.mark.parametrize("field", ["text", "id", "group"])
def test_text_that_is_no_unicode_is_refused_before_anything_is_written(tmp_path, field):
    with pytest.raises(DataError, match="example 1.*half of a character"):
        records = [{"text": "a fine film"}, {"text": "a dull film", field: "half a \ud83d pair"}]
        run(records, operators=["delete"], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


# --- what is refused before anything is written -------------------------------------------------------------------


class Bare(Toy):
    offers = frozenset()


@pytest.mark.parametrize(("name", "need"), [("attention", "attentions"), ("gradient", "gradients")])
def test_a_model_that_cannot_support_an_attribution_stops_at_planning(tmp_path, name, need):
    match = f"the attribution '{name}' needs {need}, which the model 'toy' does not offer"
    with pytest.raises(CapabilityError, match=match):
        run(model=Bare(), attributions=["random", name], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert line_of(run(model=Bare(), attributions=["random"], operators=["delete"], out=tmp_path / "run"))["n"] == 24


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


# --- files --------------------------------------------------------------------------------------------------------


def test_the_manifest_says_what_was_run_and_what_it_cost(tmp_path):
    model = Counting()
    found = run(model=model, out=tmp_path / "run")
    manifest = found.folder.manifest()
    assert (manifest["schema"], manifest["status"], manifest["config"]["seed"]) == (1, "complete", 0)
    assert manifest["labels"] == ["negative", "positive"]
    assert manifest["rows"] == len(rows_of(found)) == sum(manifest["rows_by_kind"].values())
    assert manifest["forwards"] + manifest["noise_guard"]["rows"] == model.asked
    assert manifest["forwards"] <= manifest["rows"]
    assert manifest["rows_by_kind"] == {
        "empty": 24,
        "full": 24,
        "random": 24 * 9 * 2,
        "rationale:attention": 48,
        "rationale:random": 48,
    }
    for name in ("config_hash", "identity", "token_budget", "threads", "versions", "tokens", "attribution_seconds"):
        assert name in manifest


def test_every_logical_row_has_its_own_key(tmp_path):
    found = run(k=[0.2, 0.35], n_fills=2, out=tmp_path / "run")
    keys = [row.key for row in rows_of(found)]
    assert len(set(keys)) == len(keys)


def test_lines_of_examples_match_the_contract(tmp_path):
    found = run([*reviews(4), {"text": "one"}], out=tmp_path / "run")
    lines = [json.loads(line) for line in (found.path / "examples.jsonl").read_text().split("\n")[:-1]]
    assert len(lines) == 5 * 2 * 3
    contract = {
        "win_rate": float, "win_rate_strict": float, "tie_rate": float, "p_value": float, "p_lower": float,
        "effect_size": (float, type(None)), "nsr": (float, type(None)), "flags": list, "rationale": list,
    }  # fmt: skip
    for line in lines:
        assert {"example_id", "attribution", "operator", "k", "direction"} <= set(line)
        if line["example_id"] == "4":
            assert isinstance(line["error"], str) and not set(contract) & set(line)
        else:
            assert all(isinstance(line[name], kind) for name, kind in contract.items()) and "error" not in line
            assert len(line["rationale"]) == 2 and line["rationale"] == sorted(line["rationale"])


def test_rationales_are_the_top_units_of_the_recorded_attributions(tmp_path):
    found = run(out=tmp_path / "run")
    vectors = {row.example_id: row.attributions["random"] for part in (0, 1) for row in found.folder.inputs(part)}
    for line in lines_of(found, attribution="random", operator="delete"):
        top = np.argsort(vectors[line["example_id"]])[::-1][: len(line["rationale"])]
        assert line["rationale"] == sorted(top.tolist())


RESCORE = """
import sys
from ice_eval.cli import main
try:
    main()
finally:
    assert not {"torch", "transformers"} & set(sys.modules), "a model library was imported"
"""


def test_rescoring_gives_the_same_bytes_without_a_model_library(tmp_path):
    found = run(attributions={"mine": planted, "random": None}, k=[0.2, 0.35], out=tmp_path / "run")
    results = results_of(found)
    for name in ("summary.json", "examples.jsonl"):
        (found.path / name).write_text("")
    done = subprocess.run([sys.executable, "-c", RESCORE, "rescore", found.path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert results_of(found) == results


def test_an_unfinished_run_is_not_rescored(tmp_path):
    found = run(out=tmp_path / "run")
    manifest = found.folder.manifest()
    found.folder.write_manifest({**manifest, "status": "running"})
    with pytest.raises(ConfigError, match="holds an unfinished run; run the same command again"):
        found.rescore()


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
    assert [line["gold"] for line in lines] == [1, 2, None]
    assert [line["n_units"] for line in lines] == [5, 4, 3]
    assert line_of(found, attribution="attention")["accuracy"] == 0.5
