"""The seam that every model fills."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from ice_eval._registry import Registry
from ice_eval.encoding import Codec
from ice_eval.models._loading import Loading
from ice_eval.models._records import (
    AttentionMaps,
    Conversation,
    EmbeddedText,
    Generated,
    Labels,
    LabelScoring,
    Observations,
    Pending,
    Prior,
    Reply,
)
from ice_eval.records import Encoded, LogScores, ModelInput, Unit
from ice_eval.tasks import Task


class Model(ABC):
    """A classifier of token ids.

    `offers` says what an attribution may ask for beside scores: "attentions", "gradients", "attention_maps",
    "embeddings", "generate".
    """

    name: str
    offers: frozenset[str] = frozenset()
    dtype: str = "float32"
    device: str = "cpu"
    """Where inputs go."""
    load_in: str | None = None
    """How its weights were quantised while they were loaded, if they were."""
    units: ClassVar[tuple[Unit, ...]] = get_args(Unit)
    """What may be kept or removed."""
    writes_in_turns: ClassVar[bool] = False
    """Whether `generate` is asked in turns of a chat even where the task is none."""

    @property
    def places(self) -> str:
        """Where the weights lie, all devices of them."""
        return self.device

    @property
    def shortages(self) -> int:
        """How often memory did not reach for what attributions ask, and a batch was cut in halves."""
        return 0

    @property
    def server(self) -> Mapping[str, Any] | None:
        """Of a model behind a server: where it is and how it is asked; None of any other."""
        return None

    @property
    def shares_prefix(self) -> bool:
        """Whether tokens that all rows begin with are computed once."""
        return False

    @property
    @abstractmethod
    def codec(self) -> Codec:
        """The tokenizer."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A hash that changes when the weights do."""

    @property
    def notes(self) -> Sequence[str]:
        """What a user should know of how the model is used."""
        return ()

    @abstractmethod
    def labels(self, task: Task, *, scoring: LabelScoring | None = None) -> Labels:
        """How the labels of a task are asked for; `scoring` forces a way, None takes the cheapest that decides."""

    @abstractmethod
    def log_scores(self, batch: Sequence[ModelInput], labels: Labels, *, prefix: int = 0) -> LogScores:
        """Log-probability of each label for each input, normalised over the labels, from a float32 head.

        That of an open answer (see `Labels`), by the chain rule over its tokens, is normalised over all texts as long.
        The first `prefix` ids are the same in all inputs, which a model may use or ignore.

        Raises:
            OutOfMemoryError: The batch does not fit; nothing has changed, and a smaller one may.
        """

    def again(self, batch: Sequence[ModelInput], labels: Labels, *, prefix: int = 0) -> LogScores:
        """`log_scores` once more, each input alone: what they differ by is noise."""
        return np.concatenate([self.log_scores([row], labels, prefix=prefix) for row in batch])

    def submit(self, batch: Sequence[ModelInput], labels: Labels, *, prefix: int = 0) -> Pending:
        """`log_scores`, without waiting for the answer."""
        scores = self.log_scores(batch, labels, prefix=prefix)
        return Pending(lambda: scores, sum(len(row.ids) - prefix for row in batch))

    @property
    def pads(self) -> bool:
        """Whether the rows of a batch cost as much as the longest of them."""
        return True

    @property
    def works_ahead(self) -> bool:
        """Whether the host may go on while scores are computed."""
        return False

    def ahead(self) -> AbstractContextManager[None]:
        """What is asked inside overtakes the rows that are still being scored, where the device can do so."""
        return nullcontext()

    def check(self, batch: Sequence[ModelInput], labels: Labels, *, prefix: int) -> list[str]:
        """Compare the fast way of scoring with the plain one, give up what disagrees, and say so."""
        return []

    def outlook(self, rows: int, inputs: Sequence[ModelInput]) -> list[str]:
        """What so many rows, of which these are a sample, will cost; nothing where they cost only time."""
        return []

    def continues(self, folder: Path) -> None:  # noqa: B027 - most models keep nothing
        """Take up what `keeping` left in the folder of a run, if there is one."""

    def keeping(self, folder: Path) -> AbstractContextManager[None]:
        """What is asked inside is kept in the folder of the run as it comes, where it was paid for."""
        return nullcontext()

    def default_budget(self) -> int:
        """Tokens in one batch that suit the device."""
        return 4096

    def release(self) -> None:  # noqa: B027 - most models change nothing that was handed over
        """Leave what a caller handed over as it was found; nobody asks the model afterwards."""

    def peak_memory(self) -> int | None:
        """The most bytes held so far where the model computes; None where that cannot be told."""
        try:
            import resource
        except ImportError:  # not a POSIX system
            return None
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

    def use_threads(self, n_threads: int | None) -> int | None:
        """Compute with this many threads, as rounding depends on it; None: as many as now. Returns the number."""
        return None

    def observe(
        self,
        batch: Sequence[Encoded],
        targets: Sequence[int],
        labels: Labels,
        needs: Collection[str],
        *,
        priors: Sequence[Prior] | None = None,
    ) -> Observations:
        """What attributions need to see of full inputs, from as few passes as the model can.

        "attentions" is the attention from the scoring position to every token, mean over layers and heads; "gradients"
        that of the target's log-odds with respect to the embedding of every token. Log-odds are calibrated where there
        are `priors`, one per example; between two labels that changes no gradient.
        """
        raise TypeError(f"{self.name} offers no {' and '.join(sorted(needs))}")

    def attention_maps(
        self, item: Encoded, target: int, labels: Labels, *, gradients: bool, prior: Prior | None = None
    ) -> AttentionMaps:
        """All attention of one example, and perhaps the gradient of the target's log-odds there."""
        raise TypeError(f"{self.name} offers no attention_maps")

    def embedded(self, item: Encoded, target: int, labels: Labels, *, prior: Prior | None = None) -> EmbeddedText:
        """The target's log-odds as a function of the embeddings of an example's units."""
        raise TypeError(f"{self.name} offers no embeddings")

    def generate(
        self, prompts: Sequence[str], *, turns: Sequence[tuple[str, str]] | None, max_tokens: int, stop: str | None
    ) -> list[Generated]:
        """What the model writes after each prompt: at every step the likeliest token, `max_tokens` at most.

        A prompt is plain text, or, where `turns` (role and text, perhaps none) are given, the turn of a user that
        follows them. An answer ends before `stop`, where that is given.
        """
        raise TypeError(f"{self.name} offers no generate")

    @property
    def chats(self) -> bool:
        """Whether it goes on with chats: whether it writes, and has a template for turns."""
        return False

    def converse(self, chats: Sequence[Conversation]) -> Iterator[tuple[int, Reply]]:
        """The next turn of each chat, with its place among them, as soon as it is written; in any order.

        A reply depends on nothing but its own conversation, save for ties within rounding.
        """
        raise TypeError(f"{self.name} does not chat")


ModelFactory = Callable[[Loading], Model]
models: Registry[ModelFactory] = Registry("model", "ice_eval.models")


def model(name: str) -> Callable[[ModelFactory], ModelFactory]:
    """Register a function that loads a model; the first line of its docstring describes the model.

    Heavy packages are imported inside the function, so that listing the names costs nothing.
    """
    return lambda factory: models.add(name, factory)


def normalised(scores: NDArray[np.float64]) -> LogScores:
    """Log-scores normalised over the labels, in float64."""
    wide = np.asarray(scores, dtype=np.float64)
    top = wide.max(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        normal: LogScores = wide - top - np.log(np.exp(wide - top).sum(axis=-1, keepdims=True))
    return normal
