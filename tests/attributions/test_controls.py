"""Controls: what they say of a text without a model, and what they refuse."""

import numpy as np
import pytest

import ice_eval
from ice_eval.errors import CapabilityError
from ice_eval.models.toy import WEIGHTS
from ice_eval.tasks import Records, Task

TEXTS = ["a film with a very enjoyable plot", "the film of a broken town", "film about a film", "plot of a town"]


def task_of(records, **changes):
    labels = {"negative": " negative", "positive": " positive"}
    return Task(**{"data": Records(records), "prompt": "Review: {text}\nSentiment:", "label_words": labels} | changes)


def run(names, records=None, *, task=None, **settings):
    task = task or task_of([{"text": text} for text in TEXTS] if records is None else records)
    return ice_eval.evaluate("toy", task, attributions=names, operators=["delete"], m=5, **settings)


def vectors(found, name):
    rows = [row for part in found.folder.parts() for row in found.folder.inputs(part)]
    return {row.example_id: list(row.attributions[name]) for row in rows if name in row.attributions}


@pytest.mark.parametrize(("name", "rationale"), [("first-k", [0, 1]), ("last-k", [5, 6])])
def test_first_and_last_units_are_chosen(name, rationale):
    found = run([name], k=0.3)
    assert next(found.folder.examples()).rationale == tuple(rationale)


def test_longest_words_are_counted_in_characters():
    assert vectors(run(["longest-words"]), "longest-words")["0"] == [1, 4, 4, 1, 4, 9, 4]


def test_rarity_is_counted_in_the_whole_data_whatever_the_case():
    found = run(["rarest-tokens"], [{"text": text} for text in [*TEXTS, "FILM town"]], n=1)
    #        a   film with a  very enjoyable plot
    counts = [5, 5, 1, 5, 1, 1, 2]
    assert vectors(found, "rarest-tokens") == {"0": pytest.approx((-np.log(counts)).tolist())}


def test_rarity_shares_its_counts_with_the_null_of_equal_frequency():
    alone, beside = run(["rarest-tokens"]), run(["rarest-tokens"], nulls=["size", "frequency"])
    assert vectors(alone, "rarest-tokens") == vectors(beside, "rarest-tokens")


def test_the_lexicon_of_the_task_is_known_to_its_control():
    task = task_of([{"text": text} for text in TEXTS], lexicon=frozenset({"Enjoyable", "broken"}))
    found = vectors(run(["lexicon"], task=task), "lexicon")
    assert found == {"0": [0, 0, 0, 0, 0, 1, 0], "1": [0, 0, 0, 0, 1, 0], "2": [0] * 4, "3": [0] * 4}


def test_without_a_lexicon_gold_labels_say_which_words_give_a_label_away():
    texts = [f"{'splendid' if index % 2 else 'dreary'} film number {index}" for index in range(24)]
    records = [{"text": text, "label": index % 2} for index, text in enumerate(texts)]
    found = vectors(run(["lexicon"], records), "lexicon")
    assert all(values == [1, 0, 0, 0] for values in found.values())


def test_a_task_that_knows_no_telling_word_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(CapabilityError, match="'lexicon' needs words that give a label away: the task 'custom' has no"):
        run(["lexicon"], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def marked(text, *spans):
    return {"text": text, "rationale": [list(span) for span in spans]}


def test_human_marks_become_shares_of_units_and_overlaps_count_once():
    #                      0         1
    #                      0123456789012345
    records = [marked("a gorgeous film!", (2, 6), (4, 10), (11, 13)), marked("a dull film", (2, 6))]
    found = vectors(run(["human"], records), "human")
    assert found == {"0": [0, 1, 0.5, 0], "1": [0, 1, 0]}


def test_examples_that_nobody_marked_are_counted_and_the_run_goes_on():
    found = run(["human", "first-k"], [marked("a dull film", (2, 6)), {"text": "a good film"}])
    summary = found.summary().set_index("attribution")
    assert summary["n"].to_dict() == {"human": 1, "first-k": 2}
    assert summary["n_skipped"].to_dict() == {"human": 1, "first-k": 0}
    [line] = [line for line in found.folder.examples() if line.error is not None]
    assert (line.example_id, line.error) == ("1", "the attribution 'human' marks no unit of the text")


@pytest.mark.parametrize(
    ("records", "settings", "message"),
    [
        (None, {}, "'human' needs human rationales, and no example of the data has one"),
        ([{"text": "a b c"}, marked("a b c", (0, 1))], {"n": 1}, "no example of the data has one"),
        ([marked("a b c", (0, 1))], {"scope": "prompt"}, "with scope 'prompt' the template is explained too"),
    ],
)
def test_data_without_marks_are_refused_before_anything_is_written(tmp_path, records, settings, message):
    with pytest.raises(CapabilityError, match=message):
        run(["human"], records, out=tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


def test_controls_need_nothing_of_a_model():
    def always(texts):
        return [[0.3, 0.7]] * len(texts)

    task = task_of([marked(text, (0, 4)) for text in TEXTS], lexicon=frozenset({"broken"}), prompt="{text}")
    names = ["first-k", "last-k", "longest-words", "rarest-tokens", "lexicon", "human", "random"]
    found = ice_eval.evaluate(always, task, attributions=names, operators=["delete"], m=5)
    assert found.summary()["attribution"].tolist() == names


def test_only_the_control_that_knows_the_right_words_beats_chance_on_the_toy():
    rng = np.random.default_rng(3)
    good = [word for word in WEIGHTS if WEIGHTS[word] > 0]
    neutral = np.array([f"w{index}" for index in range(200)])
    texts = [
        " ".join(rng.permutation([*rng.choice(good, 2, replace=False), *rng.choice(neutral, 10, replace=False)]))
        for _ in range(60)
    ]
    task = task_of([{"text": text} for text in texts], lexicon=frozenset(good))
    summary = run(["lexicon", "first-k", "last-k"], task=task).summary().set_index("attribution")
    assert summary["win_rate"]["lexicon"] > 0.95
    assert summary["win_rate"]["first-k"] == pytest.approx(0.5, abs=0.15)
    assert summary["win_rate"]["last-k"] == pytest.approx(0.5, abs=0.15)
