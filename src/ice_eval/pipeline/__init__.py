"""From a configuration to a run folder."""

from ice_eval.pipeline.engine import examples_read, prepare
from ice_eval.pipeline.replicas import Adapted, Replicas, load_replicas
from ice_eval.pipeline.run import Scored, finish, score
from ice_eval.pipeline.subject import Subject
from ice_eval.pipeline.text import TextSubject, lexicon_hash, task_identity
from ice_eval.scoring import Reporter, Silent

__all__ = [
    "Adapted", "Replicas", "Reporter", "Scored", "Silent", "Subject", "TextSubject", "examples_read", "finish",
    "lexicon_hash", "load_replicas", "prepare", "score", "task_identity",
]  # fmt: skip
