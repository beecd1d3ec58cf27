"""Who can be asked: a chat server, or a model on this machine."""

from collections.abc import Callable, Iterable
from typing import Protocol

from ice_eval.servers import Request, RequestPlan, RequestProgress, Response


class Asker(Protocol):
    """Answers requests, each once, and keeps every response on disk (`Chat`, `LocalChat`)."""

    def plan(self, requests: Iterable[Request]) -> RequestPlan:
        """What asking would cost at most; asks nothing."""
        ...

    def ask(
        self, requests: Iterable[Request], *, progress: Callable[[RequestProgress], None] | None = None
    ) -> dict[str, Response]:
        """The response to every request, by its key."""
        ...
