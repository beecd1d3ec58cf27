"""The paper's tables and figures, made again from one's own runs."""

from ice_eval.reproduce.catalogue import EXPERIMENTS, ITEMS, Experiment, Item, chosen
from ice_eval.reproduce.findings import Finding
from ice_eval.reproduce.layout import Value
from ice_eval.reproduce.run import Choices, ExperimentCost, Made, Progress, Reproduction

__all__ = [
    "EXPERIMENTS", "ITEMS", "Choices", "Experiment", "ExperimentCost", "Finding", "Item", "Made", "Progress",
    "Reproduction", "Value", "chosen",
]  # fmt: skip
