"""Claims of a model behind a server: scored by its echo, else by what the model states when it answers again."""

import functools
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ice_eval.errors import CapabilityError, ConfigError, ModelError, reported
from ice_eval.models import Generated, Labels, LabelScoring, Model, Pending
from ice_eval.models.served import AskedModel, ServedModel
from ice_eval.records import SCORED, Encoded, Inputs, LogScores, Unit
from ice_eval.results import RunFolder
from ice_eval.results.chains import CHANGED as MISSING
from ice_eval.results.chains import SAME as STATED
from ice_eval.servers import Request
from ice_eval.subjects.context.tasks import CitationTask
from ice_eval.tasks import AnyTask
from ice_eval.words import word_spans

Judge = Callable[[str, str], bool]
"""Takes a claim and a reply; returns True if the reply states the claim."""
LABELS = ("stated", "missing")
_UNREAD = (np.nan, np.nan)
_MARK = re.compile(r"\[[^\[\]\n]*\](?:\(https?://[^\s()]+\))?|【[^【】\n]*】|\([\d\s,;–-]+\)|[⁰¹²³⁴-⁹]+")
"""Citations, and some other brackets: they are removed from claim and reply alike."""


def is_stated(claim: str, reply: str) -> bool:
    """Return True if a reply holds the words of a claim; case, punctuation, spaces and citations do not count."""

    def words_of(text: str) -> str:
        plain = _MARK.sub(" ", unicodedata.normalize("NFC", text).casefold().replace("’", "'"))
        words = (plain[start:end] for start, end in word_spans(plain))
        return " ".join(word for word in words if any(map(str.isalnum, word)))

    words = words_of(claim)
    return bool(words) and f" {words} " in f" {words_of(reply)} "


class JudgedModel(AskedModel):
    """A model behind a server that scores claims.

    Scores are log-probabilities where the server's echo can be trusted. Elsewhere, or with a judge, each row asks the
    model to answer the question again, from the passages that the row keeps: the reply states the claim or not.
    """

    units: ClassVar[tuple[Unit, ...]] = ("sentence", "passage")

    def __init__(self, served: ServedModel, task: CitationTask, *, judge: Judge | None, max_tokens: int) -> None:
        self.name, self.codec = served.name, served.codec
        self.answers_again = judge is not None
        """True if rows are questions to answer again; without a judge, known after `text_labels`."""
        self._served, self._task, self._judge, self._max_tokens = served, task, judge, max_tokens
        self._is_stated = functools.cache(self._judged)  # a judge may ask somebody

    @property
    def fingerprint(self) -> str:
        name = "exactly" if self._judge is None else f"by {getattr(self._judge, '__qualname__', type(self._judge))}"
        return f"{self._served.fingerprint}, replies of {self._max_tokens} tokens compared {name}"

    @property
    def server(self) -> Mapping[str, Any]:
        labels = {"label_tokens": [[name] for name in LABELS]} if self.answers_again else {}
        return {**self._served.server, **labels}

    @property
    def notes(self) -> Sequence[str]:
        if not self.answers_again:
            return self._served.notes
        if self._judge is not None:
            return [f"{self.name}: each row asks it to answer again, and claims are compared by your judge."]
        why = "the server gives no log-probabilities of a prompt's tokens, so each row asks it to answer again"
        return [f"{self.name}: {why}, and claims are compared exactly."]

    def labels(self, task: AnyTask, *, scoring: LabelScoring | None = None) -> Labels:
        raise TypeError("claims have no label words")

    def text_labels(self, name: str) -> Labels:
        """Find out how rows can be scored."""
        try:
            labels = None if self.answers_again else self._served.text_labels(name)
        except CapabilityError:
            labels = None
        if labels is None:
            self.answers_again = True
            return Labels(LABELS, ((0,), (1,)), are_classes=True)
        if self._task.chat and not self.chats:
            needs = "a server that takes token ids, and a --tokenizer with a chat template"
            raise CapabilityError(f"--chat needs {needs}; leave it out.")
        return labels

    @property
    def chats(self) -> bool:
        return not self.answers_again and self._served.chats

    def submit(self, batch: Inputs, labels: Labels, *, prefix: int = 0) -> Pending:
        if not self.answers_again:
            return self._served.submit(batch, labels, prefix=prefix)
        scores, tokens = self._answered(batch)
        return Pending(lambda: scores, tokens)

    def again(self, batch: Inputs, labels: Labels, *, prefix: int = 0) -> LogScores:
        """Ask anew, ignoring stored replies."""
        if not self.answers_again:
            return self._served.again(batch, labels, prefix=prefix)
        return self._answered(batch, repeat=1)[0]

    def skip_reasons(self, items: Sequence[Encoded]) -> dict[str, str]:
        """Return a reason for each claim that the model does not state even when it sees all passages."""
        scores, _ = self._answered(Inputs.join([item.full() for item in items]))
        reason = "asked again with all passages, the model does not state the claim"
        return {item.example_id: reason for item, row in zip(items, scores, strict=True) if tuple(row) == MISSING}

    def _answered(self, batch: Inputs, *, repeat: int = 0) -> tuple[LogScores, int]:
        """Return log-scores of `LABELS` from the replies to the rows, and the tokens of the replies."""
        replies = self._served.replies(self._requests(batch, repeat=repeat))
        rows = (batch.take([index]) for index in range(len(batch)))
        claims = (self._served.text(row.ids[row.segments == SCORED]).strip() for row in rows)
        scores = []
        for claim, reply in zip(claims, replies, strict=True):
            unread = _UNREAD if reply.status in ("truncated", "too_long") else MISSING
            stated = self._is_stated(claim, reply.text.rpartition("</think>")[2].partition("<think>")[0])
            scores.append(STATED if stated else unread)
        return np.array(scores).reshape(-1, len(LABELS)), sum(sum(reply.usage or reply.billed) for reply in replies)

    def _requests(self, batch: Inputs, *, repeat: int = 0) -> list[Request]:
        rows = (batch.take([index]) for index in range(len(batch)))
        prompts = [self._served.text(row.ids[: int(np.argmax(row.segments == SCORED))]).strip() for row in rows]
        turns = [] if self._task.system is None else [("system", self._task.system)]
        return self._served.chat_requests(prompts, turns=turns, max_tokens=self._max_tokens, repeat=repeat)

    def _judged(self, claim: str, reply: str) -> bool:
        if self._judge is None:
            return is_stated(claim, reply)
        with reported("the judge failed"):
            found = self._judge(claim, reply)
        if not isinstance(found, bool | np.bool_):
            raise ModelError(f"the judge returned {found!r:.60}; True or False is expected.")
        return bool(found)

    def generate(
        self, prompts: Sequence[str], *, turns: Sequence[tuple[str, str]] | None, max_tokens: int, stop: str | None
    ) -> list[Generated]:
        return self._served.generate(prompts, turns=turns, max_tokens=max_tokens, stop=stop)

    def outlook(self, rows: int, inputs: Inputs) -> list[str]:
        if not self.answers_again:
            return self._served.outlook(rows, inputs)
        return self._served.estimate(rows, self._requests(inputs))

    def continues(self, folder: Path) -> None:
        self._served.continues(folder)
        self.answers_again |= RunFolder(folder).manifest().labels == LABELS

    def keeping(self, folder: Path) -> AbstractContextManager[None]:
        return self._served.keeping(folder)

    def default_budget(self) -> int:
        """Return some hundred rows: prompts with passages are long."""
        return 262_144


def scoring_claims(model: Model, task: AnyTask, *, judge: Judge | None, max_tokens: int) -> Model:
    """Return a model that can score the claims of a task; raise ConfigError if a judge has nothing to compare."""
    if isinstance(task, CitationTask) and isinstance(model, ServedModel):
        return JudgedModel(model, task, judge=judge, max_tokens=max_tokens)
    if judge is not None:
        where = "the replies of a model behind a server (Served), in the task 'citations'"
        raise ConfigError(f"`judge` compares claims with {where}; leave it out here.")
    return model
