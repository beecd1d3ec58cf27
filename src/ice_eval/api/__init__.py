"""The Python interface: `evaluate`, `plan`, `Run`, `randomization_test`."""

from ice_eval.api.evaluation import AttributionSpec, evaluate, plan
from ice_eval.api.run import Run, randomization_test

__all__ = ["AttributionSpec", "Run", "evaluate", "plan", "randomization_test"]
