"""A look into a model on this machine: token attributions of a chain, summed over its steps."""

from collections.abc import Callable

from ice_eval.cot.attributions import Unexplained
from ice_eval.cot.cases import Case
from ice_eval.cot.local_chains import encode_chain
from ice_eval.cot.local_scores import AnswerScorer, step_attributions
from ice_eval.errors import DataError
from ice_eval.models import Model
from ice_eval.records import PerUnit


class Inside:
    """Attributions of the log-probability of the model's own answer, after its own chain."""

    def __init__(self, model: Model, *, seed: int) -> None:
        self._model, self._seed = model, seed
        self._scorer = AnswerScorer(model)

    def of(self, case: Case) -> Callable[[str], PerUnit]:
        """Gives each step of a case its sum, by the name of a token attribution."""

        def summed(name: str) -> PerUnit:
            try:
                chain = encode_chain(self._model, case.problem, case.texts, case.own.value)
            except DataError as exc:  # too long for the model's window
                raise Unexplained(str(exc)) from exc
            return step_attributions(self._scorer, chain, names=(name,), seed=self._seed)[name]

        return summed
