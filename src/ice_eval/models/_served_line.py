"""The line to a server: every answer is kept, first beside the run and then in its folder."""

import contextlib
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ice_eval.errors import ModelError, RefusedError
from ice_eval.servers import (
    RESPONSES,
    Budget,
    Chat,
    Question,
    Response,
    ResponseStore,
    Server,
    Tokens,
    addresses,
    read_responses,
)

_FEW_ATTEMPTS = 3


class Line:
    """Asks a server, and no question twice.

    What is asked before there is a folder (how the server can be asked at all) is kept in a temporary place and moves
    into the folder with the first row: a server that cannot be used leaves nothing behind.
    """

    def __init__(self, server: Server, budget: Budget) -> None:
        self.server = server
        self.budget = budget
        draft = Path(tempfile.mkdtemp(prefix="ice-"))
        weakref.finalize(self, shutil.rmtree, draft, ignore_errors=True)
        self._draft = ResponseStore(draft / RESPONSES)
        self._kept: ResponseStore | None = None

    def ask(self, questions: Sequence[Question]) -> list[Response]:
        """An answer to every question, in their order.

        Raises:
            ModelError: The server does not answer one of them, however often it is asked.
        """
        answers = self._asked(questions, self.server)
        for answer in answers:
            if not answer.answered:
                raise self._unanswered(answer)
        return answers

    def try_to_ask(self, questions: Sequence[Question]) -> list[Response]:
        """The same for questions that not every server takes: one that breaks it each time counts as refused.

        Raises:
            RefusedError: The server does not take them.
        """
        answers = self._asked(questions, replace(self.server, attempts=_FEW_ATTEMPTS))
        for answer in answers:
            if (answer.error or "").startswith("status 500"):  # some say so in place of "bad request"
                raise RefusedError(f"{self.server.base_url} refuses: {answer.error}")
            if not answer.answered:
                raise self._unanswered(answer)
        return answers

    def takes(self, question: Question) -> bool:
        """Whether the server takes a question."""
        try:
            self.try_to_ask([question])
        except RefusedError:
            return False
        return True

    def _asked(self, questions: Sequence[Question], server: Server) -> list[Response]:
        with contextlib.nullcontext(self._kept) if self._kept is not None else self._draft as store:
            found = Chat(server, store, budget=self.budget).ask(questions)
        return [found[question.key] for question in questions]

    def _unanswered(self, answer: Response) -> ModelError:
        return ModelError(
            f"{self.server.base_url} gave no answer to a request, however often it was asked ({answer.error}); what "
            "was answered is kept, and the same command continues."
        )

    def continues(self, folder: Path) -> None:
        """Know what an earlier run of the folder was answered.

        Raises:
            ConfigError: A line of its file is damaged; it is named where it stands, not in the copy.
        """
        kept = folder / RESPONSES
        if kept.is_file():
            for _ in read_responses(kept):
                pass
            shutil.copyfile(kept, self._draft.path)

    @contextlib.contextmanager
    def keeping(self, folder: Path) -> Iterator[None]:
        """Keep answers in a folder, those of before included."""
        with ResponseStore(folder / RESPONSES) as store:
            for key, response in self._draft.responses.items():
                if key not in store.responses or (response.answered and not store.has_answer(key)):
                    store.add(response)
            self._kept = store
            try:
                yield
            finally:
                self._kept = None

    def addresses(self) -> dict[str, Any]:
        """Where the answers came from, or where they will be asked for."""
        store = self._draft if self._kept is None else self._kept
        return {"base_url": self.server.base_url, **addresses(store.responses.values())}

    def cost(self, tokens: Tokens) -> float | None:
        """What tokens cost; None without prices."""
        return self.budget.cost(tokens)
