"""`responses.jsonl`: every answer of a server, on disk before anything is done with it."""

import contextlib
import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from ice_eval._files import lock_out_others, sync_folder
from ice_eval.errors import ConfigError, StorageError
from ice_eval.servers.exchange import NO_TOKENS, Question, Response, Tokens

RESPONSES = "responses.jsonl"
"""What the file is called in a run folder."""
_Question = TypeVar("_Question", bound=Question)


class ResponseStore:
    """An append-only file of responses, which one process at a time may add to.

    A kill in the middle of a line leaves a torn one; readers pass over it, and the next writer removes it. Enter it
    (`with ResponseStore(path) as store:`) to read what is there and to keep other writers out.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stream: FileIO | None = None
        self._forget()

    def _forget(self) -> None:
        self._responses: dict[str, Response] = {}
        self._billed = NO_TOKENS
        self._n_charged = 0

    def __enter__(self) -> Self:
        self._forget()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = self.path.open("ab", buffering=0)
            sync_folder(self.path.parent)
        except OSError as exc:
            raise ConfigError(f"{self.path} cannot be written: {exc.strerror}; choose another --out.") from exc
        try:
            lock_out_others(self._stream, self.path)
            self._repair()
            for response in read_responses(self.path):
                self._remember(response)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let other processes write. What is known can still be read."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    @property
    def is_open(self) -> bool:
        """Whether responses can be added."""
        return self._stream is not None

    @property
    def responses(self) -> Mapping[str, Response]:
        """By key: the answer, or why there is none."""
        return self._responses

    @property
    def billed(self) -> Tokens:
        """Tokens of everything in the file."""
        return self._billed

    @property
    def n_charged(self) -> int:
        """Requests of the file that were charged, or may have been."""
        return self._n_charged

    def has_answer(self, key: str) -> bool:
        """Whether the request was answered, so that it need not be asked."""
        return key in self._responses and self._responses[key].answered

    def missing(self, requests: Mapping[str, _Question]) -> list[_Question]:
        """Those, of requests by key, that are still to be asked."""
        return [request for key, request in requests.items() if not self.has_answer(key)]

    def add(self, response: Response) -> None:
        """Append a response; on return it is on disk.

        Raises:
            StorageError: The disk is full, or gone.
        """
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
        self._billed = self._billed.plus(response.billed)
        self._n_charged += response.lost + response.answered
        if response.answered or not self.has_answer(response.key):
            self._responses[response.key] = response

    def _repair(self) -> None:
        """Remove the line that a killed process did not finish, or end it where only its end is missing."""
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
    """The responses of a file in the order of arrival, without a lock; a torn last line is passed over.

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
    """A line of the file, or `ValueError`."""
    try:
        return Response.from_json(json.loads(line))
    except (AttributeError, TypeError, KeyError) as exc:
        raise ValueError("not a response") from exc


def addresses(responses: Iterable[Response]) -> dict[str, Any]:
    """Where responses came from, for a manifest: the address that answered last, and all of them.

    Nothing where no server answered.
    """
    found = [each.server for each in sorted(responses, key=lambda each: each.time) if each.server is not None]
    return {"base_url": found[-1], "base_urls": list(dict.fromkeys(found))} if found else {}
