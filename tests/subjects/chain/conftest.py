import functools
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.helpers import save_tiny

from ice_eval.models import Model, load_model

CHAT_TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Family -> a folder with a tiny language model of it."""

    @functools.cache
    def folder(family: str) -> Path:
        made = tmp_path_factory.mktemp(family)
        save_tiny(made, family)
        return made

    return folder


@pytest.fixture
def plain_model(tiny_folder: Callable[[str], Path]) -> Model:
    """A tiny language model without a chat template."""
    return load_model(str(tiny_folder("llama")), device="cpu")


@pytest.fixture
def chatty(plain_model: Model) -> Model:
    """A tiny language model with one."""
    plain_model.codec.tokenizer.chat_template = CHAT_TEMPLATE
    return plain_model
