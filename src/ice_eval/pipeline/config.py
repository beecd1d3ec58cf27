"""What a run is: the fields that define its rows, and those that may be added later."""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from ice_eval._registry import did_you_mean
from ice_eval.errors import ConfigError
from ice_eval.models import LabelScoring
from ice_eval.nulls import SIZE
from ice_eval.nulls import nulls as null_registry
from ice_eval.operators import operators as operator_registry
from ice_eval.protocols import PROTOCOLS, FillMode, Protocol, ProtocolName, Sign
from ice_eval.rationales import DYNAMIC, Share
from ice_eval.records import Direction, Example, Scope, Unit
from ice_eval.results import RunSettings, content_hash, content_hash_of_all
from ice_eval.tasks import Task

Target = Literal["predicted", "gold"]
Calibration = Literal["none", "contextual"]
Adaptive = Literal["dataset", "examples"]

ADDABLE = ("attributions", "operators", "directions", "k", "nulls")
"""Fields that a later command may extend; all others must be as the folder has them, but for `eraser`: it adds rows."""
DEFAULT_M, SEQUENTIAL_M = 50, 499
"""Random sets by default, and the least that a sequential test may be cut off at: p-values down to 0.002."""
_NOT_GIVEN = -1
_WORDS: Mapping[str, Any] = {
    "target": Target,
    "sign": Sign,
    "fills": FillMode,
    "calibration": Calibration,
    "unit": Unit,
    "scope": Scope,
}
_WORDS_OR_NONE: Mapping[str, Any] = {"label_scoring": LabelScoring, "adaptive": Adaptive}
"""Fields that hold one of a few words, and those that may hold none."""


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """What the command line and `evaluate` ask for."""

    attributions: tuple[str, ...] = ("attention", "gradient", "random")
    operators: tuple[str, ...] = ("delete", "infill")
    directions: tuple[str, ...] = ("sufficiency",)
    k: tuple[Share, ...] = (0.2,)
    """Share of units that a rationale holds, or `dynamic`: one for each peak of the attribution."""
    n: int = 500
    """Examples, from the first on."""
    m: int = _NOT_GIVEN
    """Random sets that a rationale is compared with, the most of them if `adaptive`; by default 50, or 499 with
    `adaptive="examples"`."""
    nulls: tuple[str, ...] = (SIZE,)
    """What else than the size of a rationale the random sets are matched on."""
    adaptive: Adaptive | None = None
    """Fewer random sets: as few as a pilot finds enough for the data set, or for each example as its test needs."""
    seed: int = 0
    unit: Unit = "token"
    scope: Scope | None = None
    """What may be removed: the content, or the whole prompt; None: as the protocol says."""
    target: Target = "predicted"
    """Which label is explained: the model's own prediction, or the right one."""
    sign: Sign | None = None
    """How signed attributions rank units: by support of the explained label, or by magnitude; None: as the protocol
    says."""
    fills: FillMode | None = None
    """Infill: the same fill of a unit in every row, or one of its own in each; None: as the protocol says."""
    n_fills: int = 1
    """Fills per unit; several are averaged as probabilities."""
    label_scoring: LabelScoring | None = None
    calibration: Calibration = "none"
    """Whether the label prior of the empty input is divided out of every score."""
    eraser: bool = False
    """Whether the rows of ERASER's measures are scored too; no other number changes."""
    protocol: ProtocolName = "default"
    """Whose choices are followed where the paper's text and its package differ from ours."""

    def __post_init__(self) -> None:
        self._check_numbers()
        self._check_words()
        self._check_together()

    def _check_numbers(self) -> None:
        if self.m == _NOT_GIVEN:
            object.__setattr__(self, "m", SEQUENTIAL_M if self.adaptive == "examples" else DEFAULT_M)
        for name in ("n", "m", "seed", "n_fills"):
            object.__setattr__(self, name, operator.index(getattr(self, name)))  # of numpy too, but no fractions
            if getattr(self, name) < 1 and name != "seed":
                raise ConfigError(f"{name} = {getattr(self, name)}: at least 1 is needed.")
        for k in self.k:
            if k != DYNAMIC and not (isinstance(k, float | int) and 0 < k < 1):
                raise ConfigError(f"k = {k}: a share between 0 and 1 is expected, such as 0.2, or {DYNAMIC}.")

    def _check_words(self) -> None:
        _one_of("protocol", self.protocol, get_args(ProtocolName))
        for name in ("scope", "fills", "sign"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, getattr(self.choices, name))
        for name, kind in _WORDS.items():
            _one_of(name, getattr(self, name), get_args(kind))
        for name, kind in _WORDS_OR_NONE.items():
            if getattr(self, name) is not None:
                _one_of(name.replace("_", "-"), getattr(self, name), get_args(kind))
        for direction in self.directions:
            _one_of("direction", direction, get_args(Direction))
        for name in self.operators:
            operator_registry.get(name)
        for name in self.nulls:
            null_registry.get(name)

    def _check_together(self) -> None:
        if self.adaptive == "examples" and self.m < SEQUENTIAL_M:
            raise ConfigError(
                f"m = {self.m}: with adaptive 'examples' m is the most sets that an example may take, at least "
                f"{SEQUENTIAL_M}; most examples take far fewer."
            )
        if self.choices.own_null and (self.nulls != (SIZE,) or self.adaptive is not None):
            raise ConfigError(
                f"the protocol '{self.protocol}' draws random sets of its own: neither another null nor adaptive goes "
                "with it."
            )
        for name in ADDABLE:
            values = getattr(self, name)
            if not values:
                raise ConfigError(f"no {name} given; at least one is needed.")
            if len(set(values)) < len(values):
                raise ConfigError(f"{name} names something twice: {', '.join(map(str, values))}.")

    @property
    def choices(self) -> Protocol:
        """What the protocol stands for."""
        return PROTOCOLS[self.protocol]

    def extended_by(self, stored: RunSettings) -> "RunConfig":
        """Return this configuration with what the folder already holds before it."""
        union: Any = {name: tuple(dict.fromkeys([*getattr(stored, name), *getattr(self, name)])) for name in ADDABLE}
        return replace(self, **union, eraser=self.eraser or stored.eraser)


def _one_of(name: str, value: str | None, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ConfigError(f"{name} '{value}'{did_you_mean(str(value), list(allowed))} Expected: {', '.join(allowed)}.")


def identity(
    config: RunConfig, *, model: Mapping[str, str | None], task: Task, examples: Sequence[Example]
) -> dict[str, Any]:
    """Everything that defines rows: two runs with the same identity score the same inputs."""
    plain = {f.name: getattr(config, f.name) for f in fields(config) if f.name not in (*ADDABLE, "eraser")}
    return {
        "model": model["id"],
        "weights": model["fingerprint"],
        "dtype": model["dtype"],
        "load_in": model["load_in"],
        **task_identity(task),
        "data": content_hash_of_all(asdict(example) for example in examples),
        **plain,
    }


def task_identity(task: Task) -> dict[str, Any]:
    """What a task itself is, whatever its data."""
    return {
        "task": task.name,
        "task_version": task.version,
        "chat": task.chat,
        "system": task.system,
        "prompt": content_hash(
            [
                task.prompt,
                task.classifier_prompt,
                dict(task.label_words),
                [asdict(s) for s in task.shots],
                task.explained,
            ]
        ),
        "lexicon": lexicon_hash(task),
    }


def lexicon_hash(task: Task) -> str:
    """Tells the words that a task keeps out of infill from others."""
    return content_hash(sorted(task.lexicon))
