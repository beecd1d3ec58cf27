"""Progress reporting."""

from typing import Protocol


class Reporter(Protocol):
    """Receiver of progress and messages."""

    def say(self, message: str) -> None:
        """Show a message to the user."""

    def start(self, total: int, counted: str = "rows", *, examples: int = 0) -> None:
        """Begin with an estimate of the total number of rows, or of what else is counted.

        People are shown the share of the rows as a number of `examples`, if these are given.
        """

    def advance(self, rows: int, *, scored: bool = True) -> None:
        """Count rows that were just scored, or found in the folder."""

    def correct(self, total: int) -> None:
        """Replace the estimate of the total."""

    def stop(self) -> None:
        """End progress: the last row is scored, or the run ended early."""

    def asked_to_stop(self) -> bool:
        """Return True if no further part should be started; started parts are finished and written."""


class Silent:
    """A reporter that ignores everything."""

    def say(self, message: str) -> None: ...
    def start(self, total: int, counted: str = "rows", *, examples: int = 0) -> None: ...
    def advance(self, rows: int, *, scored: bool = True) -> None: ...
    def correct(self, total: int) -> None: ...
    def stop(self) -> None: ...
    def asked_to_stop(self) -> bool:
        return False
