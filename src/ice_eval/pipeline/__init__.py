"""From a configuration to a run folder."""

from ice_eval.pipeline.config import ADDABLE, RunConfig, task_identity
from ice_eval.pipeline.engine import examples_read, prepare
from ice_eval.pipeline.progress import Reporter, Silent
from ice_eval.pipeline.replicas import Adapted, Replicas, load_replicas
from ice_eval.pipeline.run import Scored, finish, score

__all__ = [
    "ADDABLE",
    "Adapted",
    "Replicas",
    "Reporter",
    "RunConfig",
    "Scored",
    "Silent",
    "examples_read",
    "finish",
    "load_replicas",
    "prepare",
    "score",
    "task_identity",
]
