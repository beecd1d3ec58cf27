"""Every task of the suite on a real sample of its data: what is encoded, what infill writes, and whole runs."""

import unicodedata
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import ice_eval as ice
from ice_eval.encoding import encode
from ice_eval.models import load_model
from ice_eval.operators import Blacklist, FillPool, PooledUnits, operators
from ice_eval.tasks import FileData, load_task

SAMPLES = {
    "ag_news": "ag_news",
    "arabic": "arabic_astd",
    "boolq": "boolq",
    "chinese": "chinese_chnsenticorp",
    "esnli": "esnli",
    "french": "french_allocine",
    "german": "german_germeval2017",
    "hindi": "hindi_movies",
    "imdb": "imdb",
    "multirc": "multirc",
    "sst2": "sst2",
    "turkish": "turkish_movies",
}
"""The file of each task that has one; those of Hindi and Turkish are other sets than the tasks' own."""
ENCODED = 20
LIGHT = {"n": 3, "m": 2, "attributions": ["random"], "operators": ["delete"]}


@pytest.fixture(scope="module")
def minilm(shared_data):
    return load_model(str(shared_data.parent / "models" / "minilm-sentiment"), device="cpu")


@pytest.fixture
def sample(shared_data):
    """The name of a task, perhaps with a prompt -> the task on its sample."""

    def build(name):
        task = load_task(name)
        return replace(task, data=FileData(shared_data / f"{SAMPLES[name.partition('/')[0]]}.jsonl"))

    return build


@pytest.mark.real
@pytest.mark.parametrize("name", SAMPLES)
def test_the_sample_has_the_shape_of_the_task(sample, name):
    task = sample(name)
    examples = task.examples()
    assert {example.gold for example in examples} == set(range(len(task.labels)))
    assert any(example.human for example in examples) == (name in ("esnli", "multirc"))


@pytest.mark.real
@pytest.mark.smollm2
@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("name", SAMPLES)
def test_no_character_of_a_real_text_is_broken(smollm2, sample, name, unit):
    codec, task = smollm2.codec, sample(name)
    items = [encode(codec, task, example, unit=unit) for example in task.examples(limit=ENCODED)]
    pool = FillPool([PooledUnits.of(item, None) for item in items], blacklist=Blacklist(*[frozenset()] * 3))
    for item in items:
        texts = [item.fields[field] for field in task.explained]
        assert "".join("".join(item.texts).split()) == "".join("".join(texts).split())
        for span in item.spans:
            after = item.fields[span.field][span.end : span.end + 1]
            assert not after or unicodedata.category(after) not in {"Mn", "Mc", "Me"}
        assert "\ufffd" not in "".join(codec.decode(item.unit_ids()))
        fills = pool.draw(item, rng=np.random.default_rng(0)).ids
        halves = np.stack([np.arange(item.n_units) % 2 == 0, np.arange(item.n_units) % 2 == 1])
        for operator in ("delete", "infill"):
            found = operators.get(operator)().build(item, halves, fills=fills)
            assert not any("\ufffd" in row for row in codec.decode([found.row(index) for index in range(2)]))


@pytest.mark.real
@pytest.mark.smollm2
def test_a_language_model_is_asked_in_another_way(smollm2, sample):
    ways = [ice.evaluate(smollm2, sample(name), **LIGHT) for name in ("sst2", "sst2/minimal/few-shot")]
    assert [way.summary()["n"].tolist() for way in ways] == [[3], [3]]
    assert ways[0].examples()["score_full"].tolist() != ways[1].examples()["score_full"].tolist()


@pytest.mark.real
def test_an_encoder_reads_the_bare_text_however_a_task_is_asked(minilm, sample):
    ways = [ice.evaluate(minilm, sample(name), **LIGHT).examples() for name in ("sst2", "sst2/quoted/few-shot")]
    assert ways[0]["score_full"].tolist() == ways[1]["score_full"].tolist()


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.smollm2
@pytest.mark.parametrize(
    "name", [*SAMPLES, *(f"{name}/few-shot" for name in SAMPLES if name not in ("boolq", "multirc"))]
)
def test_every_task_runs_on_a_language_model(smollm2, sample, name):
    run = ice.evaluate(smollm2, sample(name), n=10, m=5)
    summary = run.summary()
    assert set(summary["n"] + summary["n_skipped"]) == {10}
    assert summary["win_rate"].between(0, 1).all()
    assert not run.examples().filter(["error"]).notna().any(axis=None)


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in ("ag_news", "esnli")])
def test_every_task_of_two_labels_runs_on_an_encoder(minilm, sample, name):
    task = sample(name)
    if name in ("boolq", "multirc"):  # the encoder knows its own two labels only
        task = replace(task, label_words=dict(zip(task.labels, (" negative", " positive"), strict=True)))
    summary = ice.evaluate(minilm, task, n=10, m=5).summary()
    assert set(summary["n"] + summary["n_skipped"]) == {10}
    if name in ("imdb", "sst2"):
        assert summary["accuracy"].iloc[0] >= 0.7


SHARED = {("multirc", 200): (40, 189), ("multirc", 500): (53, 497), ("boolq", 500): (12, 28), ("esnli", 500): (25, 51)}
"""Task and number of examples: texts that occur in several examples, and the examples that have one of them."""


@pytest.mark.real
@pytest.mark.parametrize(("name", "n"), [*SHARED, *((name, 500) for name in ("ag_news", "imdb", "sst2"))])
def test_examples_that_share_a_passage_are_groups(shared_data, name, n):
    task = replace(load_task(name), data=FileData(shared_data / f"{name}.jsonl"))
    found = Counter(example.group for example in task.examples(limit=n) if example.group is not None)
    assert (len(found), sum(found.values())) == SHARED.get((name, n), (0, 0))
