"""The interface that every model implements, and the records that travel through it."""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from ice_eval._registry import Registry, did_you_mean
from ice_eval.choices import LabelScoring as LabelScoring
from ice_eval.encoding import Codec
from ice_eval.errors import CapabilityError, ConfigError
from ice_eval.files import why_no_json
from ice_eval.records import Encoded, Ids, Inputs, LabelIds, LogScores, PerToken, Unit
from ice_eval.servers import Completion, Request
from ice_eval.tasks import Task

PART_SIZE = 16
Scoring = Literal["first", "full", "given"]
"""Which tokens are scored: of label words, the first or all; or those of a given text."""
Prior = Sequence[float]
"""Log-scores of the labels without a text, which contextual calibration subtracts."""
Priors = Sequence[Prior] | None
Needs = Collection[str]
"""Some of "attentions" and "gradients"."""


@dataclass(frozen=True)
class Labels:
    """Labels of a task as a model scores them."""

    names: tuple[str, ...]
    ids: LabelIds
    """Token ids of the label words; for a classifier the index of the class, alone."""
    scoring: Scoring = "first"
    """By the first token of the label word, by all of them (chain rule), or by the tokens that inputs mark as `SCORED`:
    the mean of their log-probabilities, each after all tokens before it."""
    are_classes: bool = False
    """True if `ids` are indices of classes, not tokens."""
    classes: tuple[str, ...] = ()
    """Names of all classes of a classifier, in their order; empty where they have none."""
    of_pairs: bool = False
    """True if a function reads two texts, either of which may be empty."""
    note: str | None = None
    """Message for the user on how labels were matched."""

    @property
    def is_open(self) -> bool:
        """True if there is a single answer: its score is its log-probability among all texts."""
        return len(self.ids) == 1

    @property
    def reserve(self) -> int:
        """Tokens that a label adds to the input."""
        return max(len(ids) for ids in self.ids) - 1 if self.scoring == "full" else 0


class Pending(NamedTuple):
    """Scores that a device may still be computing."""

    collect: Callable[[], LogScores]
    """Waits for the scores and returns them."""
    tokens: int
    holds: object = None
    """Objects that must stay alive until the scores are computed."""


class Gradients(NamedTuple):
    """Embedding of every token, and the gradient of the target's log-odds there; both (tokens, width).

    Tokens that all examples begin with, which are computed once for all, have no gradient: they belong to no unit.
    """

    embedding: NDArray[np.float64]
    gradient: NDArray[np.float64]


@dataclass
class Observations:
    """Attentions and gradients of some examples, in their order; empty where not requested."""

    attentions: list[PerToken] = field(default_factory=list)
    gradients: list[Gradients] = field(default_factory=list)


class AttentionMaps(NamedTuple):
    """All attention weights of one example, (layers, heads, queries, keys)."""

    weights: NDArray[np.float32]
    gradients: NDArray[np.float32] | None
    """Gradients of the target's log-odds with respect to the weights; None where not requested."""
    position: int
    """The token that answers."""


class EmbeddedText(ABC):
    """One example as a point in embedding space: the tokens of its units move, the template stays."""

    tokens: Ids
    """(tokens,): positions of the tokens that move."""
    embedding: NDArray[np.float64]
    """(tokens, width): their embeddings in the text."""
    pad: NDArray[np.float64] | None
    """(width,): the embedding of padding, or of the end of a text where there is no padding token."""

    at_once: int
    """Points that suit one pass."""

    @abstractmethod
    def log_odds(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-odds of the target: (points, tokens, width) -> (points,)."""

    @abstractmethod
    def gradients(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the gradients of the log-odds: (points, tokens, width) -> (points, tokens, width)."""


Turns = Sequence[tuple[str, str]]
"""Role and text of each turn of a chat."""


class Generated(NamedTuple):
    """A completion of a prompt."""

    text: str | None
    """None if the prompt and an answer do not fit into the model."""
    tokens: int


DEVICE_MAPS = ("auto", "balanced", "balanced_low_0", "sequential")
"""Maps that accelerate makes itself, from the memory that is free."""
DeviceMap = str | Mapping[str, int | str]
"""One of `DEVICE_MAPS`, a JSON file, or the device of each module: a GPU's number, `cuda:1`, `cpu` or `disk`."""
MaxMemory = str | Mapping[int | str, int | str]
"""Memory limit of each device, as `"0=20GiB,cpu=60GiB"`, or as a mapping."""


@dataclass(frozen=True, kw_only=True)
class LoadSettings:
    """Devices and precision of the weights of a model that transformers loads."""

    device: str = "auto"
    """`auto`, `cpu`, `cuda`, …: one device for all of it."""
    dtype: str = "auto"
    """`auto`, `float32`, `bfloat16`, `float16`."""
    device_map: DeviceMap | None = None
    """Several devices in place of one."""
    max_memory: MaxMemory | None = None
    """Memory that the map may use on each device."""
    load_in: str | None = None
    """A name of `QUANTISERS`; None: as the weights are stored."""

    def __post_init__(self) -> None:
        if self.device_map is not None and self.device != "auto":
            raise ConfigError(f"--device {self.device} and --device-map exclude each other; give one of them.")
        if self.max_memory is not None and self.device_map not in DEVICE_MAPS:
            raise ConfigError("--max-memory bounds a map that is made here; give --device-map auto with it.")

    def refuse_for(self, what: str) -> None:
        """Raise a `ConfigError` if `what`, which transformers does not load, should be spread or quantised."""
        given = [f"--{name.replace('_', '-')}" for name in ("device_map", "load_in") if getattr(self, name) is not None]
        if given:
            raise ConfigError(f"{' and '.join(given)} is for models that transformers loads, and {what} is not one.")

    def parsed_map(self) -> str | dict[str, int | str] | None:
        if self.device_map is None or self.device_map in DEVICE_MAPS:
            return self.device_map
        if not isinstance(self.device_map, str):
            return dict(self.device_map)
        path = Path(self.device_map).expanduser()
        if not path.is_file():
            raise ConfigError(
                f"--device-map {self.device_map}{did_you_mean(self.device_map, list(DEVICE_MAPS))} Expected: "
                f"{', '.join(DEVICE_MAPS)}, or a JSON file that says where each module goes."
            )
        try:
            content: Any = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as exc:
            why = "it is not text" if isinstance(exc, UnicodeDecodeError) else why_no_json(exc)
            raise ConfigError(f"{path} is not a JSON file: {why}.") from exc
        devices = content.values() if isinstance(content, dict) else [None]
        if not content or not all(isinstance(each, int | str) and not isinstance(each, bool) for each in devices):
            raise ConfigError(
                f"{path}: names of modules and their devices are expected, as "
                '{"model.layers.0": 0, "lm_head": "cpu"}.'
            )
        return dict(content)

    def parsed_memory(self) -> dict[int | str, int | str] | None:
        if not isinstance(self.max_memory, str):
            return None if self.max_memory is None else dict(self.max_memory)
        found: dict[int | str, int | str] = {}
        for part in self.max_memory.split(","):
            name, _, size = (each.strip() for each in part.partition("="))
            if not name or not size:
                raise ConfigError(f"--max-memory {self.max_memory}: DEVICE=SIZE is expected, e.g. 0=20GiB,cpu=60GiB.")
            found[int(name) if name.isdecimal() else name] = size
        return found


class Model(ABC):
    """A classifier of token ids."""

    name: str
    codec: Codec
    offers: frozenset[str] = frozenset()
    """Requests that attributions may make: "attentions", "gradients", "attention_maps", "embeddings", "generate"."""
    dtype: str = "float32"
    device: str = "cpu"
    """The device of the inputs."""
    load_in: str | None = None
    """Quantisation by `--load-in`; None: none."""
    commit: str | None = None
    """Full commit id of a model of the hub; None: not from the hub."""
    units: ClassVar[tuple[Unit, ...]] = get_args(Unit)
    """Units that may be kept or removed."""
    writes_in_turns: ClassVar[bool] = False
    """True if `generate` needs turns of a chat even where the task has none."""
    pass_tokens: int = 0
    """Padded tokens that cost as much as one more pass; 0 where passes as large as the budget are best."""
    part_size: int = PART_SIZE
    """Most consecutive examples that are computed and written together; small runs have smaller parts."""
    works_ahead: bool = False
    """True if the host can continue while scores are computed."""

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
    def fingerprint(self) -> str:
        """Return a hash that changes when the weights change."""

    @property
    def notes(self) -> Sequence[str]:
        """Return messages for the user on how the model is used."""
        return ()

    @abstractmethod
    def labels(self, task: Task, *, scoring: LabelScoring | None = None) -> Labels:
        """Return how labels are scored; None for `scoring` takes the cheapest way that distinguishes the labels."""

    def text_labels(self, name: str) -> Labels:
        """Return the single label of runs that score given texts: the tokens that inputs mark as `SCORED`.

        Raises:
            CapabilityError: The model gives no probability of a text.
        """
        raise CapabilityError(
            f"'{self.name}' gives no probability of a text, which is needed here; choose a language model on this "
            "machine, or a server that gives log-probabilities of a prompt's own tokens (vLLM, llama.cpp)."
        )

    @abstractmethod
    def log_scores(self, batch: Inputs, labels: Labels, *, prefix: int = 0) -> LogScores:
        """Return the log-probability of each label for each input, normalised over the labels, from a float32 head.

        For an open answer (see `Labels`) it is the chain rule over its tokens, normalised over all texts of that
        length. The first `prefix` ids are the same in all inputs; a model may use or ignore that.

        Raises:
            OutOfMemoryError: The batch does not fit; nothing has changed, and a smaller one may fit.
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

    def ahead(self) -> AbstractContextManager[None]:
        """Run requests made in this context ahead of queued rows, where the device allows it."""
        return nullcontext()

    def check(self, batch: Inputs, labels: Labels, *, prefix: int) -> list[str]:
        """Compare fast with plain scores, disable what disagrees, and return a message for each such case."""
        return []

    def doubts(self, batch: Inputs, labels: Labels) -> list[str]:
        """Return reasons why the scores of these inputs may not mean what they should."""
        return []

    def label_mass(self, batch: Inputs, labels: Labels) -> NDArray[np.float64] | None:
        """Return the probability that the labels hold together, (rows,), among all that the model may write next.

        None for models that write nothing, or do not tell.
        """
        return None

    def outlook(self, rows: int, inputs: Inputs) -> list[str]:
        """Estimate the cost of `rows` rows like these inputs; empty if they cost only time."""
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
        """Return the peak memory in bytes on the devices of the model; None where it is unknown."""
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
        self, batch: Sequence[Encoded], targets: Sequence[int], labels: Labels, needs: Needs, *, priors: Priors = None
    ) -> Observations:
        """Return attentions and gradients of full inputs, from as few passes as possible.

        "attentions": attention from the scoring position to every token, mean over layers and heads. "gradients":
        gradient of the target's log-odds with respect to the embedding of every token. `priors`, one per example,
        calibrate log-odds; between two labels that changes no gradient.
        """
        raise TypeError(f"{self.name} offers no {' and '.join(sorted(needs))}")

    def attention_maps(
        self, item: Encoded, target: int, labels: Labels, *, gradients: bool, prior: Prior | None = None
    ) -> AttentionMaps:
        """Return all attention of one example and, if requested, the gradient of the target's log-odds there."""
        raise TypeError(f"{self.name} offers no attention_maps")

    def embedded(self, item: Encoded, target: int, labels: Labels, *, prior: Prior | None = None) -> EmbeddedText:
        """Return the target's log-odds as a function of the embeddings of an example's units."""
        raise TypeError(f"{self.name} offers no embeddings")

    def generate(
        self, prompts: Sequence[str], *, turns: Turns | None, max_tokens: int, stop: str | None
    ) -> list[Generated]:
        """Complete each prompt with the likeliest token at every step, `max_tokens` at most.

        With `turns` (role and text, possibly empty) a prompt is the user turn after them; else it is plain text. An
        answer ends before `stop`.
        """
        raise TypeError(f"{self.name} offers no generate")

    @property
    def chats(self) -> bool:
        """True if the model generates text and has a chat template."""
        return False

    def converse(self, chats: Sequence[Request]) -> Iterator[tuple[int, Completion]]:
        """Yield the index of each request and the turn that answers it, as soon as it is written; in any order.

        Without a temperature, or at 0, the likeliest token is taken at every step. Else tokens are drawn by numbers
        that belong to the request and its repeat: an answer depends on nothing else, save for ties within rounding.
        """
        raise TypeError(f"{self.name} does not chat")


ModelFactory = Callable[[LoadSettings], Model]
_NEED_TORCH = frozenset(
    "causal classifier codec devices generate gradients headers packed pretrained transformer".split()
)
"""Modules that register no model, and would load torch when models are listed."""
models: Registry[ModelFactory] = Registry("model", "ice_eval.models", skip=_NEED_TORCH)


def model(name: str) -> Callable[[ModelFactory], ModelFactory]:
    """Register a function that loads a model; the first line of its docstring describes the model.

    Heavy packages are imported inside the function, so that listing the names costs nothing.
    """
    return lambda factory: models.add(name, factory)


def chosen_scoring(
    asked: LabelScoring | None, words: Iterable[str], tokens: Sequence[Sequence[object]]
) -> LabelScoring:
    """Return the cheapest scoring that distinguishes labels, or the requested one; raise if that does not."""
    distinct = len({first for first, *_ in tokens}) == len(tokens)
    if asked == "first" and not distinct:
        named = ", ".join(map(repr, words))
        raise ConfigError(f"the label words {named} do not differ in their first token; use --label-scoring full.")
    return asked or ("first" if distinct else "full")


def normalised(scores: NDArray[np.float64]) -> LogScores:
    """Return log-scores normalised over the labels, in float64; a row without a finite score is NaN."""
    with np.errstate(invalid="ignore"):
        normal: LogScores = log_softmax(np.asarray(scores, dtype=np.float64), axis=-1)
    return normal
