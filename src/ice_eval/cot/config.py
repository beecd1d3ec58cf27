"""What a step-level run is: the fields that define its rows, and those that may be added later."""

from dataclasses import dataclass, fields, replace
from typing import Any

from ice_eval._registry import from_spec
from ice_eval.cot.answer_steps import AnswerStep, check_policy
from ice_eval.cot.attributions import StepAttribution, step_attributions
from ice_eval.cot.operators import Arrangement, Removal, StepOperator, step_operators
from ice_eval.cot.tasks import Worked
from ice_eval.errors import ConfigError
from ice_eval.records import Direction
from ice_eval.results import RunSettings, content_hash
from ice_eval.results.records import ChainSettings, Scalar
from ice_eval.settings import RunConfig
from ice_eval.stats import REFERENCE_SHARE

ADDABLE = ("attributions", "operators", "k")
"""Fields that a later command may extend; all others must be as the folder has them."""
DIRECTIONS: tuple[Direction, ...] = ("sufficiency", "necessity")


@dataclass(frozen=True, kw_only=True)
class CotConfig:
    """What the command line and `evaluate_chains` ask for."""

    model: str
    task: str
    attributions: tuple[str, ...] = ("self-report", "position", "length", "random")
    operators: tuple[str, ...] = ("delete",)
    k: tuple[float, ...] = (REFERENCE_SHARE,)
    """Share of steps that is removed, or retained."""
    n: int = 100
    """Problems, from the first on."""
    p: int = 20
    """Random sets of each size; all of them where there are no more."""
    repeats: int = 3
    """How often the full chain is asked, for the noise floor."""
    temperature: float | None = 0.0
    """None leaves it to the server."""
    max_tokens: int = 1024
    """Longest chain."""
    answer_tokens: int = 128
    """Longest reply to a row."""
    levels: bool = False
    """Whether attributions of the chain are also tested in tokens, beside steps; for models on this machine."""
    answer_step: AnswerStep = "drop"
    """What becomes of steps that state the final answer."""
    example: Worked | None = None
    """A solved problem that stands before every question: small models keep to the form then."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("n", "p", "repeats", "max_tokens", "answer_tokens"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)}: at least 1 is needed.")
        if not self.k or not all(0 < k < 1 for k in self.k):
            raise ConfigError(f"k = {', '.join(map(str, self.k))}: shares between 0 and 1 are expected, such as 0.2.")
        if self.temperature is not None and not self.temperature >= 0:
            raise ConfigError(f"temperature = {self.temperature}: 0 or more is expected.")
        for name in ADDABLE:
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ConfigError(f"{name} names something twice: {', '.join(map(str, values))}.")
        check_policy(self.answer_step)
        self.methods()
        if not self.removals():
            raise ConfigError("an operator that keeps some steps is needed: delete, or replace.")

    def removals(self) -> dict[str, Removal]:
        """The operators that keep some steps, by name."""
        return {name: each for name, each in self._chosen() if isinstance(each, Removal)}

    def arrangements(self) -> dict[str, Arrangement]:
        """The operators that show steps in an order of their own, by name."""
        return {name: each for name, each in self._chosen() if isinstance(each, Arrangement)}

    def _chosen(self) -> list[tuple[str, StepOperator]]:
        return [(name, step_operators.get(name)()) for name in self.operators]

    def methods(self) -> dict[str, StepAttribution]:
        """The attributions, by the name that was given."""
        return {name: from_spec(name, step_attributions) for name in self.attributions}

    def extended_by(self, stored: RunSettings) -> "CotConfig":
        """Return this configuration, preceded by what the folder already holds."""
        chain = stored.chain
        assert chain is not None, "the folder holds a step-level run"
        before = {
            "attributions": stored.attributions,
            "operators": (*stored.operators, *chain.arrangements),
            "k": stored.k,
        }
        union: Any = {name: tuple(dict.fromkeys([*before[name], *getattr(self, name)])) for name in ADDABLE}
        return replace(self, **union, levels=self.levels or chain.levels)

    def identity(self) -> dict[str, Scalar]:
        """The fields that define rows."""
        free = (*ADDABLE, "levels", "example")
        plain = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in free}
        return {**plain, "example": self._example_hash}

    @property
    def _example_hash(self) -> str | None:
        return None if self.example is None else content_hash(repr(self.example))

    def settings(self) -> RunSettings:
        """Return the settings of the run as its manifest holds them; `m` is the number of random sets."""
        shared = RunConfig(
            attributions=self.attributions,
            operators=tuple(self.removals()),
            directions=DIRECTIONS,
            k=self.k,
            n=self.n,
            m=self.p,
            seed=self.seed,
        )
        return RunSettings(
            model=self.model,
            task=self.task,
            **{**vars(shared), "unit": "step"},
            own_size=(),
            by_magnitude=(),
            chain=ChainSettings(
                arrangements=tuple(self.arrangements()),
                repeats=self.repeats,
                temperature=self.temperature,
                max_tokens=self.max_tokens,
                answer_tokens=self.answer_tokens,
                levels=self.levels,
                answer_step=self.answer_step,
                example=self._example_hash,
            ),
        )
