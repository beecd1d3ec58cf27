"""Progress of a run on standard error, and handling of Ctrl-C."""

import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from ice_eval.errors import without_controls
from ice_eval.pipeline import Reporter, Silent

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_ENOUGH_ROWS, _ENOUGH_SHARE = 100, 0.05
"""Number of scored rows, or share of all, needed to estimate the remaining time."""


def watched(*, continues: bool) -> Reporter:
    """Return the default reporter: a `Bar` in a terminal or a notebook, else `Silent`.

    With `continues`, finished work is kept on Ctrl-C, so the current part is worth finishing.
    """
    is_watched = sys.stderr.isatty() or "ipykernel" in sys.modules
    return Bar(continues=continues) if is_watched else Silent()


class Bar:
    """Progress on standard error: a bar in a terminal, a line every ten seconds elsewhere.

    The first Ctrl-C finishes the current part if the caller checks `asked_to_stop` between parts; the second one stops
    at once, as does the first without such checks.
    """

    def __init__(self, *, continues: bool = True) -> None:
        self._counted, self._examples, self._continues = "rows", 0, continues
        self._plain = not sys.stderr.isatty()
        self._console = Console(stderr=True, highlight=False)
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._total = self._done = self._scored = 0
        self._started = self._printed = 0.0
        self._asked_to_stop = False
        self._handler: Any = None

    def say(self, message: str) -> None:
        self._console.print(Text(without_controls(message)))

    def start(self, total: int, counted: str = "rows", *, examples: int = 0) -> None:
        self._counted, self._examples = counted, examples
        self._total, self._done, self._scored, self._started = total, 0, 0, time.monotonic()
        self._printed = self._started
        if not self._plain:
            from rich.progress import BarColumn, Progress, TextColumn

            columns = BarColumn(), TextColumn("{task.description}")
            self._progress = Progress(*columns, console=self._console, transient=True)
            self._task = self._progress.add_task(self._state(), total=total)
            self._progress.start()

    def advance(self, rows: int, *, scored: bool = True) -> None:
        self._done += rows
        self._scored += rows if scored else 0
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=self._done, description=self._state())
        elif self._plain and time.monotonic() - self._printed > 10:
            self._printed = time.monotonic()
            self.say(self._state())

    def correct(self, total: int) -> None:
        self._total = total
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, total=total, description=self._state())

    def asked_to_stop(self) -> bool:
        can_handle = self._continues and threading.current_thread() is threading.main_thread()
        if can_handle and self._handler is None and not self._asked_to_stop:
            self._handler = signal.signal(signal.SIGINT, self._interrupted)
        return self._asked_to_stop

    def _interrupted(self, number: int, frame: object) -> None:
        self._asked_to_stop = True
        self._restore_handler()
        self.say("interrupted: finishing this part (Ctrl-C again stops at once); run the same command to continue.")

    def _restore_handler(self) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            self._handler = None

    def stop(self) -> None:
        self._restore_handler()
        if self._progress is not None:
            self._progress.stop()
        if self._scored:
            examples = f"{self._examples} examples, " if self._examples else ""
            seconds = time.monotonic() - self._started
            self.say(
                f"{examples}{self._scored} {self._counted} in {seconds:.0f} s ({self._rate():.0f} {self._counted}/s)"
            )
        elif self._done:
            self.say("nothing left to score: all rows are in the folder.")

    def _state(self) -> str:
        """Return `12 of 60 examples, about 40 s left`."""
        done, total, counted = self._done, self._total, self._counted
        if self._examples:
            done, total, counted = self._examples * done // max(total, 1), self._examples, "examples"
        return f"{min(done, total)} of {total} {counted}{self._outlook()}"

    def _outlook(self) -> str:
        """Return the time left; empty before enough rows are scored, since attributions run first."""
        if self._done >= self._total or self._scored < min(_ENOUGH_ROWS, _ENOUGH_SHARE * self._total):
            return ""
        # By the mean rate since the beginning: a recent one jumps, since attributions and rows take turns.
        left = max(self._total - self._done, 0) / self._rate()
        return f", about {_coarse(left)} left"

    def _rate(self) -> float:
        return self._scored / max(time.monotonic() - self._started, 1e-6)


def _coarse(seconds: float) -> str:
    """Return a time no finer than an estimate can be."""
    if seconds < 95:
        return f"{max(5 * round(seconds / 5), 5)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"
