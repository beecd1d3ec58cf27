"""Names of runs, and what changed between them: the same examples are paired, others are not."""

import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.small_runs import lines_of, picks, run, task_of, texts

from ice_eval import stats
from ice_eval.errors import ConfigError
from ice_eval.results import RunFolder, differences, slug
from ice_eval.results.identity import PROMPT_HASH

MINE = {"good": picks("good", towards=3.0), "poor": picks("poor")}


def records(found, *, first=0):
    return [{"id": f"e{first + place}", "text": text} for place, text in enumerate(found)]


@pytest.fixture(scope="module")
def before():
    return run(task_of(records(texts(24))), attributions=MINE, operators=["delete", "mask-unk"], m=12, n=24)


@pytest.fixture(scope="module")
def after():
    """Other random sets, four examples more, a text that changed, and an operator less."""
    found = records(texts(28))
    found[5]["text"] = "quite another text with some eleven or twelve words in it altogether"
    return run(task_of(found), attributions=MINE, operators=["delete"], m=12, n=28, seed=1)


@pytest.fixture(scope="module")
def elsewhere():
    """The same ids over other texts."""
    return run(task_of(records(texts(20, seed=5))), attributions=MINE, operators=["delete"], m=12, n=20)


def difference(first, *others):
    return differences(first.folder, [other.folder for other in others])


def rates(found, ids=None, **where):
    lines = {line.example_id: line.win_rate for line in lines_of(found, **where)}
    return np.array([lines[each] for each in (lines if ids is None else ids)])


def test_examples_are_the_same_by_id_and_text(before, after):
    [found] = difference(before, after)
    assert (found.n_first, found.n_second, found.n_shared, found.n_other_text) == (24, 28, 23, 1)


def test_shared_examples_are_paired(before, after):
    [found] = difference(before, after)
    same = [f"e{place}" for place in range(24) if place != 5]
    for line in found.configurations:
        where = {"attribution": line.attribution, "operator": line.operator}
        left, right = rates(before, same, **where), rates(after, same, **where)
        assert (line.paired, line.n_first, line.n_second) == (True, 23, 23)
        assert line.win_rate_first == pytest.approx(left.mean())
        assert line.difference == pytest.approx((right - left).mean())
        assert line.difference_ci.low < line.difference < line.difference_ci.high
        assert 0 < line.p_value <= line.p_adjusted <= 1


def test_verdicts_are_those_of_the_runs(before, after):
    [found] = difference(before, after)
    for line in found.configurations:
        for run_, verdict in ((before, line.verdict_first), (after, line.verdict_second)):
            lines = run_.folder.summary().configurations
            [own] = [each for each in lines if (each.attribution, each.operator) == (line.attribution, line.operator)]
            assert verdict == own.verdict


def test_other_examples_are_not_paired(before, elsewhere):
    [found] = difference(before, elsewhere)
    assert (found.n_shared, found.n_other_text) == (0, 20)
    for line in found.configurations:
        where = {"attribution": line.attribution, "operator": line.operator}
        expected = stats.unpaired_difference(rates(before, **where), rates(elsewhere, **where))
        assert (line.paired, line.n_first, line.n_second) == (False, 24, 20)
        assert (line.difference, line.difference_ci, line.p_value) == (
            expected.difference,
            expected.interval,
            expected.p_value,
        )


def test_few_shared_examples_are_not_enough_to_pair(before):
    shared = records(texts(24))[:5]
    other = run(
        task_of([*shared, *records(texts(19, seed=5), first=5)]), attributions=MINE, operators=["delete"], m=12, n=24
    )
    [found] = difference(before, other)
    assert found.n_shared == 5
    assert {(line.paired, line.n_first) for line in found.configurations} == {(False, 24)}


def test_a_run_does_not_differ_from_itself(before):
    [found] = difference(before, before)
    assert (found.settings, found.only_first, found.only_second) == ((), (), ())
    for line in found.configurations:
        assert (line.difference, line.p_value) == (0.0, 1.0)
        assert line.difference_ci.low == pytest.approx(-line.difference_ci.high)


def test_settings_that_differ_are_named(before, after):
    [found] = difference(before, after)
    named = {setting.field: (setting.first, setting.second) for setting in found.settings}
    assert named["seed"] == (0, 1)
    assert named["n"] == (24, 28)
    assert named["operators"] == (["delete", "mask-unk"], ["delete"])
    assert "data" in named
    assert not {"m", "unit", "model", "attributions"} & set(named)


def test_the_order_of_names_is_no_difference_but_that_of_labels_is(before, tmp_path):
    manifest = before.folder.manifest()
    copy = RunFolder(tmp_path)
    shutil.copytree(before.path, tmp_path, dirs_exist_ok=True)
    config = replace(manifest.config, operators=manifest.config.operators[::-1])
    copy.write_manifest(replace(manifest, config=config, labels=manifest.labels[::-1]))
    [found] = differences(before.folder, [copy])
    assert [setting.field for setting in found.settings] == ["labels"]


def test_configurations_of_one_run_are_listed(before, after):
    [found] = difference(before, after)
    assert {cell.operator for cell in found.only_first} == {"mask-unk", "all"}
    assert found.only_second == ()


def test_p_values_are_adjusted_over_all_runs(before, after, elsewhere):
    found = difference(before, after, elsewhere)
    lines = [line for each in found for line in each.configurations]
    assert [line.p_adjusted for line in lines] == pytest.approx(
        stats.adjusted(np.array([line.p_value for line in lines])).tolist()
    )


def test_the_same_texts_are_paired_whatever_may_be_removed(before):
    whole = run(task_of(records(texts(24))), attributions=MINE, operators=["delete"], m=12, n=24, scope="prompt")
    [found] = difference(before, whole)
    assert (found.n_shared, found.n_other_text) == (24, 0)
    assert all(line.paired for line in found.configurations)


def test_a_task_that_differs_in_more_than_its_prompt_is_another_setting(before):
    words = {"negative": " poor", "positive": " fine"}
    other = run(task_of(records(texts(24)), label_words=words), attributions=MINE, operators=["delete"], m=12, n=24)
    [found] = difference(before, other)
    assert PROMPT_HASH in {setting.field for setting in found.settings}
    assert "prompt" not in {setting.field for setting in found.settings}


def test_other_numbers_under_the_same_name_are_another_setting():
    of_other = {"good": MINE["poor"], "poor": MINE["poor"]}
    first, same, other = (
        run(task_of(records(texts(6))), attributions=mine, m=5, n=6) for mine in (MINE, dict(MINE), of_other)
    )
    assert difference(first, same)[0].settings == ()
    [setting] = difference(first, other)[0].settings
    assert setting.field == "numbers of good" and setting.first != setting.second


def test_groups_are_kept_whole():
    found = [{**record, "group": f"g{place // 4}"} for place, record in enumerate(records(texts(24)))]
    first, second = (
        run(task_of(found), attributions=MINE, operators=["delete"], m=8, n=24, seed=seed) for seed in (0, 1)
    )
    [grouped] = difference(first, second)
    ids = [f"e{place}" for place in range(24)]
    line = grouped.configurations[0]
    where = {"attribution": line.attribution, "operator": "delete"}
    means = (rates(second, ids, **where) - rates(first, ids, **where)).reshape(6, 4).mean(axis=1)
    assert line.p_value == pytest.approx(stats.mean_pvalue(means, 0.0, scale=(-1, 1)))
    assert line.difference_ci == pytest.approx(stats.mean_interval(means, scale=(-1, 1)))


def test_the_result_is_json(before, elsewhere):
    [found] = difference(before, elsewhere)
    content = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert content["n_other_text"] == 20
    assert content["configurations"][0]["attribution"] == "good"


def test_a_frame_in_python(before, after):
    frame = before.compare(after)
    assert frame["attribution"].tolist() == ["good", "poor"]
    assert {"difference", "difference_ci", "p_value", "p_adjusted", "paired"} <= set(frame)
    assert {"field": "seed", "first": 0, "second": 1} in frame.attrs["settings"]
    assert before.compare(after.path).equals(frame)


def test_a_folder_without_a_run_is_refused(before, tmp_path):
    with pytest.raises(ConfigError, match="is not a run folder"):
        before.compare(tmp_path)


def test_ids_that_name_examples_of_other_labels_are_not_compared_by_id():
    labelled = [{**record, "label": "positive"} for record in records(texts(6))]
    one = run(task_of(labelled), attributions=MINE, m=5, n=6)
    other = run(task_of([*labelled[:4], *({**each, "label": "negative"} for each in labelled[4:])]), m=5, n=6)
    with pytest.raises(
        ConfigError, match=r"^example 'e4' has the gold label 1 in .* and 0 in .*cannot be compared by id"
    ):
        differences(one.folder, [other.folder], by_id=True)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("sst2/minimal", "sst2-minimal"),
        ("org/Model-7B_v1.5", "org-Model-7B_v1.5"),
        ("../../etc/passwd", "etc-passwd"),
        ("..", "run"),
        ("", "run"),
        (".hidden", "hidden"),
        ("a\x00b\x1b[31m\nc", "a-b--31m-c"),
        ("C:\\x", "C--x"),
        ("con", "run-con"),
        ("NUL.txt", "run-NUL.txt"),
        ("console", "console"),
        ("\ud800x", "x"),
        ("电影", "电影"),
    ],
)
def test_a_name_as_a_part_of_a_file_name(name, part):
    assert slug(name) == part


@given(st.text(st.characters(), max_size=300))
def test_any_name_is_a_part_that_any_file_system_takes(name):
    part = slug(name)
    assert 0 < len(os.fsencode(part)) <= 84
    assert part == os.path.basename(part) and not part.startswith(".") and not part.endswith((".", " "))
    assert not set(part) & set('/\\:*?"<>|\x00')
