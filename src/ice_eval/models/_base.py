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
from ice_eval.records import Encoded, Inputs, LogScores, Unit
from ice_eval.tasks import Task

PART_SIZE = 16
"""Examples of a part, unless a model says otherwise."""


class Model(ABC):
    """A classifier of token ids.

    `offers` says what an attribution may ask for beside scores: "attentions", "gradients", "attention_maps",
    "embeddings", "generate".
    """

    name: str
    offers: frozenset[str] = frozenset()
    dtype: str = "float32"
    device: str = "cpu"
    """The device of the inputs."""
    load_in: str | None = None
    """The quantisation asked for with `--load-in`; None: none."""
    units: ClassVar[tuple[Unit, ...]] = get_args(Unit)
    """Units that may be kept or removed."""
    writes_in_turns: ClassVar[bool] = False
    """Whether `generate` is asked in turns of a chat even where the task is none."""

    @property
    def devices(self) -> str:
        """All devices that hold weights."""
        return self.device

    @property
    def n_oom_retries(self) -> int:
        """Number of out-of-memory retries of attributions: their batch was halved."""
        return 0

    @property
    def server(self) -> Mapping[str, Any] | None:
        """Address and settings of a model behind a server; None for any other model."""
        return None

    @property
    def shares_prefix(self) -> bool:
        """True if tokens that all rows begin with are computed once."""
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
        """Messages for the user on how the model is used."""
        return ()

    @abstractmethod
    def labels(self, task: Task, *, scoring: LabelScoring | None = None) -> Labels:
        """Return how labels are scored; `scoring` forces a way, None takes the cheapest that tells them apart."""

    @abstractmethod
    def log_scores(self, batch: Inputs, labels: Labels, *, prefix: int = 0) -> LogScores:
        """Log-probability of each label for each input, normalised over the labels, from a float32 head.

        That of an open answer (see `Labels`), by the chain rule over its tokens, is normalised over all texts as long.
        The first `prefix` ids are the same in all inputs, which a model may use or ignore.

        Raises:
            OutOfMemoryError: The batch does not fit; nothing has changed, and a smaller one may.
        """

    def again(self, batch: Inputs, labels: Labels, *, prefix: int = 0) -> LogScores:
        """Score each input again, alone: the difference to `log_scores` is noise."""
        alone = [self.log_scores(batch.take([index]), labels, prefix=prefix) for index in range(len(batch))]
        return np.concatenate(alone)

    def submit(self, batch: Inputs, labels: Labels, *, prefix: int = 0) -> Pending:
        """Start to compute `log_scores` without waiting for them."""
        scores = self.log_scores(batch, labels, prefix=prefix)
        return Pending(lambda: scores, len(batch.ids) - prefix * len(batch))

    @property
    def pads(self) -> bool:
        """True if all rows of a batch cost as much as the longest."""
        return True

    @property
    def pass_tokens(self) -> int:
        """Padded tokens that cost as much as one more pass; 0 where passes as large as the budget are best."""
        return 0

    @property
    def part_size(self) -> int:
        """Most consecutive examples that are computed and written together; small runs have smaller parts."""
        return PART_SIZE

    @property
    def works_ahead(self) -> bool:
        """True if the host may continue while scores are computed."""
        return False

    def ahead(self) -> AbstractContextManager[None]:
        """Requests made in this context run ahead of queued rows, where the device allows it."""
        return nullcontext()

    def check(self, batch: Inputs, labels: Labels, *, prefix: int) -> list[str]:
        """Compare fast with plain scores, give up what disagrees, and return a message for each such case."""
        return []

    def outlook(self, rows: int, inputs: Inputs) -> list[str]:
        """Estimate the cost of `rows` rows like these inputs; nothing where they cost only time."""
        return []

    def continues(self, folder: Path) -> None:  # noqa: B027 - most models keep nothing
        """Load the answers that `keeping` stored in the folder of a run, if there are any."""

    def keeping(self, folder: Path) -> AbstractContextManager[None]:
        """Store paid answers that arrive in this context in the folder of the run."""
        return nullcontext()

    def default_budget(self) -> int:
        """Number of tokens in one batch that suits the device."""
        return 4096

    def release(self) -> None:  # noqa: B027 - most models change nothing that was handed over
        """Restore the model of the caller; it is not used afterwards."""

    def peak_memory(self) -> int | None:
        """Peak memory in bytes on the devices of the model; None where it is not known."""
        try:
            import resource
        except ImportError:  # not a POSIX system
            return None
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

    def use_threads(self, n_threads: int | None) -> int | None:
        """Set the number of threads, as rounding depends on it, and return it; None keeps it."""
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
        """Return what attributions need to see of full inputs, from as few passes as possible.

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
        """Complete each prompt with the likeliest token at every step, `max_tokens` at most.

        A prompt is plain text, or, where `turns` (role and text, perhaps none) are given, the turn of a user that
        follows them. An answer ends before `stop`, where that is given.
        """
        raise TypeError(f"{self.name} offers no generate")

    @property
    def chats(self) -> bool:
        """True if the model generates text and has a chat template."""
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
