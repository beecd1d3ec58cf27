r"""A chain of thought as an input of a language model: its tokens are units, or its steps are.

```text
prompt of the chat …  ask_prompt(problem)  … assistant:   7 + 5 = 12 \n Half of 12 is 6 \n  Answer:   [ 6]
token units          -1                               0  1 2 3  4    5 …                     -1      scored
step units           -1                               0  0 0 0  0    1 …                     -1      scored
```

The model reads what it read and wrote when it answered: the prompt that asks for steps, the steps as its own turn, and
the beginning of the answer line. All but the steps is protected. What is scored is the answer that follows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ice_eval.cot.prompts import ask_prompt
from ice_eval.cot.tasks import Problem
from ice_eval.encoding import encode_text, following_ids
from ice_eval.errors import CapabilityError, DataError
from ice_eval.models import Labels, Model
from ice_eval.records import PROTECTED, Encoded, Span
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
    """What is scored: the tokens of the answer, each after those before it."""

    @property
    def problem_id(self) -> str:
        return self.tokens.example_id

    def cut_in(self, unit: ChainUnit) -> Encoded:
        return self.tokens if unit == "token" else self.steps


def encode_chain(model: Model, problem: Problem, steps: Sequence[str], answer: str) -> EncodedChain:
    """A chain as a model read it.

    Args:
        model: A language model. Without a chat template the prompt is plain text, and the chain follows it.
        problem: What was asked.
        steps: The steps that are judged, in their order.
        answer: What the model wrote behind `Answer:`.

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
    """The units joined: each belongs to the step that it begins in."""
    starts = np.cumsum([0, *(len(step) + 1 for step in steps[:-1])])
    step_of = np.searchsorted(starts, [span.start for span in tokens.spans], side="right") - 1
    without = set(range(len(steps))) - set(step_of.tolist())
    if without:
        raise DataError(f"problem '{tokens.example_id}': the step '{steps[min(without)]}' has no token of its own.")
    spans = tuple(Span(_CHAIN, int(start), int(start) + len(step)) for start, step in zip(starts, steps, strict=True))
    unit_of = np.append(step_of, PROTECTED)[tokens.unit_of]  # index -1 reads the sentinel at the end
    return replace(tokens, unit_of=unit_of, spans=spans, texts=tuple(steps))
