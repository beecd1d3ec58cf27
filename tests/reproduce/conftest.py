import json

import pytest
from tests.small_grids import write_reviews

from ice_eval.pipeline import Silent
from ice_eval.reproduce import Reproduction, chosen

LANGUAGES = ("french", "german", "hindi", "chinese", "turkish", "arabic")
RELATIONS = ("entailment", "neutral", "contradiction")


def write_data(folder):
    """Small data for every task of texts, and translations; no weight of a word repeats, so that few sets tie."""
    for name in ("sst2", "imdb", "ag_news", *LANGUAGES):
        write_reviews(folder / f"{name}.jsonl", n=6)
    # Words that the toy does not know: all sets tie, and a tie is lost under the paper's protocol.
    plain = [f"door {i} lamp table chair green stone river {'window ' * i}cloud" for i in range(6)]
    rows = [{"text": text, "label": i % 2} for i, text in enumerate(plain)]
    (folder / "hindi.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "translated").mkdir()
    for name in ("french", "german"):
        write_reviews(folder / "translated" / f"{name}.jsonl", n=4)
    texts = [json.loads(line)["text"] for line in (folder / "sst2.jsonl").read_text().splitlines()]
    pairs = [
        {"premise": text, "hypothesis": f"a witty scene {i}", "label": RELATIONS[i % 3], "highlights_premise": [1, 5],
         "highlights_hypothesis": []}
        for i, text in enumerate(texts)
    ]  # fmt: skip
    questions = [
        {"passage": text, "question": "is it good", "answer": "yes", "label": i % 2} for i, text in enumerate(texts)
    ]
    for name, rows in (("esnli", pairs), ("boolq", questions), ("multirc", questions)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


@pytest.fixture(scope="session")
def choices(data):
    return {"models": {"": ["toy"]}, "n": 4, "m": 4, "data_dir": str(data)}


@pytest.fixture(scope="session")
def work(choices, tmp_path_factory):
    """Every table and figure about texts, of the toy model."""
    found = Reproduction.opened(tmp_path_factory.mktemp("reproduced"), choices)
    found.run(chosen(["all"]), executor=None, reporter=Silent())
    return found


@pytest.fixture(scope="session")
def made(work):
    return {each.item.label: each for each in work.written(chosen(["all"]), Silent())}
