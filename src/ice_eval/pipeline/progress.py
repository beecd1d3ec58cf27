"""Where a run tells how far it is."""

from typing import Protocol


class Reporter(Protocol):
    """Where a run tells how far it is."""

    def say(self, message: str) -> None:
        """A line for the user."""

    def start(self, total: int) -> None:
        """Rows of the whole run, an estimate."""

    def advance(self, rows: int, *, scored: bool = True) -> None:
        """Rows that were just scored, or found in the folder."""

    def correct(self, total: int) -> None:
        """A better estimate of the total."""

    def stop(self) -> None:
        """The last row is scored, or the run ended early."""

    def asked_to_stop(self) -> bool:
        """Whether to begin no further part; what has begun is finished and written."""


class Silent:
    """A reporter that tells nothing."""

    def say(self, message: str) -> None: ...
    def start(self, total: int) -> None: ...
    def advance(self, rows: int, *, scored: bool = True) -> None: ...
    def correct(self, total: int) -> None: ...
    def stop(self) -> None: ...
    def asked_to_stop(self) -> bool:
        return False
