"""From a configuration to a run folder."""

from ice_eval.pipeline.config import ADDABLE, RunConfig
from ice_eval.pipeline.data import examples_read
from ice_eval.pipeline.progress import Reporter, Silent
from ice_eval.pipeline.run import execute

__all__ = ["ADDABLE", "Reporter", "RunConfig", "Silent", "examples_read", "execute"]
