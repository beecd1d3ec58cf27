"""Is this explanation faithful to the model, or does it only look so?

`evaluate` compares every explanation with random token sets of equal size under several intervention operators;
`randomization_test` does it for one rationale of anything that can score keep-masks.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ice_eval.api import Run, evaluate, plan, randomization_test
    from ice_eval.errors import ConfigError, DataError, IceError, ModelError
    from ice_eval.models import Served
    from ice_eval.tasks import FileData, HubData, Records, Shot, Task

__version__ = "0.1.0"

__all__ = [
    "ConfigError", "DataError", "FileData", "HubData", "IceError", "ModelError", "Records", "Run", "Served", "Shot",
    "Task", "evaluate", "plan", "randomization_test",
]  # fmt: skip

_HOME = {
    **dict.fromkeys(("Run", "evaluate", "plan", "randomization_test"), "ice_eval.api"),
    **dict.fromkeys(("ConfigError", "DataError", "IceError", "ModelError"), "ice_eval.errors"),
    "Served": "ice_eval.models",
    **dict.fromkeys(("FileData", "HubData", "Records", "Shot", "Task"), "ice_eval.tasks"),
}


def __getattr__(name: str) -> Any:
    # Loaded on first use: `import ice_eval` stays instant, and `ice --help` too.
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'ice_eval' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
