"""Real servers on this machine: one that gives log-probabilities, and one that only seems to."""

import numpy as np
import pytest
from tests.live.serving import transformers_serve
from tests.small_runs import shown_rows

import ice_eval as ice
from ice_eval.errors import ConfigError

pytestmark = [pytest.mark.slow, pytest.mark.smollm2]

SETTINGS = {"attributions": ["occlusion", "random"], "operators": ["delete"], "n": 4, "m": 6, "unit": "word"}
CLOSE = 0.5
"""Largest difference of a row's log-odds: the server computes with 8-bit activations."""
USUAL = 0.15
"""Mean difference of a row's log-odds."""


def rows_of(found):
    return {row.key: row for row in shown_rows(found.folder)}


@pytest.fixture(scope="module")
def local(smollm2):
    """Scores of the model on this machine, by what it was shown."""
    found = ice.evaluate(smollm2, "demo", **SETTINGS)
    return {(row.key.example_id, row.text): row.scores for row in rows_of(found).values()}


@pytest.mark.parametrize("tokenizer", [None, "smollm2"])
def test_llama_cpp_gives_the_scores_of_the_same_weights_here(llama, local, tokenizer):
    model = ice.Served("smollm2", base_url=llama, tokenizer=tokenizer, concurrency=2)
    found = ice.evaluate(model, "demo", **SETTINGS)
    server = found.folder.manifest().server
    assert (server.prompts, server.echo, server.rows_without_score) == ("text", False, 0)
    assert server.label_tokens == ((" negative",), (" positive",))
    both = [
        (row.scores, local[row.key.example_id, row.text])
        for row in rows_of(found).values()
        if (row.key.example_id, row.text) in local
    ]
    assert len(both) > 0.5 * len(rows_of(found))
    ours, theirs = (np.array([pair[side] for pair in both]) for side in (0, 1))
    differences = np.abs((ours[:, 1] - ours[:, 0]) - (theirs[:, 1] - theirs[:, 0]))
    print(f"{len(both)} rows, log-odds differ by {differences.mean():.3f} on average, {differences.max():.3f} at most")
    assert differences.max() < CLOSE
    assert differences.mean() < USUAL


def test_llama_cpp_explains_itself_in_a_chat(llama):
    model = ice.Served("smollm2", base_url=llama, concurrency=2)
    found = ice.evaluate(model, "demo", **{**SETTINGS, "attributions": ["self-explanation"], "n": 2, "m": 2})
    assert all(row.answers["self-explanation"].text for row in found.folder.inputs(0))


def test_llama_cpp_cannot_score_labels_that_begin_alike(llama):
    task = ice.Task(
        data=ice.Records([{"text": "a film with a slow start"}]),
        prompt="Review: {text}\nSentiment:",
        label_words={"bad": " very bad", "good": " very good"},
    )
    with pytest.raises(ConfigError, match="missing or contradict those of the next token"):
        ice.evaluate(ice.Served("smollm2", base_url=llama), task, **SETTINGS)


def test_transformers_serve_is_refused_with_the_reason(smollm2, tmp_path):
    folder = str(smollm2.codec.tokenizer.name_or_path)
    with transformers_serve(folder, tmp_path / "log") as url:
        with pytest.raises(ConfigError) as caught:
            ice.evaluate(ice.Served(folder, base_url=url), "demo", **SETTINGS, out=tmp_path / "run")
    said = str(caught.value)
    assert f"{url} gives no log-probabilities" in said
    assert "and no logprobs" in said
    assert "vLLM, SGLang, llama.cpp" in said
    assert not (tmp_path / "run").exists()
