"""Examples that share a passage, in whole runs."""

import zlib

import numpy as np
import pytest
from tests.small_runs import Told, line_of, lines_of, run, task_of, texts

import ice_eval as ice
from ice_eval import stats
from ice_eval.errors import ConfigError
from ice_eval.tasks import Records, Task, data_notes


def by_text(item):
    """The same rationale for the same text."""
    return [zlib.crc32(f"{word}|{len(item.texts)}".encode()) / 2**32 for word in item.texts]


def records(n_groups, *, grouped):
    """Four questions about each text."""
    found = [{"text": text, "group": f"passage {i}"} for i, text in enumerate(texts(n_groups, words=(16, 16)))]
    several = [record for record in found for _ in range(4)]
    return several if grouped else [{**record, "group": str(place)} for place, record in enumerate(several)]


@pytest.fixture(scope="module")
def both():
    return [run(records(30, grouped=each), attributions={"mine": by_text}, m=20) for each in (False, True)]


def test_shared_passages_widen_the_interval_and_are_flagged(both):
    alone, shared = map(line_of, both)
    assert shared.win_rate == alone.win_rate
    low, high = shared.win_rate_ci
    assert high - low > 1.5 * (alone.win_rate_ci[1] - alone.win_rate_ci[0])
    assert shared.p_value > alone.p_value
    assert shared.detectable_win_rate > alone.detectable_win_rate
    assert "grouped" in shared.flags and "grouped" not in alone.flags


def test_the_interval_is_that_of_group_means_where_groups_are_equally_large(both):
    rates = np.array([line.win_rate for line in lines_of(both[1])]).reshape(30, 4).mean(axis=1)
    assert line_of(both[1]).win_rate_ci == pytest.approx(stats.mean_interval(rates), abs=1e-9)
    # By the definition, for the lower limit: four gamblers own 40 on average against it.
    low, bets = line_of(both[1]).win_rate_ci.low, np.array([0.25, 0.5, 0.75, 1.0])
    wealth = np.prod(1 + bets[:, None] * (rates / low - 1), axis=1)
    assert wealth.mean() == pytest.approx(40, rel=1e-6)


def test_lines_of_examples_are_the_same_with_and_without_groups(both):
    alone, shared = map(lines_of, both)
    assert alone == shared


@pytest.mark.parametrize("settings", [{"adaptive": "examples"}, {"adaptive": "dataset"}, {"nulls": ["position"]}])
def test_groups_go_with_every_kind_of_run(settings):
    found = run(records(6, grouped=True), attributions={"mine": by_text}, **settings)
    line = line_of(found)
    assert "grouped" in line.flags
    # Six passages, each with four questions, tell no more than six texts.
    assert line.win_rate_ci == pytest.approx(
        stats.mean_interval(np.array([each.win_rate for each in lines_of(found)]), groups=np.repeat(range(6), 4))
    )


def test_examples_that_share_a_text_are_a_group_without_a_column(both):
    told = Told()
    bare = [{"text": record["text"]} for record in records(30, grouped=True)]
    found = run(bare, attributions={"mine": by_text}, m=20, reporter=told)
    shared = line_of(both[1])
    assert line_of(found).win_rate_ci == shared.win_rate_ci
    assert line_of(found).p_value == shared.p_value
    assert "grouped" in line_of(found).flags
    [message] = [each for each in told.messages if "several examples" in each]
    assert message.startswith("30 texts occur in several examples (120 of 120); intervals and tests treat")
    assert "--columns group=id" in message
    assert message in found.folder.manifest().messages


LONG = ["the first of two long passages", "the second of two long passages", "a passage that occurs only once"]


def groups(rows, **changes):
    pair = Task(data=Records(rows), prompt="{a} so {b}", label_words={"no": " no", "yes": " yes"}, **changes)
    return [example.group for example in pair.examples()]


def test_examples_that_share_one_of_several_fields_are_connected():
    rows = [
        {"a": LONG[0], "b": "x"}, {"a": LONG[2], "b": "y"}, {"a": LONG[1], "b": "z"},
        {"a": LONG[0], "b": LONG[1]}, {"a": "w", "b": LONG[1]}, {"a": LONG[1], "b": "v"},
    ]  # fmt: skip
    first, second = "same text as 0", "same text as 2"
    # The fourth and the fifth share a second field. A text counts in the field that it is in.
    assert groups(rows) == [first, None, second, first, first, second]


def test_short_fields_may_recur_in_independent_examples():
    rows = [{"a": f"a review of restaurant {i}", "b": "food"} for i in range(3)]
    assert groups(rows) == [None] * 3
    assert groups([*rows, rows[1]]) == [None, "same text as 1", None, "same text as 1"]
    assert groups(rows, group="b") == ["same text as 0"] * 3


def test_only_explained_fields_make_groups():
    rows = [{"a": LONG[0], "b": f"question {i}"} for i in range(3)]
    assert groups(rows, explain=("b",)) == [None] * 3
    assert groups(rows, explain=("b",), group="a") == ["same text as 0"] * 3
    with pytest.raises(ConfigError, match="cannot group by 'c': the prompt has the fields a, b"):
        groups(rows, group="c")


def test_a_column_takes_precedence_over_shared_texts(tmp_path):
    assert groups([{"a": "x", "b": "y", "group": str(i)} for i in range(2)]) == ["0", "1"]
    file = tmp_path / "data.csv"
    file.write_text("id,text\none,a film\ntwo,a film\n", encoding="utf-8")
    task = task_of([], data=ice.FileData(file))
    assert [example.group for example in task.examples()] == ["same text as one"] * 2
    assert data_notes(task, task.examples())[-1].startswith("1 text occurs in several examples (2 of 2)")
    apart = task_of([], data=ice.FileData(file, {"group": "id"}))
    assert [example.group for example in apart.examples()] == ["one", "two"]
    assert not data_notes(apart, apart.examples())
