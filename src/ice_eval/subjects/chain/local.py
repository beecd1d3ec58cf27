r"""A language model on this machine scores its own answer after parts of its chain, and shows its attributions.

A chain of thought is an input of the model whose units are its tokens, or its steps:

```text
prompt of the chat …  ask_prompt(problem)  … assistant:   7 + 5 = 12 \n Half of 12 is 6 \n  Answer:   [ 6]
token units          -1                               0  1 2 3  4    5 …                     -1      scored
step units           -1                               0  0 0 0  0    1 …                     -1      scored
```

The model reads what it read and wrote when it answered: the prompt that asks for steps, the steps as its own turn, and
the beginning of the answer line. All but the steps is protected. The score is that of the answer that follows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ice_eval.attributions import Attribution, Lens, Observer, PerRow, method_of
from ice_eval.encoding import encode_text, following_ids
from ice_eval.errors import CapabilityError, ConfigError, DataError
from ice_eval.models import Labels, Model
from ice_eval.operators.remove import Delete
from ice_eval.records import PROTECTED, Encoded, Fills, Inputs, KeepMasks, PerUnit, Span
from ice_eval.scoring import Scorer
from ice_eval.subjects.chain.chat import ask_prompt
from ice_eval.subjects.chain.problems import Problem
from ice_eval.tasks import Piece

ChainUnit = Literal["token", "step"]

_CHAIN = "chain"
_ANSWER = "\nAnswer:"


@dataclass(frozen=True)
class EncodedChain:
    """A chain that a model wrote, cut in two ways, and the answer that it came to."""

    tokens: Encoded
    """With its tokens as units."""
    steps: Encoded
    """The same ids, with its steps as units; a line break belongs to the step before it."""
    answer: Labels
    """The tokens that are scored, each after those before it."""

    @property
    def problem_id(self) -> str:
        return self.tokens.example_id

    def cut_in(self, unit: ChainUnit) -> Encoded:
        return self.tokens if unit == "token" else self.steps


def encode_chain(model: Model, problem: Problem, steps: Sequence[str], answer: str) -> EncodedChain:
    """Encode a chain as the model read it.

    Args:
        model: A language model. Without a chat template the prompt is plain text, and the chain follows it.
        problem: The question.
        steps: The steps that are judged, in their order.
        answer: Text that the model wrote behind `Answer:`.

    Raises:
        CapabilityError: The model is no language model.
        DataError: There is no step or no answer, or they do not fit into what the model takes.
    """
    if "generate" not in model.offers:
        raise CapabilityError(f"'{model.name}' is no language model, so it has no probability of a written answer.")
    if not answer.strip() or not steps or not all(step.strip() for step in steps):
        raise DataError(f"problem '{problem.id}': a chain needs an answer and steps, none of them empty.")
    framed = model.chats
    before, after = model.codec.chat_frame(()) if framed else ("", "\n\n")
    pieces = [Piece(before + ask_prompt(problem) + after), Piece("\n".join(steps), _CHAIN), Piece(_ANSWER)]
    tokens = encode_text(model.codec, pieces, example_id=problem.id, framed=framed)
    text = "".join(piece.text for piece in pieces)
    ids = following_ids(model.codec, text, f" {answer.strip()}", framed=framed)
    labels = Labels((answer.strip(),), (ids,), scoring="full")
    length = len(tokens.ids) + labels.reserve
    if length > model.codec.max_tokens:
        raise DataError(
            f"problem '{problem.id}': prompt, chain and answer have {length} tokens, and the model takes "
            f"{model.codec.max_tokens}."
        )
    return EncodedChain(tokens, _in_steps(tokens, steps), labels)


def _in_steps(tokens: Encoded, steps: Sequence[str]) -> Encoded:
    """Join the units: each belongs to the step that it begins in."""
    starts = np.cumsum([0, *(len(step) + 1 for step in steps[:-1])])
    step_of = np.searchsorted(starts, [span.start for span in tokens.spans], side="right") - 1
    without = set(range(len(steps))) - set(step_of.tolist())
    if without:
        raise DataError(f"problem '{tokens.example_id}': the step '{steps[min(without)]}' has no token of its own.")
    spans = tuple(Span(_CHAIN, int(start), int(start) + len(step)) for start, step in zip(starts, steps, strict=True))
    unit_of = np.append(step_of, PROTECTED)[tokens.unit_of]  # index -1 reads the sentinel at the end
    return replace(tokens, unit_of=unit_of, spans=spans, texts=tuple(steps))


STEP_ATTRIBUTIONS = ("attention", "gradient")
"""Attributions that need one forward and backward pass."""
_OFFERED = frozenset({"attention_maps", "attentions", "embeddings", "gradients", "values"})
"""Needs of attributions that a chain offers; there are no other texts to count words in."""
_NO_FILLS: Fills = np.zeros(0, dtype=np.int64)


class AnswerScorer:
    """Scores the answers of chains with one model.

    The score is the log-probability of the answer's tokens by the chain rule, from a float32 head. What is not kept is
    deleted. Rows of a chain share what stands before it, equal rows are computed once, and batches are packed.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.notes: list[str] = []
        """Remarks for the user on how the model is run; filled by the first chain."""
        self._checked = False

    def scores(self, chain: EncodedChain, keep: KeepMasks, *, unit: ChainUnit) -> PerRow:
        """Return the log-probability of the answer when the units of each row stay, (rows,)."""
        return self.scores_of(chain, [(unit, keep)])

    def scores_of(self, chain: EncodedChain, rows: Sequence[tuple[ChainUnit, KeepMasks]]) -> PerRow:
        """Return the same for rows in several units, one after the other, in one stream of batches."""
        self._check(chain)
        inputs = Inputs.join([Delete().build(chain.cut_in(unit), keep, fills=_NO_FILLS) for unit, keep in rows])
        scorer = Scorer(self.model, chain.answer, budget=self.model.default_budget())
        found: PerRow = scorer.score(inputs, prefix=chain.tokens.content.start)[:, 0]
        return found

    def attributions(
        self,
        chain: EncodedChain,
        methods: Mapping[str, Attribution] | Sequence[str] = STEP_ATTRIBUTIONS,
        *,
        units: Sequence[ChainUnit] = ("step",),
        seed: int = 0,
    ) -> dict[ChainUnit, dict[str, PerUnit]]:
        """Return a number per token, or per step, where those of its tokens are summed, by unit and method.

        Attention is that of the last token before the answer. Gradients are those of the answer's log-probability. All
        methods and units share one forward and backward pass. Methods that probe (`occlusion`, `lime`) remove units of
        the kind asked for.

        Raises:
            ConfigError: A method is not known, or asks for what a chain does not offer.
        """
        self._check(chain)
        chosen = methods if isinstance(methods, Mapping) else {name: method_of(name) for name in methods}
        for name, method in chosen.items():
            if method.needs - _OFFERED or method.sized:
                raise ConfigError(f"the attribution '{name}' cannot be asked about a chain of thought.")
        needs = frozenset[str]().union(*(method.needs for method in chosen.values()))
        observer = Observer(self.model, chain.answer, {chain.problem_id: 0}, needs & {"attentions", "gradients"})
        found: dict[ChainUnit, dict[str, PerUnit]] = {unit: {} for unit in units}
        for unit in units:

            def probe(
                _: Sequence[Encoded], masks: Sequence[KeepMasks], repeat: int, unit: ChainUnit = unit
            ) -> list[PerRow]:
                return [self.scores(chain, np.asarray(keep), unit=unit) for keep in masks]

            for name, method in chosen.items():
                lens = Lens(observer, method.needs, seed, name, prober=probe)
                [found[unit][name]] = method.attribute(lens, [chain.cut_in(unit)])
        return found

    def _check(self, chain: EncodedChain) -> None:
        """Compare fast and plain scores once before anything depends on them."""
        if not self._checked:
            self._checked, item = True, chain.tokens
            rows = Inputs.join([item.full(), item.empty()])
            self.notes = self.model.check(rows, chain.answer, prefix=item.content.start)
