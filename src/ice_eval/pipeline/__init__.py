"""From a configuration to a run folder."""

from ice_eval.pipeline.config import ADDABLE, RunConfig
from ice_eval.pipeline.run import Reporter, Silent, execute

__all__ = ["ADDABLE", "Reporter", "RunConfig", "Silent", "execute"]
