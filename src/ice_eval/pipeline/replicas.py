"""The replicas of a model that a run computes with, and a reader of texts beside them."""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ice_eval.errors import ConfigError
from ice_eval.executors import Crew, Executor, Local, LocalCrew
from ice_eval.models import LoadSettings, Model, ModelRef, Served, load_model, load_reader
from ice_eval.pipeline.progress import Reporter, Silent
from ice_eval.pipeline.replica import Replica


@dataclass(frozen=True)
class Replicas:
    """A model as a run sees it: something that reads texts here, and a crew that computes, here or elsewhere."""

    reader: Replica
    """Encodes texts and names labels; where replicas compute elsewhere it needs no weights."""
    crew: Crew[Replica]
    owned: bool = True
    """Whether the model was loaded for them, and does not belong to a caller who goes on with it."""

    @classmethod
    def here(cls, model: Model, *, owned: bool = False) -> "Replicas":
        """A model of this process, which reads and computes."""
        replica = Replica(model)
        return cls(replica, LocalCrew(replica), owned)

    def release(self) -> None:
        """Let go of all of them."""
        self.crew.release()
        if self.owned:
            self.reader.model.release()


def load_replicas(
    ref: ModelRef,
    executor: Executor,
    *,
    name: str | None = None,
    reporter: Reporter | None = None,
    **loading: Any,
) -> Replicas:
    """Load a model where an executor computes.

    Args:
        ref: What a user calls the model.
        executor: Where it is to compute.
        name: What to call it, in place of its own name.
        reporter: Gets messages.
        **loading: What `load_model` takes: `device`, `dtype` and others, of the machine that computes.

    Raises:
        ConfigError: There is no such model, it is of a kind that cannot be read, or it computes behind a server.
        ModelError: It is there but failed to load.
    """
    owned = not isinstance(ref, Model)
    if isinstance(executor, Local):
        return Replicas.here(_named(load_model(ref, **loading), name), owned=owned)
    if isinstance(ref, Served):
        raise ConfigError(
            f"'{ref.name}' computes behind a server, so there is nothing to spread; use --executor local, and "
            "--concurrency for more requests at once."
        )
    LoadSettings(**loading)  # what cannot be is told before anybody loads
    reader = _named(load_reader(ref), name)
    make = partial(_replica, ref, name, os.getcwd(), loading)
    crew = executor.crew(make, threads=reader.use_threads(None), say=(reporter or Silent()).say)
    return Replicas(Replica(reader), crew, owned)


def _replica(ref: ModelRef, name: str | None, folder: str, loading: Mapping[str, Any]) -> Replica:
    """A replica in the process of a worker; paths are meant from the folder where the command was given."""
    with contextlib.chdir(folder) if os.path.isdir(folder) else contextlib.nullcontext():
        return Replica(_named(load_model(ref, **loading), name))


def _named(model: Model, name: str | None) -> Model:
    if name is not None:
        model.name = name
    return model
