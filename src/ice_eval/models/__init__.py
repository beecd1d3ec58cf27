"""Ids in, label log-scores out. One file per named model; the transformers family behind `load_model`."""

from ice_eval.models._base import PART_SIZE, Model, model, models
from ice_eval.models._load import ModelRef, load_model, load_reader
from ice_eval.models._loading import DeviceMap, Loading, MaxMemory
from ice_eval.models._records import (
    AttentionMaps,
    Conversation,
    EmbeddedText,
    Generated,
    Gradients,
    Labels,
    LabelScoring,
    Pending,
    Prior,
    Reply,
)
from ice_eval.models._served import SERVED, Served
from ice_eval.models._suite import SUITE, HubModel, suite_model

__all__ = [
    "PART_SIZE",
    "SERVED",
    "SUITE",
    "AttentionMaps",
    "Conversation",
    "DeviceMap",
    "EmbeddedText",
    "Generated",
    "Gradients",
    "HubModel",
    "LabelScoring",
    "Labels",
    "Loading",
    "MaxMemory",
    "Model",
    "ModelRef",
    "Pending",
    "Prior",
    "Reply",
    "Served",
    "load_model",
    "load_reader",
    "model",
    "models",
    "suite_model",
]
