"""How probable a model finds its own answer when only a part of its chain is left."""

from collections.abc import Callable, Sequence

import numpy as np

from ice_eval.attributions import Lens, Observer, PerRow, method_of
from ice_eval.cot.local_chains import ChainUnit, EncodedChain
from ice_eval.errors import ConfigError
from ice_eval.models import Model
from ice_eval.operators.delete import Delete
from ice_eval.records import Encoded, Fills, Inputs, KeepMasks, PerUnit
from ice_eval.scoring import Scorer

STEP_ATTRIBUTIONS = ("attention", "gradient")
"""What a model shows of its own chain at the price of one look."""
_OFFERED = frozenset({"attention_maps", "attentions", "embeddings", "gradients", "values"})
"""What attributions may ask of a chain; there are no other texts to count words in."""
_NO_FILLS: Fills = np.zeros(0, dtype=np.int64)


class AnswerScorer:
    """Scores the answers of chains with one model.

    The score is the log-probability of the answer's tokens by the chain rule, from a float32 head. What is not kept is
    deleted. Rows of a chain share what stands before it, equal rows are computed once, and batches are packed.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.notes: list[str] = []
        """What a user should know of how the model is used; filled by the first chain."""
        self._checked = False

    def scores(self, chain: EncodedChain, keep: KeepMasks, *, unit: ChainUnit) -> PerRow:
        """(rows,): log-probability of the answer when the units of each row stay."""
        return self.scores_of(chain, [(unit, keep)])

    def scores_of(self, chain: EncodedChain, rows: Sequence[tuple[ChainUnit, KeepMasks]]) -> PerRow:
        """The same for rows in several units, one after the other, in one stream of batches."""
        self._check(chain)
        inputs = Inputs.join([Delete().build(chain.cut_in(unit), keep, fills=_NO_FILLS) for unit, keep in rows])
        scorer = Scorer(self.model, chain.answer, budget=self.model.default_budget())
        found: PerRow = scorer.score(inputs, prefix=chain.tokens.content.start)[:, 0]
        return found

    def attributions(self, chain: EncodedChain, names: Sequence[str], *, seed: int = 0) -> "ChainAttributions":
        """What methods say of a chain; see `ChainAttributions`."""
        self._check(chain)
        return ChainAttributions(self, chain, names, seed=seed)

    def _check(self, chain: EncodedChain) -> None:
        """Compare fast and plain scores once before anything depends on them."""
        if not self._checked:
            self._checked, item = True, chain.tokens
            rows = Inputs.join([item.full(), item.empty()])
            self.notes = self.model.check(rows, chain.answer, prefix=item.content.start)


class ChainAttributions:
    """Attributions of one chain: a number per token, or per step, where those of its tokens are summed.

    Attention is that of the last token before the answer. Gradients are those of the answer's log-probability. All
    methods share one look at the chain. Methods that probe (`occlusion`, `lime`) remove units of the kind asked for.

    Raises:
        ConfigError: A method is not known, or asks for what a chain does not offer.
    """

    def __init__(self, scorer: AnswerScorer, chain: EncodedChain, names: Sequence[str], *, seed: int) -> None:
        self._scorer, self._chain, self._seed = scorer, chain, seed
        self._methods = {name: method_of(name) for name in names}
        for name, method in self._methods.items():
            if method.needs - _OFFERED or method.sized:
                raise ConfigError(f"the attribution '{name}' cannot be asked about a chain of thought.")
        needs = frozenset[str]().union(*(method.needs for method in self._methods.values()))
        self._observer = Observer(
            scorer.model, chain.answer, {chain.problem_id: 0}, needs & {"attentions", "gradients"}
        )

    def per_unit(self, name: str, *, unit: ChainUnit) -> PerUnit:
        """(units,): how much a method says that each token or step matters."""
        method, item = self._methods[name], self._chain.cut_in(unit)
        lens = Lens(self._observer, method.needs, self._seed, name, prober=self._prober(unit))
        [values] = method.attribute(lens, [item])
        return values

    def _prober(self, unit: ChainUnit) -> Callable[[Sequence[Encoded], Sequence[KeepMasks]], list[PerRow]]:
        return lambda _, masks: [self._scorer.scores(self._chain, np.asarray(keep), unit=unit) for keep in masks]


def step_attributions(
    scorer: AnswerScorer, chain: EncodedChain, *, names: Sequence[str] = STEP_ATTRIBUTIONS, seed: int = 0
) -> dict[str, PerUnit]:
    """Name -> a number per step: by default attention, and norms of gradients, summed over the tokens of each step."""
    found = scorer.attributions(chain, names, seed=seed)
    return {name: found.per_unit(name, unit="step") for name in names}
