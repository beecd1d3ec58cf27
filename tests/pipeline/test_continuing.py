"""A folder continues the run it holds, with what is added, and no other."""

import json
import os
from collections import Counter
from dataclasses import replace

import pytest
from tests.small_runs import Told, lines_of, results_of, rows_of
from tests.toy_runs import NEUTRAL, Counting, planted, reviews, run, stamps_of, task_of

from ice_eval.attributions.perturbation import Lime, Occlusion
from ice_eval.errors import ConfigError
from ice_eval.files import DRAFT
from ice_eval.models.toy import Toy
from ice_eval.results import RunFolder, numbers_hash
from ice_eval.results.folder import CHECKSUMS


def test_the_same_run_again_scores_nothing_and_leaves_the_same_bytes(tmp_path):
    model = Counting()
    found = run(model=model, out=tmp_path / "run")
    asked, results, rows = model.asked, results_of(found), rows_of(found)
    parts = {name: content for name, content in stamps_of(found.path).items() if name.name.startswith("part-")}
    again = run(model=model, out=tmp_path / "run")
    assert model.asked == asked > 0
    assert results_of(again) == results
    assert rows_of(again) == rows
    assert {name: c for name, c in stamps_of(found.path).items() if name.name.startswith("part-")} == parts != {}


def test_a_folder_from_before_an_optional_setting_continues(tmp_path):
    first = run(out=tmp_path / "run")
    path, results = tmp_path / "run" / "manifest.json", results_of(first)
    manifest = json.loads(path.read_text(encoding="utf-8"))
    assert manifest["config"].pop("min_confidence") is None
    path.write_text(json.dumps(manifest), encoding="utf-8")
    again = run(out=tmp_path / "run")
    assert results_of(again) == results
    assert again.folder.manifest().config.min_confidence is None


def unadjusted(found):
    """The lines of a summary without what depends on how many of them there are."""
    names = ("p_adjusted", "win_rate_ci_simultaneous", "verdict_simultaneous")
    return [replace(line, **dict.fromkeys(names)) for line in found.folder.summary().configurations]


# Eight random sets: as many fills, and a rationale is scored under each of them and once without.
ADDITIONS = {
    "attributions": (["attention"], ["attention", "gradient"], {"rationale": 24 * 9}),
    "operators": (["delete"], ["delete", "infill"], {"random": 24 * 9, "rationale": 24 * 8}),
    "k": ([0.2], [0.2, 0.35], {"random": 24 * 9 * 2, "rationale": 24 * 9}),
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
    new = Counter(manifest.cost.rows_by_kind) - Counter(counted.cost.rows_by_kind)
    assert new == expected
    assert manifest.cost.rows - counted.cost.rows == sum(expected.values())
    assert set(rows) <= set(rows_of(grown))
    assert all(line in lines_of(grown) for line in lines)
    assert all(line in unadjusted(grown) for line in configurations if line.operator != "all")

    whole = run(**base | {field: after}, out=tmp_path / "whole")
    assert results_of(grown) == results_of(whole)
    assert sorted(rows_of(grown), key=repr) == sorted(rows_of(whole), key=repr)


def test_what_a_folder_holds_need_not_be_named_again(tmp_path):
    run(attributions=["attention"], operators=["delete"], out=tmp_path / "run")
    grown = run(attributions=["random"], operators=["infill"], k=0.35, out=tmp_path / "run")
    config = grown.folder.manifest().config
    assert (config.attributions, config.operators) == (("attention", "random"), ("delete", "infill"))
    assert config.k == (0.2, 0.35)
    assert len(grown.summary()) == 2 * 3 * 2


def test_a_name_stands_for_one_method_with_its_fields(tmp_path):
    few = Lime(operator="mask-unk", n_samples=8)
    found = run(attributions={"lime": few, "mine": planted, "random": None}, operators=["delete"], out=tmp_path / "run")
    assert found.folder.manifest().attributions == {
        "lime": {"method": "lime", "operator": "mask-unk", "n_samples": 8, "kernel_width": 0.25},
        "mine": {"method": "Computed", "numbers": numbers_hash(found.folder, "mine")},
        "random": {"method": "random"},
    }
    before = stamps_of(found.path)
    for other, difference in (
        (Lime(operator="mask-unk", n_samples=9), "n_samples is 8 there and 9 here"),
        (Lime(n_samples=8), "operator is 'mask-unk' there and 'delete' here"),
        (Occlusion(operator="mask-unk"), "method is 'lime' there and 'occlusion' here"),
        (None, "n_samples is 8 there and 500 here"),
    ):
        with pytest.raises(ConfigError, match=f"holds another attribution 'lime': .*{difference}"):
            run(attributions={"lime": other, "mine": planted}, operators=["delete"], out=tmp_path / "run")
    assert stamps_of(found.path) == before
    run(attributions={"lime": few, "mine": planted}, operators=["infill"], out=tmp_path / "run")


def test_a_brought_attribution_must_be_given_again_to_continue(tmp_path):
    run(attributions={"mine": planted}, out=tmp_path / "run")
    before = stamps_of(tmp_path / "run")
    with pytest.raises(ConfigError, match="the folder holds the attribution 'mine', which is not given now"):
        run(attributions=["random"], out=tmp_path / "run")
    assert stamps_of(tmp_path / "run") == before


def test_a_brought_attribution_with_other_values_is_refused_and_nothing_changes(tmp_path):
    found = run(attributions={"mine": planted}, out=tmp_path / "run")
    before = stamps_of(found.path)
    with pytest.raises(ConfigError, match="holds other values of the attribution 'mine' for example '0'"):
        run(attributions={"mine": lambda item: -planted(item)}, out=tmp_path / "run")
    assert stamps_of(found.path) == before
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


@pytest.mark.parametrize("field", REFUSED)
def test_another_run_is_refused_by_the_field_that_differs(finished, field):
    before = stamps_of(finished.path)
    with pytest.raises(ConfigError, match=rf"holds another run: {field} is [^;]*\. Use another --out") as caught:
        run(**REFUSED[field], out=finished.path)
    assert str(finished.path) in str(caught.value)
    assert stamps_of(finished.path) == before


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
    before = stamps_of(out)
    with pytest.raises(ConfigError, match="exists but is not a run folder; choose an --out that is empty or new"):
        run(out=out)
    assert stamps_of(out) == before and [p.name for p in out.iterdir()] == ["chapter.tex"]


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
    manifest = expected.folder.manifest()
    for name in ("inputs/part-000001-000.parquet", CHECKSUMS, "summary.json", "examples.parquet"):
        (expected.path / name).unlink()
    found = run(out=tmp_path / "run")
    assert results_of(found) == results
    assert Counter(row.key for row in rows_of(found)) == Counter(row.key for row in rows)
    assert found.folder.manifest().cost.rows_by_kind == manifest.cost.rows_by_kind


def test_parts_without_a_manifest_are_refused(tmp_path):
    found = run(seed=1, out=tmp_path / "run")
    for name in ("manifest.json", "summary.json", "examples.parquet"):
        (found.path / name).unlink()
    with pytest.raises(ConfigError, match="is not a run folder"):
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
    assert RunFolder.existing(tmp_path / "run").manifest().config.seed == 1


def test_a_folder_with_other_units_of_a_text_is_not_continued(tmp_path):
    whole = run(model=Toy(), out=tmp_path / "run")
    narrow = Toy()
    narrow.codec.max_tokens = 12
    with pytest.raises(ConfigError, match=r"holds example '0' in \d+ units, and here it has \d+.*use another --out"):
        run(model=narrow, out=whole.path)


def test_cut_texts_are_counted_before_the_first_row_and_in_the_summary(tmp_path):
    heard, narrow = Told(), Toy()
    narrow.codec.max_tokens = 12
    found = run(model=narrow, out=tmp_path / "run", reporter=heard)
    cut = found.folder.summary().cut
    rows = [row for part in found.folder.parts() for row in found.folder.inputs(part)]
    assert cut.n == sum(row.n_cut > 0 for row in rows) > 0
    assert sum(f"{cut.n} of {cut.total} texts were cut, and lost" in message for message in heard.messages) == 1
