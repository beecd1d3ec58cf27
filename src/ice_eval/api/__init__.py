"""What a notebook user sees: `evaluate`, `plan`, `Run`, `randomization_test`."""

from ice_eval.api.evaluation import evaluate
from ice_eval.api.given import AttributionSpec
from ice_eval.api.planning import plan
from ice_eval.api.randomization import randomization_test
from ice_eval.api.run import Run

__all__ = ["AttributionSpec", "Run", "evaluate", "plan", "randomization_test"]
