"""Models: token ids in, label log-scores out."""

from ice_eval.models.base import (
    PART_SIZE,
    AttentionMaps,
    DeviceMap,
    EmbeddedText,
    Generated,
    Gradients,
    Labels,
    LabelScoring,
    LoadSettings,
    MaxMemory,
    Model,
    Pending,
    Prior,
    Scoring,
    model,
    models,
)
from ice_eval.models.function import is_function
from ice_eval.models.load import SUITE, HubModel, ModelRef, load_model, load_reader, suite_model
from ice_eval.models.served import SERVED, Served

__all__ = [
    "PART_SIZE", "SERVED", "SUITE", "AttentionMaps", "DeviceMap", "EmbeddedText", "Generated",
    "Gradients", "HubModel", "LabelScoring", "Labels", "LoadSettings", "MaxMemory", "Model", "ModelRef", "Pending",
    "Prior", "Scoring", "Served", "is_function", "load_model", "load_reader", "model", "models", "suite_model",
]  # fmt: skip
