"""`responses.jsonl`: every answer of a server, written to disk before it is used."""

import contextlib
import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import Any, Self, TypeVar

from ice_eval.errors import ConfigError, StorageError
from ice_eval.files import exclusive, sync_folder
from ice_eval.servers.exchange import NO_TOKENS, Question, Response

RESPONSES = "responses.jsonl"
_Question = TypeVar("_Question", bound=Question)


class ResponseStore:
    """An append-only file of responses that one process at a time may write.

    A kill can leave an incomplete last line; readers skip it, and the next writer removes it. Enter the store (`with
    ResponseStore(path) as store:`) to read the file and lock it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.responses: dict[str, Response] = {}  # by the key of the request
        self.billed = NO_TOKENS  # total tokens of the file
        self.n_charged = 0  # requests that were, or may have been, charged
        self.limits = set[int]()  # of written tokens, in requests that were answered
        self._stream: FileIO | None = None
        self._opened = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self.responses, self.billed, self.n_charged, self.limits = {}, NO_TOKENS, 0, set()
        with contextlib.ExitStack() as opened:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._stream = opened.enter_context(self.path.open("ab", buffering=0))
                sync_folder(self.path.parent)
            except OSError as exc:
                raise ConfigError(f"{self.path} cannot be written: {exc.strerror}; choose another --out.") from exc
            opened.enter_context(exclusive(self.path))
            self._repair()
            for response in read_responses(self.path):
                self._remember(response)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *raised: object) -> None:
        """Release the lock. The responses can still be read."""
        self._opened.close()

    @property
    def is_open(self) -> bool:
        """True if responses can be added."""
        return self._stream is not None and not self._stream.closed

    def has_answer(self, key: str) -> bool:
        """Return True if the request was answered and need not be sent."""
        return key in self.responses and self.responses[key].answered

    def missing(self, requests: Mapping[str, _Question]) -> list[_Question]:
        """Return the requests that have no answer yet."""
        return [request for key, request in requests.items() if not self.has_answer(key)]

    def add(self, response: Response) -> None:
        """Append a response and flush it to disk."""
        line = json.dumps(response.to_json(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        # A lone surrogate is no text that UTF-8 can write.
        self._append(line.encode("utf-8", errors="backslashreplace") + b"\n")
        self._remember(response)

    def _append(self, data: bytes) -> None:
        assert self._stream is not None, "the store is not open"
        end = self._stream.seek(0, os.SEEK_END)
        try:
            while data:
                data = data[self._stream.write(data) :]
            os.fsync(self._stream.fileno())
        except OSError as exc:
            with contextlib.suppress(OSError):
                self._stream.truncate(end)
            raise StorageError(
                f"{self.path} cannot be written: {exc.strerror}. What was answered before is kept: make room, and the "
                "same command again continues."
            ) from exc

    def _remember(self, response: Response) -> None:
        self.billed = self.billed.plus(response.billed)
        self.n_charged += response.lost + (response.answered and response.status != "too_long")
        if response.max_tokens is not None:
            self.limits.add(response.max_tokens)
        if response.answered or not self.has_answer(response.key):
            self.responses[response.key] = response

    def _repair(self) -> None:
        """Remove or complete the line that a killed process did not finish."""
        assert self._stream is not None
        with self.path.open("rb") as reader:
            last = b"".join(deque(reader, maxlen=1))
        if not last or last.endswith(b"\n"):
            return
        try:
            _parse(last)
            self._append(b"\n")
        except ValueError:
            self._stream.truncate(self._stream.seek(0, os.SEEK_END) - len(last))


def read_responses(path: Path) -> Iterator[Response]:
    """Yield the responses of a file in order of arrival, without a lock; an incomplete last line is skipped.

    Raises:
        ConfigError: A line within the file is damaged.
    """
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield _parse(line)
            except ValueError as exc:
                raise ConfigError(
                    f"line {number} of {path} is damaged; remove that line, and what it held is asked again."
                ) from exc


def _parse(line: bytes) -> Response:
    try:
        return Response.from_json(json.loads(line))
    except (AttributeError, TypeError, KeyError) as exc:
        raise ValueError("not a response") from exc


def addresses(responses: Iterable[Response]) -> dict[str, Any]:
    """Return the server addresses of responses for a manifest: the last one, and all; empty without a server."""
    found = [each.server for each in sorted(responses, key=lambda each: each.time) if each.server is not None]
    return {"base_url": found[-1], "base_urls": list(dict.fromkeys(found))} if found else {}
