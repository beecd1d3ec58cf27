"""The words that settings may hold. Nothing is imported here, so that the command line starts fast."""

from typing import Literal

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
