"""The words that settings may hold, and protocols, which are choices that go together.

A protocol is our choices, those of the paper's text, of the package released with it, or of its scripts. Nothing of
ours is imported here, so that the command line starts fast.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Unit = Literal["token", "word", "sentence", "step", "passage"]
SubjectName = Literal["text", "chain", "context"]
AnswerStep = Literal["drop", "keep"]
ChainFrom = Literal["auto", "visible", "thinking"]
Pose = Literal["user", "prefill", "neutral"]
Hint = Literal["opinion", "authority", "metadata"]
Scope = Literal["content", "prompt"]
Direction = Literal["sufficiency", "necessity"]
Sign = Literal["support", "abs"]
FillMode = Literal["shared", "own"]
LabelScoring = Literal["first", "full"]
Calibration = Literal["none", "contextual"]
Adaptive = Literal["dataset", "examples"]
Until = Literal["decided"]
ProtocolName = Literal["default", "paper", "released", "authors"]
Order = Literal["shuffled", "stored"]
TableColumns = Literal["default", "paper"]
"""Columns of tables of configurations: ours, or those of the paper."""
Share = float | Literal["dynamic"]
"""Size of a rationale: a share of the units, or as many as the attribution has peaks."""

SUBJECTS: dict[SubjectName, str] = {"text": "texts", "chain": "chains of thought", "context": "cited answers"}
"""Names of subjects in messages."""
DYNAMIC: Literal["dynamic"] = "dynamic"
_FLAG = "protocol_"
"""Beginning of the flag that names the protocol of a run; the default one has none."""
_ENGLISH = ("en", "und")
_OTHER_TASK = ""


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """Choices on which the paper, its package, its scripts and we differ; the defaults are ours."""

    scope: Scope = "content"
    """Tokens that may be removed: those of the explained fields, or of the template too."""
    fills: FillMode = "shared"
    """Infill: the same fill of a unit in every row, or a separate one in each."""
    n_fills: int = 10
    """Number of fills that the random sets of a null are distributed over."""
    sign: Sign = "support"
    """Ranking by signed attributions: support of the explained label, or magnitude."""
    order: Order | None = None
    """Rows of a hub data set: shuffled with its seed, or as they are stored."""
    max_characters: Mapping[str, int] = field(default_factory=dict)
    """Most characters of an explained text, by task; the empty name is any other task."""
    max_tokens: int | None = None
    """Most tokens of the explained texts of an example; None: as many as the model takes."""
    min_confidence: float | None = None
    """Smallest probability of the explained label on the full text; examples below it are skipped."""
    other_languages: tuple[str, ...] = ()
    """Default attributions of tasks in other languages than English."""
    own_null: bool = False
    """True if every attribution draws its own random sets; they may repeat, and may equal the rationale."""
    label_words_only: bool = False
    """True if infill avoids only the label words, not all tokens that are used differently under the labels."""
    by_clipped_nsr: bool = False
    """True if rows are compared by their NSR, clipped to [-2, 2] and 0 for a weak signal, not by their score."""
    own_empty: bool = False
    """True if s(∅) depends on the operator: one token for deletion, five of the pool for infill."""
    strict: bool = False
    """True if a tie counts as lost."""
    percentile: bool = False
    """True if intervals are plain percentiles of 200 resamples."""
    words: Literal["interval", "point"] = "interval"
    """Words of verdicts: those that hold for the whole interval, or the word of the win rate itself."""
    fdr: float | None = None
    """False-discovery rate at which p-values are adjusted over configurations by Benjamini-Hochberg; None: the
    probability of any false rejection is bounded."""
    columns: TableColumns = "default"
    """Columns of tables of configurations, where none are asked for."""

    def defaults(self, task: str = "", language: str = "und") -> dict[str, Any]:
        """Return the settings that the protocol chooses for a task, by name."""
        characters = self.max_characters.get(task.partition("/")[0], self.max_characters.get(_OTHER_TASK))
        chosen = {name: getattr(self, name) for name in ("scope", "fills", "n_fills", "sign", "order")}
        chosen |= {"max_characters": characters, "min_confidence": self.min_confidence}
        if self.other_languages and language.partition("-")[0] not in _ENGLISH:
            chosen["attributions"] = self.other_languages
        return chosen


_OF_THE_PAPER: dict[str, Any] = {
    "fills": "own", "n_fills": 1, "strict": True, "percentile": True,
    "words": "point", "fdr": 0.10, "columns": "paper", "max_tokens": 512,
}  # fmt: skip
_OF_ITS_CODE: dict[str, Any] = {**_OF_THE_PAPER, "scope": "prompt", "own_null": True, "label_words_only": True}
"""Choices that its package and its scripts have in common."""
PROTOCOLS: dict[str, Protocol] = {
    "default": Protocol(),
    "paper": Protocol(**_OF_THE_PAPER),
    "released": Protocol(**_OF_ITS_CODE, sign="abs", by_clipped_nsr=True, own_empty=True),
    "authors": Protocol(
        **_OF_ITS_CODE,
        order="stored",
        max_characters={"imdb": 500, _OTHER_TASK: 400},
        min_confidence=0.4,
        other_languages=("attention:layer=-1", "gradient:norm=l1", "random"),
    ),
}
"""Name in `--protocol` -> protocol."""


def protocol_flag(name: str) -> str | None:
    """Return the flag of the runs of a protocol; None for the default one."""
    return None if name == "default" else f"{_FLAG}{name}"


def protocol_of(flags: Iterable[str]) -> Protocol:
    """Return the protocol that the flags of a run name."""
    named = (flag.removeprefix(_FLAG) for flag in flags if flag.startswith(_FLAG))
    return PROTOCOLS[next(named, "default")]
