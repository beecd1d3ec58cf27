"""What every part of a run needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ice_eval.attributions import Attribution, DataView
from ice_eval.encoding import encode
from ice_eval.models import Model
from ice_eval.operators import POOL_EXAMPLES, FillPool, Operator
from ice_eval.records import Encoded, Example
from ice_eval.results.records import RunSettings
from ice_eval.scoring import Scorer
from ice_eval.settings import RunConfig
from ice_eval.tasks import Task


@dataclass(frozen=True)
class Engine:
    """A configuration, and all that it names."""

    config: RunConfig
    task: Task
    model: Model
    scorer: Scorer
    operators: Mapping[str, Operator]
    attributions: Mapping[str, Attribution]
    pool: FillPool | None
    """None where no operator writes fills."""
    unit_counts: Mapping[str, int] = field(default_factory=dict, repr=False)
    """How often units occur in the data; empty where no null asks."""
    data: DataView = field(default_factory=DataView, repr=False)
    """What attributions may know of the data; empty where none asks."""
    probing: Mapping[str, Operator] = field(default_factory=dict)
    """Attribution -> what happens to the units that its probes do not keep."""
    targets: Mapping[str, int] | None = field(default=None, repr=False)
    """Labels to explain, by example id, where the run of another model decided them."""
    longest: int = 0
    """Random sets that the orders of examples are drawn for; a pilot scores fewer of them."""
    spelled: dict[bytes, str] = field(default_factory=dict, repr=False)
    """Token ids -> the text they spell, of those that operators write."""
    _encoded: dict[str, Encoded] = field(default_factory=dict, repr=False)

    @property
    def in_turns(self) -> bool:
        """Whether the model is asked for words in turns of a chat."""
        return self.task.chat or self.model.writes_in_turns

    @property
    def own_size(self) -> list[str]:
        """Attributions whose rationales have sizes of their own, whatever k."""
        return [name for name, method in self.attributions.items() if method.sized]

    @property
    def by_magnitude(self) -> list[str]:
        """Attributions that rank units by the size of their numbers, whatever the sign."""
        return [
            name
            for name, method in self.attributions.items()
            if self.config.sign == "abs" and not method.sized and method.has_signs
        ]

    def settings(self, *, model: str) -> RunSettings:
        """Return the settings as the manifest holds them."""
        return RunSettings(
            model=model,
            task=self.task.name,
            **vars(self.config),
            own_size=tuple(self.own_size),
            by_magnitude=tuple(self.by_magnitude),
        )

    def encode(self, example: Example) -> Encoded:
        """An example as this run's model sees it; those of the pool are kept, for they are needed twice."""
        if example.id in self._encoded:
            return self._encoded[example.id]
        found = encode(
            self.model.codec,
            self.task,
            example,
            unit=self.config.unit,
            scope=self.config.scope or "content",
            reserve=self.scorer.labels.reserve,
        )
        if len(self._encoded) < POOL_EXAMPLES:
            self._encoded[example.id] = found
        return found
