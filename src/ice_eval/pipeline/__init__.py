"""From a configuration to a run folder."""

from ice_eval.pipeline.config import ADDABLE, RunConfig
from ice_eval.pipeline.run import PILOT_SETS, Reporter, Silent, execute

__all__ = ["ADDABLE", "PILOT_SETS", "Reporter", "RunConfig", "Silent", "execute"]
