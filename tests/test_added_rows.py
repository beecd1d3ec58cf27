"""What is added to a folder is scored as if it had been there from the start."""

import numpy as np
from tests.rows import ledger_rows

import ice_eval as ice
from ice_eval.models.toy import Toy

LABELS = {"negative": " negative", "positive": " positive"}


class Rounding(Toy):
    """A toy whose scores depend on the batch by rounding, as those of any real model do."""

    def log_scores(self, batch, labels, *, prefix=0):
        return super().log_scores(batch, labels, prefix=prefix) + 1e-7 * len(batch) * np.array([1.0, -1.0])


def task():
    texts = ["good good bad film good film", "bad film bad film awful good", "fun fun dull dull fun film film"]
    return ice.Task(
        data=ice.Records([{"text": text, "label": i % 2} for i, text in enumerate(texts * 6)]),
        prompt="Review: {text}\nSentiment:",
        label_words=LABELS,
    )


def test_an_input_that_stands_in_the_ledger_is_never_scored_again(tmp_path):
    settings = {"operators": ["delete"], "m": 9, "k": 0.34}
    at_once = ice.evaluate(Rounding(), task(), attributions=["gradient", "random"], out=tmp_path / "once", **settings)
    ice.evaluate(Rounding(), task(), attributions=["gradient"], out=tmp_path / "added", **settings)
    added = ice.evaluate(Rounding(), task(), attributions=["random"], out=tmp_path / "added", **settings)
    scores = {}
    for part in added.folder.parts():
        for row in ledger_rows(added.folder, part):
            assert scores.setdefault((part, row.input_ids), row.scores) == row.scores
    columns = ["attribution", "win_rate", "tie_rate", "p_value"]
    assert at_once.summary()[columns].to_dict() == added.summary()[columns].to_dict()
    assert at_once.summary()["tie_rate"].max() > 0.05  # ties are what a second scoring would undo


def test_a_text_of_many_words_is_encoded_in_time():
    text = "word " * 120_000  # the window of the toy model is 100,000 tokens
    run = ice.evaluate(
        "toy",
        ice.Task(data=ice.Records([{"text": text}]), prompt="{text} .", label_words=LABELS),
        attributions=["random"],
        operators=["delete"],
        m=2,
    )
    [row] = run.folder.inputs(0)
    assert len(row.spans) == 99_999
    assert (row.truncated, row.n_cut) == (True, 20_001)


def test_almost_all_units_are_not_all_units():
    run = ice.evaluate("toy", task(), attributions=["random"], operators=["delete"], m=3, k=0.9999999999999)
    assert run.summary()["n"].tolist() == [18]
