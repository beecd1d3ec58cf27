"""`ice translate`, and a run of the original beside one of its translation."""

import json

import pytest
from tests.cli.commands import assert_refused

from ice_eval.models import LoadSettings, pretrained


@pytest.fixture
def whole_words(monkeypatch):
    """In place of a model: every word gets a letter more. Holds what was asked for."""
    asked = {}

    class Fake:
        def translate(self, texts):
            return [" ".join(f"{word}e" for word in text.split()) for text in texts]

    def load(ref, **settings):
        asked.update({"model": ref, **settings})
        return Fake()

    monkeypatch.setattr(pretrained, "load_translator", load)
    return asked


def test_a_file_is_translated(ice, reviews, whole_words):
    flags = ("--data", reviews, "--to", "fra_Latn", "--out", "fr.jsonl")
    done = ice("translate", *flags, "--model", "some/model", "--from", "eng_Latn", "--json")
    content = json.loads(done.out)
    assert content == {"out": "fr.jsonl", "n": 8, "n_before": 0, "fields": ["text"], "dropped": []}
    assert "8/8 rows" in done.err
    asked = {name: whole_words[name] for name in ("model", "target", "source", "beams")}
    assert asked == {"model": "some/model", "target": "fra_Latn", "source": "eng_Latn", "beams": 4}
    assert_refused(ice("translate", *flags), "fr.jsonl already exists")
    assert_refused(ice("translate", "--data", "no.jsonl", "--to", "fr", "--out", "x.jsonl"), "no such file: no.jsonl")


def test_the_model_may_be_spread_and_quantised_as_in_a_run(ice, reviews, whole_words, tmp_path):
    flags = ("translate", "--data", reviews, "--to", "fra_Latn", "--out", "fr.jsonl")
    assert_refused(ice(*flags, "--device", "cpu", "--device-map", "auto"), "exclude each other", written_to=tmp_path)
    assert ice(*flags, "--device-map", "auto", "--max-memory", "cpu=1GiB", "--load-in", "4bit").code == 0
    assert whole_words["settings"] == LoadSettings(device_map="auto", max_memory="cpu=1GiB", load_in="4bit")
    first = json.loads((tmp_path / "fr.jsonl").read_text().splitlines()[0])
    assert first["translation"]["load_in"] == "4bit"


def test_original_and_translation_are_compared_by_id(ice, reviews, whole_words):
    assert ice("translate", "--data", reviews, "--to", "fr", "--out", "fr.jsonl").out.startswith(
        "fr.jsonl: 8 examples, text in fr."
    )
    common = ("--model", "toy", "--task", "demo", "--attributions", "gradient", "--operators", "delete", "--m", "4")
    for name, file in (("native", reviews), ("translated", "fr.jsonl")):
        assert ice("run", *common, "--data", file, "--out", name).code == 0
    plain = json.loads(ice("compare", "native", "translated", "--json").out)["comparisons"][0]
    assert (plain["n_shared"], plain["n_other_text"], plain["configurations"][0]["paired"]) == (0, 8, False)
    done = ice("compare", "native", "translated", "--by-id", "--full")
    assert "8 examples have the same id as in A (8 there, 8 here); 8 of them have another text." in done.out
    assert "Differences are paired" in done.out
    found = json.loads(ice("compare", "native", "translated", "--by-id", "--json").out)["comparisons"][0]
    [line] = found["configurations"]
    assert (found["by_id"], found["n_shared"], line["paired"], line["n_first"]) == (True, 8, True, 8)


def test_ids_of_other_examples_are_refused(ice, reviews, tmp_path):
    rows = [json.loads(line) for line in reviews.read_text().splitlines()]
    other = "".join(json.dumps({"text": row["text"] + " indeed", "label": 1 - row["label"]}) + "\n" for row in rows)
    (tmp_path / "other.jsonl").write_text(other)
    common = ("--model", "toy", "--task", "demo", "--attributions", "random", "--operators", "delete", "--m", "3")
    for name, file in (("a", reviews), ("b", "other.jsonl")):
        assert ice("run", *common, "--data", file, "--out", name).code == 0
    assert_refused(ice("compare", "a", "b", "--by-id"), "example '0' has the gold label 1 in a and 0 in b")
