"""The replicas of a model that a run computes with, and a reader of texts beside them."""

from dataclasses import dataclass

from ice_eval.executors import Crew, LocalCrew
from ice_eval.models import Model
from ice_eval.pipeline.replica import Replica


@dataclass(frozen=True)
class Replicas:
    """A model as a run sees it: something that reads texts here, and a crew that computes, here or elsewhere."""

    reader: Replica
    """Encodes texts and names labels; where replicas compute elsewhere it has no weights."""
    crew: Crew[Replica]

    @classmethod
    def here(cls, model: Model) -> "Replicas":
        """A model of this process, which reads and computes."""
        replica = Replica(model)
        return cls(replica, LocalCrew(replica))
