"""Log-probabilities of labels, read off what a server says of tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval.models._records import LabelScoring
from ice_eval.models._served_means import LabelTokens, Means, Prompt, followed, is_same, top_of, value_of
from ice_eval.records import LabelIds
from ice_eval.servers import Response


class Found(NamedTuple):
    """What labels are worth after some prompts."""

    values: NDArray[np.float64]
    """(prompts, labels): log-probabilities; a prompt that the server does not say it of is NaN throughout."""
    tokens: int
    """Tokens that it cost."""


@dataclass(frozen=True)
class LabelReader:
    """Asks for labels in the cheapest way that knows them all.

    The labels of a row come from one answer, or all from echoes, never some from here and some from there: servers
    leave out now this and now that when they normalise. A label that no way finds is unknown, not improbable.
    """

    means: Means
    words: Sequence[str]
    """The labels as they follow a prompt."""
    ids: LabelIds | None
    """Their token ids, where prompts are ids."""
    tokens: LabelTokens
    """Their tokens, as the server names them."""
    scoring: LabelScoring
    echo_is_trusted: bool

    @property
    def takes_all_tokens(self) -> bool:
        """Whether a label is scored by several tokens (chain rule), which the list of next tokens does not show."""
        return self.scoring == "full" and max(map(len, self.tokens)) > 1

    def log_probabilities(self, prompts: Sequence[Prompt], *, repeat: int = 0) -> Found:
        """Of each label after each prompt."""
        if self.takes_all_tokens:
            return self._by_echo(prompts, repeat=repeat)
        answers = self.means.ask(prompts, repeat=repeat)
        found = Found(np.array([self._listed(top_of(answer)) for answer in answers]), _cost(answers))
        unknown = _unknown(found)
        for many in self.means.longer() if unknown else ():
            longer = self.means.ask_longer([prompts[index] for index in unknown], many, repeat=repeat)
            for index, answer in zip(unknown, longer, strict=True):
                found.values[index] = self._listed(top_of(answer), unless_other_than=top_of(answers[index]))
            found = found._replace(tokens=found.tokens + _cost(longer))
            unknown = _unknown(found)
            if not unknown:
                break
        if unknown and self.echo_is_trusted:
            echoed = self._by_echo([prompts[index] for index in unknown], repeat=repeat)
            found.values[unknown] = echoed.values
            found = found._replace(tokens=found.tokens + echoed.tokens)
        return found

    def _listed(self, top: Mapping[str, float], unless_other_than: Mapping[str, float] | None = None) -> list[float]:
        """First tokens of all labels in a list of next tokens.

        In a long list a rare token may stand in for a frequent one that spells the same; then the shorter list, where
        it has the label, says something else.
        """
        names = [tokens[0] for tokens in self.tokens]
        before = unless_other_than or {}
        if any(name not in top or not is_same(top[name], before.get(name, top[name])) for name in names):
            return [np.nan] * len(names)
        return [top[name] for name in names]

    def _by_echo(self, prompts: Sequence[Prompt], *, repeat: int) -> Found:
        """A request for each label: the prompt with the label behind it, repeated by the server token by token."""
        ids = self.ids if self.ids is not None else [None] * len(self.words)
        asked = [followed(prompt, word, own) for prompt in prompts for word, own in zip(self.words, ids, strict=True)]
        answers = self.means.ask_echo(asked, repeat=repeat)
        values = [self._echoed(answer, index % len(self.words)) for index, answer in enumerate(answers)]
        scores = np.array(values, dtype=np.float64).reshape(len(prompts), len(self.words))
        scores[np.isnan(scores).any(axis=1)] = np.nan
        return Found(scores, _cost(answers))

    def _echoed(self, answer: Response, label: int) -> float:
        first_only = not self.takes_all_tokens
        value = answer.logprobs and value_of(answer.logprobs, self.tokens[label], first_only=first_only)
        return np.nan if value is None else value


def _unknown(found: Found) -> list[int]:
    unknown: list[int] = np.flatnonzero(np.isnan(found.values).any(axis=1)).tolist()
    return unknown


def _cost(answers: Sequence[Response]) -> int:
    return sum(sum(answer.usage or answer.billed) for answer in answers)
