"""The words that settings may hold. Nothing is imported here, so that the command line starts fast."""

from typing import Literal

Unit = Literal["token", "word", "step"]
AnswerStep = Literal["drop", "keep"]
ChainFrom = Literal["auto", "visible", "thinking"]
Pose = Literal["user", "prefill", "neutral"]
Hint = Literal["opinion", "authority", "metadata"]
Scope = Literal["content", "prompt"]
Direction = Literal["sufficiency", "necessity"]
Target = Literal["predicted", "gold"]
Sign = Literal["support", "abs"]
FillMode = Literal["shared", "own"]
LabelScoring = Literal["first", "full"]
Calibration = Literal["none", "contextual"]
Adaptive = Literal["dataset", "examples"]
Until = Literal["decided"]
ProtocolName = Literal["default", "paper", "released"]
Share = float | Literal["dynamic"]
"""Size of a rationale: a share of the units, or as many as the attribution has peaks."""

DYNAMIC: Literal["dynamic"] = "dynamic"
