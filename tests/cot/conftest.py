from pathlib import Path

import pytest
from tests.helpers import save_tiny

from ice_eval.models import Model, load_model

CHAT_TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny language model."""
    folder = tmp_path_factory.mktemp("tiny-llama")
    save_tiny(folder, "llama")
    return folder


@pytest.fixture
def plain_model(tiny_llama: Path) -> Model:
    """A tiny language model without a chat template."""
    return load_model(str(tiny_llama), device="cpu")


@pytest.fixture
def chatty(plain_model: Model) -> Model:
    """A tiny language model with one."""
    plain_model.codec.tokenizer.chat_template = CHAT_TEMPLATE
    return plain_model
