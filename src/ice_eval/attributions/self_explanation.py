"""The model's own word for what mattered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ice_eval.attributions._answers import named_units
from ice_eval.attributions._base import Attribution, attribution
from ice_eval.attributions._lens import Lens
from ice_eval.errors import ConfigError
from ice_eval.models import Generated
from ice_eval.records import Answer, Encoded, PerUnit

_WORKED = {"text": "The soup arrived cold, and although the room was pretty, the waiter was rude to all of us."}
_WORKED_LABEL = "negative"
_WORKED_ANSWER = ("cold", "rude", "waiter", "soup", "arrived", "although", "room", "all", "pretty", "us")


@attribution("self-explanation", needs={"generate"})
@dataclass(frozen=True, kw_only=True)
class SelfExplanation(Attribution):
    """Words that a language model lists when asked what mattered for its label, the first mentioned the highest.

    Everything that it does not name is 0. An answer in which no word of the text can be found gives no numbers: the
    example takes no part, and the answer is kept with the reason.
    """

    words: int = 5
    """Words that are asked for."""
    max_tokens: int = 48
    """Longest answer."""

    def __post_init__(self) -> None:
        for name in ("words", "max_tokens"):
            if getattr(self, name) < 1:
                raise ConfigError(f"self-explanation: {name} = {getattr(self, name)}; at least 1 is needed.")

    def check(self, lens: Lens, item: Encoded) -> None:
        if item.whole:
            raise ConfigError(
                f"the attribution '{lens.name}' asks for words of the text, and with scope 'prompt' the template is "
                "explained too; use scope 'content'."
            )

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        asked = [(item.fields, lens.label(item).name) for item in batch]
        if lens.chat:
            turns = [("user", self._question(_WORKED, _WORKED_LABEL)), ("assistant", self._worked_answer())]
            prompts = [self._question(*each) for each in asked]
            answers = lens.generate(prompts, turns=turns, max_tokens=self.max_tokens)
        else:
            worked = f"{self._beginning(_WORKED, _WORKED_LABEL)} {self._worked_answer()}\n\n"
            prompts = [worked + self._beginning(*each) for each in asked]
            answers = lens.generate(prompts, max_tokens=self.max_tokens, stop="\n")
        return [self._read(lens, item, answer) for item, answer in zip(batch, answers, strict=True)]

    def _question(self, fields: Mapping[str, str], label: str) -> str:
        """For a model that follows instructions."""
        return (
            f"{_shown(fields, label)}\nList the {self.words} words of the text that matter most for this label, the "
            "most important first."
        )

    def _beginning(self, fields: Mapping[str, str], label: str) -> str:
        """For a model that goes on with a text."""
        return f"{_shown(fields, label)}\nThe {self.words} most important words for this label:"

    def _worked_answer(self) -> str:
        return ", ".join(_WORKED_ANSWER[: self.words])

    def _read(self, lens: Lens, item: Encoded, answer: Generated) -> PerUnit:
        if answer.text is None:
            lens.note(item, Answer(None, 0, problem="the question is longer than what the model takes"))
            return np.full(item.n_units, np.nan)
        found = named_units(answer.text, item)
        lens.note(item, Answer(answer.text, answer.tokens, found.n_named, found.n_absent, found.problem))
        return np.full(item.n_units, np.nan) if found.values is None else found.values


def _shown(fields: Mapping[str, str], label: str) -> str:
    """An example and its label, a line each; a task with several texts names them."""
    names = {name: name.capitalize() for name in fields} if len(fields) > 1 else dict.fromkeys(fields, "Text")
    lines = [f"{names[name]}: {' '.join(text.split())}" for name, text in fields.items()]
    return "\n".join([*lines, f"Label: {label}"])
