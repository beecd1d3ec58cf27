"""From a configuration to a run folder."""

from ice_eval.pipeline.engine import examples_read, prepare
from ice_eval.pipeline.identity import lexicon_hash, task_identity
from ice_eval.pipeline.progress import Reporter, Silent
from ice_eval.pipeline.replicas import Adapted, Replicas, load_replicas
from ice_eval.pipeline.run import Scored, finish, score

__all__ = [
    "Adapted",
    "Replicas",
    "Reporter",
    "Scored",
    "Silent",
    "examples_read",
    "finish",
    "lexicon_hash",
    "load_replicas",
    "prepare",
    "score",
    "task_identity",
]
