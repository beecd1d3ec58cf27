"""A bag-of-words classifier with published weights: every result can be computed by hand.

`log-odds(positive) = BIAS + Σ weight(word)`; words outside `WEIGHTS` have weight 0. Deleting a word changes the
log-odds by its weight, the gradient at a word is its weight, and the attention to a word is the size of its weight, so
the right ranking is known. It needs no torch.
"""

import re
import zlib
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ice_eval.encoding import Codec, Tokens
from ice_eval.errors import CapabilityError, ConfigError
from ice_eval.models import base
from ice_eval.models.base import Labels, Needs, Observations, Priors
from ice_eval.records import PROTECTED, SCORED, Encoded, Ids, Inputs, LogScores, PerToken, SpecialIds
from ice_eval.tasks import Task

WEIGHTS: dict[str, float] = {
    "good": 1.0, "great": 2.0, "excellent": 3.0, "love": 2.0, "loved": 2.0, "enjoyable": 1.5, "fun": 1.0,
    "gorgeous": 2.5, "witty": 1.5, "seductive": 1.25, "best": 2.25, "beautiful": 2.0, "warm": 1.0, "delightful": 2.5,
    "bad": -1.0, "terrible": -2.0, "awful": -3.0, "hate": -2.0, "hated": -2.0, "boring": -1.5, "dull": -1.0,
    "worst": -2.5, "poor": -1.5, "mess": -1.25, "slow": -0.75, "broken": -2.25, "rude": -1.75, "cold": -0.5,
}  # fmt: skip
"""Weight of each word in the log-odds of the second label."""
BIAS = 0.25

_WORD = re.compile(r"\w+|[^\w\s]")
_KNOWN = {word: index for index, word in enumerate(WEIGHTS, start=4)}
_UNK, _PAD, _MASK, _FIRST_FREE = 1, 2, 3, 4 + len(WEIGHTS)
_TABLE = np.zeros(_FIRST_FREE)
_TABLE[4:] = list(WEIGHTS.values())


class ToyCodec(Codec):
    """Words and punctuation marks as tokens; unknown words get an id by their checksum."""

    reads_pairs = False
    max_tokens = 100_000
    special = SpecialIds(unk=_UNK, pad=_PAD, mask=_MASK)

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._words = {_UNK: "<unk>", _PAD: "<pad>", _MASK: "<mask>"} | {index: word for word, index in _KNOWN.items()}

    def tokenize(self, text: str, pair: str | None = None, *, framed: bool = False) -> Tokens:
        found = [(self._id(match.group()), *match.span()) for match in _WORD.finditer(text)]
        ids, start, end = np.array(found, dtype=np.int64).reshape(-1, 3).T.copy()
        none = np.zeros(len(ids), dtype=np.int64)
        return Tokens(ids=ids, segments=none, sequence=none, start=start, end=end)

    def chat_frame(self, turns: Sequence[tuple[str, str]]) -> tuple[str, str]:
        raise ConfigError("the toy model has no chat template; leave out --chat.")

    def decode(self, rows: Sequence[Ids]) -> list[str]:
        return [" ".join(self._words.get(int(i), "<unk>") for i in row) for row in rows]

    def _id(self, word: str) -> int:
        if word not in self._ids:
            checksum = zlib.crc32(word.encode("utf-8", "surrogatepass"))
            self._ids[word] = _KNOWN.get(word.lower(), _FIRST_FREE + checksum % 2**24)
            self._words.setdefault(self._ids[word], word)
        return self._ids[word]


class _ToyModel(base.Model):
    part_size = 128

    def __init__(self) -> None:
        self.codec = ToyCodec()

    def default_budget(self) -> int:
        return 65_536


class Toy(_ToyModel):
    """The bag of words as a `Model`."""

    name = "toy"
    fingerprint = f"{zlib.crc32(repr((BIAS, WEIGHTS)).encode()):08x}"
    offers = frozenset({"attention_maps", "attentions", "embeddings", "gradients"})

    def labels(self, task: Task, *, scoring: base.LabelScoring | None = None) -> Labels:
        return Labels(task.labels, tuple((index,) for index in range(len(task.labels))), are_classes=True)

    def log_scores(self, batch: Inputs, labels: Labels, *, prefix: int = 0) -> LogScores:
        row = np.repeat(np.arange(len(batch)), batch.lengths)
        log_odds = BIAS + np.bincount(row, weights=_weights(batch.ids), minlength=len(batch))
        # The first label answers for the negative side, the second for the positive one, further ones stay at -10.
        scores = np.full((len(batch), len(labels.names)), -10.0)
        scores[:, 0], scores[:, 1] = 0.0, log_odds
        return base.normalised(scores)

    def observe(
        self, batch: Sequence[Encoded], targets: Sequence[int], labels: Labels, needs: Needs, *, priors: Priors = None
    ) -> Observations:
        weights = [_weights(item.ids) for item in batch]
        pairs = zip(weights, map(_sign, targets), strict=True)
        gradients = [base.Gradients(np.ones((len(each), 1)), sign * each[:, None]) for each, sign in pairs]
        return Observations([np.abs(each) for each in weights], gradients)

    def attention_maps(
        self, item: Encoded, target: int, labels: Labels, *, gradients: bool, prior: base.Prior | None = None
    ) -> base.AttentionMaps:
        """Return one layer of one head, in which every token attends as the last one does."""
        weights = _weights(item.ids).astype(np.float32)
        shape = (1, 1, len(weights), len(weights))
        by_weight = np.broadcast_to(np.float32(_sign(target)) * np.sign(weights), shape) if gradients else None
        return base.AttentionMaps(np.broadcast_to(np.abs(weights), shape), by_weight, len(weights) - 1)

    def embedded(
        self, item: Encoded, target: int, labels: Labels, *, prior: base.Prior | None = None
    ) -> base.EmbeddedText:
        return EmbeddedBag(item, _sign(target))


class EmbeddedBag(base.EmbeddedText):
    """A word's embedding is its number of occurrences: one, in a text."""

    pad = np.zeros(1)
    at_once = 1024

    def __init__(self, item: Encoded, sign: float) -> None:
        self.tokens = np.flatnonzero(item.unit_of != PROTECTED)
        self.embedding = np.ones((len(self.tokens), 1))
        weights = sign * _weights(item.ids)
        self._gradient = weights[self.tokens][:, None]
        self._rest = sign * BIAS + weights[item.unit_of == PROTECTED].sum()

    def log_odds(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = self._rest + (points * self._gradient).sum(axis=(1, 2))
        return found

    def gradients(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.broadcast_to(self._gradient, points.shape)


def _sign(target: int) -> float:
    return 1.0 if target == 1 else -1.0


def _weights(ids: Ids) -> PerToken:
    """Return the weight of each token: zero for ids outside the table."""
    return np.where(ids < _FIRST_FREE, _TABLE[np.minimum(ids, _FIRST_FREE - 1)], 0.0)


MEMORY = frozenset("the capital of France is Paris".split())
"""Words, also with a capital, that the toy reader writes with the same probability whether it has read them or not."""
KNOWN, READ, UNREAD = 0.9, 0.8, 0.01
"""Its probability of a word of `MEMORY`, of a word that it has read before, and of any other word."""


class ToyReader(_ToyModel):
    """A model that copies: its score of a text is the mean log-probability of words that it has read or knows."""

    name = "toy-reader"
    fingerprint = f"{zlib.crc32(repr((sorted(MEMORY), KNOWN, READ, UNREAD)).encode()):08x}"
    offers = frozenset({"attentions", "generate", "gradients"})

    def __init__(self) -> None:
        super().__init__()
        self._memory = self.codec.tokenize(" ".join(sorted(MEMORY | set(map(str.capitalize, MEMORY))))).ids

    def labels(self, task: Task, *, scoring: base.LabelScoring | None = None) -> Labels:
        raise CapabilityError("the toy reader scores texts, not labels; use the task citations, or the model toy.")

    def text_labels(self, name: str) -> Labels:
        return Labels((name,), ((),), "given")

    def log_scores(self, batch: Inputs, labels: Labels, *, prefix: int = 0) -> LogScores:
        rows = (slice(*bounds) for bounds in pairwise(batch.offsets.tolist()))
        return np.array([[self._score(batch.ids[row], batch.segments[row] == SCORED)] for row in rows])

    def _score(self, ids: Ids, scored: NDArray[np.bool_]) -> float:
        places = np.flatnonzero(scored)
        values, first = np.unique(ids, return_index=True)
        read = first[np.searchsorted(values, ids[places])] < places
        known = np.isin(ids[places], self._memory)
        return float(np.log(np.where(known, KNOWN, np.where(read, READ, UNREAD))).mean())

    def observe(
        self, batch: Sequence[Encoded], targets: Sequence[int], labels: Labels, needs: Needs, *, priors: Priors = None
    ) -> Observations:
        copied = [np.isin(item.ids, item.ids[item.segments == SCORED]).astype(np.float64) for item in batch]
        return Observations(copied, [base.Gradients(np.ones((len(each), 1)), each[:, None]) for each in copied])

    def generate(
        self, prompts: Sequence[str], *, turns: base.Turns | None, max_tokens: int, stop: str | None
    ) -> list[base.Generated]:
        """Copy the first sentence of every source, and cite it."""
        found = []
        for prompt in prompts:
            sources = re.findall(r"^\[(\w+)\] (.+?)[.\n]", prompt, re.MULTILINE)
            found.append(base.Generated(" ".join(f"{text} [{name}]." for name, text in sources), len(sources)))
        return found


@base.model("toy-reader")
def toy_reader(settings: base.LoadSettings) -> base.Model:
    """Copies what it reads, with published probabilities: for answers that cite passages; needs no torch."""
    settings.refuse_for("the toy reader")
    return ToyReader()


@base.model("toy")
def toy(settings: base.LoadSettings) -> base.Model:
    """Bag of words with published weights; needs no torch."""
    settings.refuse_for("the toy")
    return Toy()
