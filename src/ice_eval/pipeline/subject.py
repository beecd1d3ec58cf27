"""The interface between the engine and what a run is about: texts, or chains of thought."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ice_eval.attributions import Attribution, DataView, Lens
from ice_eval.models import Labels, Model
from ice_eval.operators import DrawnFills
from ice_eval.records import Encoded, Example, Inputs, LogScores, PerUnit, Rows
from ice_eval.results import Manifest, RunFolder
from ice_eval.results.examples import InputRow
from ice_eval.results.ledger import Ledger
from ice_eval.scoring import Reporter
from ice_eval.settings import RunConfig
from ice_eval.tasks import AnyTask

if TYPE_CHECKING:
    from ice_eval.pipeline.engine import Engine


class Pool(Protocol):
    """Units that operators may write in place of others."""

    knows_labels: bool
    """True if gold labels show which units reveal a label."""

    def can_fill(self, item: Encoded) -> bool:
        """Return True if there is a replacement for every unit."""
        ...

    def draw(self, item: Encoded, rng: np.random.Generator, *, operator: str = ...) -> DrawnFills:
        """Return a replacement for every unit, for one operator."""
        ...


class Subject(ABC):
    """The kind of input that a run is about: how examples become units, and which rows they have beside the usual ones.

    Rows, scores, files, statistics, resume and executors are the engine's, and the same for all subjects.
    """

    task: AnyTask
    observes_in_attribute: bool = False
    """True if `attribute` looks into the model, so that examples are not observed before."""
    stores_answers: bool = False
    """True if every answer is stored when it arrives, so that an interrupted part loses nothing."""
    repeats_inputs: bool = False
    """True if the same input may get another answer, so that rows have no rounding noise to measure."""

    # ------------------------------------------------------------------------------------------- before the first row

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Return everything that defines rows, beside settings, model and data."""

    @abstractmethod
    def labels(self, model: Model, config: RunConfig) -> Labels:
        """Return the labels whose scores rows are compared by."""

    @abstractmethod
    def described(self, model: Model) -> dict[str, Any]:
        """Return fields of the manifest about the task."""

    def settings(self) -> dict[str, Any]:
        """Return fields of the stored settings that only this subject has."""
        return {}

    arrangements: tuple[str, ...] = ()
    """Operators that show units in another order."""

    def extended_by(self, stored: Manifest) -> "Subject":
        """Return this subject, preceded by what a folder already holds."""
        return self

    def notes(self, examples: Sequence[Example]) -> list[str]:
        """Return messages for the user about the data."""
        return []

    def pool(self, engine: "Engine", examples: Sequence[Example]) -> Pool:
        """Return the units that operators may write."""
        raise TypeError(f"no operator writes units of others into {self.task.name}")

    def data(self, engine: "Engine", examples: Sequence[Example]) -> DataView:
        """Return the data statistics that attributions need."""
        return DataView()

    def start(self, engine: "Engine", reporter: Reporter) -> None:  # noqa: B027
        """Prepare the examples when the folder is open: from here on, answers are stored in it."""

    def is_outdated(self, inputs: Sequence[InputRow], ledger: Ledger) -> bool:
        """Return True if a stored part lacks answers that may come now, or has other fills: it is done again."""
        return False

    # ------------------------------------------------------------------------------------------------------- examples

    def complete(self, example: Example) -> Example:
        """Return an example with what `start` found out about it."""
        return example

    @abstractmethod
    def encode(self, model: Model, config: RunConfig, example: Example, *, reserve: int) -> Encoded:
        """Return an example as the model reads it, with its units."""

    def skip_reason(self, example: Example) -> str | None:
        """Return the reason why an example is skipped, known before any row of it."""
        return None

    def target(self, config: RunConfig, example: Example, full: LogScores, empty: LogScores) -> int:
        """Return the label to explain, from the scores of the full and the empty input."""
        if config.target == "gold" and example.gold is not None:
            return example.gold
        return int(np.argmax(full - empty if config.calibration == "contextual" else full))

    # ----------------------------------------------------------------------------------------------------------- rows

    def sizes(self, n_units: int, config: RunConfig) -> Sequence[int]:
        """Return sizes that have random sets even if no rationale has them."""
        return ()

    def further_rows(self, engine: "Engine", place: int, item: Encoded) -> list[Rows]:
        """Return rows of an example that no rationale is compared with."""
        return []

    def repeated(self, inputs: Inputs, repeat: int) -> Inputs:
        """Return inputs that ask the same once more; `repeat` is 0 for the evaluation itself."""
        return inputs

    def attribute(self, method: Attribution, lens: Lens, items: Sequence[Encoded]) -> list[PerUnit]:
        """Return a number per unit of each example."""
        return method.attribute(lens, items)

    def texts(self, inputs: Inputs) -> Mapping[int, str]:
        """Return what the model answered to each input, where it answers in words."""
        return {}

    # -------------------------------------------------------------------------------------------------- after the rows

    def finish(self, folder: RunFolder, config: RunConfig, reporter: Reporter) -> dict[str, Any]:
        """Do what is left when all rows are written; return fields of the manifest."""
        return {}
