"""The toy's bag of words behind a completions endpoint, generous or mean with what it tells."""

import math
import re

from tests.servers.chat_server import completion, continuation, error

from ice_eval.models.toy import BIAS, WEIGHTS

_TOKEN = re.compile(r" ?\w+|\s|[^\w\s]")
_LABELS, _REST = 0.6, 0.4
"""What labels and all other tokens share of the probability."""
AFTER = {" very": (" bad", " good"), "": (" negative", " positive")}
"""What the text ends in -> the two words that may follow, as the toy decides."""


def log_odds(text):
    """Of the positive label: the toy's, of all words that stand in the prompt."""
    return BIAS + sum(WEIGHTS.get(word, 0.0) for word in re.findall(r"\w+", text.lower()))


def next_tokens(text, fillers=60):
    """Token -> log-probability of what follows a text."""
    end = " very" if text.endswith(" very") else ""
    odds = log_odds(text.removesuffix(end))
    found = {f" filler{place}": math.log(_REST / fillers) for place in range(fillers)}
    for word, sign in zip(AFTER[end], (-1, 1), strict=True):
        found[word] = math.log(_LABELS) - math.log1p(math.exp(-sign * odds))
    return found | {" very": math.log(_LABELS / 4)} if not end else found


class Bag:
    """Answers as a server would that serves the toy.

    Args:
        most: Tokens that it names at most; more are refused.
        echo: `right`, `shifted` by one token, or refused (None).
        codec: Reads token ids; without one they are refused, with this status.
        by_id: Whether it names tokens by id if asked to.
        silent: Whether it names no tokens at all, without a word.
        fillers: Tokens that are no label.
    """

    def __init__(self, *, most=1000, echo="right", codec=None, ids_status=400, by_id=False, silent=False, fillers=60):
        self.most, self.echo, self.codec, self.by_id, self.silent = most, echo, codec, by_id, silent
        self.ids_status, self.fillers = ids_status, fillers

    def __call__(self, request, number):
        if "messages" in request:
            return completion("good, slow")
        prompt = request["prompt"]
        if isinstance(prompt, list):
            if self.codec is None:
                return error(self.ids_status, "prompt must be a string")
            prompt = self.codec.spelled(prompt)
        if self.silent:
            return continuation({}, text=" positive", logprobs=None)
        if request["logprobs"] > self.most:
            return error(400, f"at most {self.most} logprobs")
        if request.get("echo"):
            return self._echoed(request, prompt)
        return continuation(self._named(request, self._listed(prompt, request["logprobs"])))

    def _listed(self, prompt, n):
        ranked = sorted(next_tokens(prompt, self.fillers).items(), key=lambda each: -each[1])
        return dict(ranked[:n])

    def _echoed(self, request, prompt):
        if self.echo is None:
            return error(400, "echo is not supported")
        if isinstance(request["prompt"], list):
            tokens = [self.codec.spelled([index]) for index in request["prompt"]]
        else:
            tokens = _TOKEN.findall(prompt)
        values = [None, *(next_tokens("".join(tokens[:place])).get(token, -20.0) for place, token in enumerate(tokens))]
        values = values[1:] if self.echo == "right" else values[:-1]
        if self.by_id and self._wants_ids(request):
            tokens = [f"token_id:{index}" for index in request["prompt"]]
        top = self._named(request, self._listed(prompt, 1))
        best = next(iter(top))
        return continuation(top, text=prompt + best, tokens=[*tokens, best], values=[*values, top[best]])

    def _named(self, request, top):
        if not (self.by_id and self._wants_ids(request)):
            return top
        return {f"token_id:{self.codec.id_of(token)}": value for token, value in top.items()}

    def _wants_ids(self, request):
        return bool(request.get("return_tokens_as_token_ids"))
