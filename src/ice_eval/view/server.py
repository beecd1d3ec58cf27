"""The local server of `ice view`: pages of runs, for whoever has the token, on the loopback interface alone."""

import contextlib
import functools
import html
import json
import logging
import os
import re
import secrets
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ice_eval.errors import ConfigError, IceError, is_broken, without_controls
from ice_eval.files import as_text
from ice_eval.report.comparison import comparison_page, run_letters
from ice_eval.report.page import html_page, page
from ice_eval.results import differences
from ice_eval.view.index import RunEntry, RunIndex, grid_table, runs_table
from ice_eval.view.what_if import EXAMPLES, WhatIf, examples_of, refusal

HOST = "127.0.0.1"
GRACE_S = 3.0
"""Seconds that a question to a model may still take after Ctrl-C."""
_LARGEST_QUESTION = 200_000
"""Largest body of a request, in bytes."""
_POLICY = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]*)"')
_HEADERS = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_HOME = ("All runs", "/")
_LOG = logging.getLogger(__name__)


def application(index: RunIndex, what_if: WhatIf, *, token: str, port: int) -> ASGIApp:
    """Return the pages of an index behind the guard of a token."""
    pages = _Pages(index, what_if)
    routes = [
        Route("/", pages.index),
        Route("/compare", pages.compare),
        Route("/run/{run}/", pages.report),
        Route("/run/{run}/try", pages.try_out),
        Route("/run/{run}/try", pages.ask, methods=["POST"]),
    ]
    handlers: Any = dict.fromkeys((IceError, OSError, HTTPException), _failed) | {Exception: _unexpected}
    return _Guard(Starlette(routes=routes, exception_handlers=handlers), token=token, port=port)


class _Guard:
    """Refuses requests from elsewhere: without the token, under another name of this machine, or of another page."""

    def __init__(self, app: ASGIApp, *, token: str, port: int) -> None:
        self._app, self._token = app, token
        self._cookie = f"ice-view-{port}"  # cookies do not know ports, and two servers may run at once
        self._hosts = {f"{name}:{port}" for name in (HOST, "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("content-security-policy", "default-src 'none'; frame-ancestors 'none'")
            await send(message)

        answer = self._answer(Request(scope)) if scope["type"] == "http" else PlainTextResponse("no", 403)
        with contextlib.suppress(Exception):  # Starlette raises again, for a traceback, what it has answered
            await (answer or self._app)(scope, receive, guarded)

    def _answer(self, request: Request) -> Response | None:
        """Return the answer to a request that the pages must not see; None for all others."""
        host = request.headers.get("host", "")
        if host not in self._hosts:
            return PlainTextResponse("This server is reached by the address that `ice view` printed.", 403)
        if request.method not in ("GET", "HEAD") and request.headers.get("origin") != f"http://{host}":
            return PlainTextResponse("Requests of other pages are refused.", 403)
        if request.url.path == "/" and self._is_token(request.query_params.get("token", "")):
            found = RedirectResponse("/", 303)
            found.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
            return found
        if not self._is_token(request.cookies.get(self._cookie, "")):
            return PlainTextResponse("Open the address that `ice view` printed: it holds the token.", 403)
        return None

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode("utf-8", "replace"), self._token.encode())


class _Pages:
    """The pages; functions that are not async run in threads of Starlette."""

    def __init__(self, runs: RunIndex, what_if: WhatIf) -> None:
        self._runs, self._what_if = runs, what_if
        self._lock, self._reporting = threading.Lock(), threading.Lock()
        self._report = functools.lru_cache(maxsize=8)(self._written_report)

    def index(self, request: Request) -> Response:
        with self._lock:
            entries = self._runs.entries()
            unreadable = list(self._runs.unreadable)
        root = self._runs.root.resolve()
        content = {
            "title": f"ICE runs: {as_text(Path(root.name))}",
            "folder": as_text(root),
            "entries": entries,
            "runs": runs_table(entries),
            "grid": grid_table(entries),
            "unreadable": unreadable,
        }
        return _page(html_page("runs.html", content, own=["runs.js"], live=True))

    def report(self, request: Request) -> Response:
        entry = self._entry(request.path_params["run"])
        with self._reporting:  # a report takes seconds, and the index does not wait for it
            return _page(self._report(entry.id, entry.stamp))

    def _written_report(self, run: str, stamp: tuple[int, ...]) -> str:
        """Return a report in memory: a file in the run folder may come from anywhere."""
        entry = self._runs[run]
        also = [] if refusal(entry.manifest) else [("What if …", f"/run/{entry.id}/try")]
        content = page([entry.folder]) | {"links": [_HOME, *also], "place": entry.name}
        return html_page("report.html", content, browser=content["browser"])

    def compare(self, request: Request) -> Response:
        chosen = list(dict.fromkeys(request.query_params.getlist("run")))
        if len(chosen) < 2:
            raise HTTPException(400, "Choose two runs or more in the table of all runs, then compare them.")
        first, *others = (self._entry(run).folder for run in chosen)
        named = zip(run_letters(len(chosen)), chosen, strict=True)
        links = [_HOME, *((f"Report {letter}", f"/run/{run}/") for letter, run in named)]
        return _page(comparison_page(differences(first, others), links=links))

    def try_out(self, request: Request) -> Response:
        entry = self._entry(request.path_params["run"])
        config, refused = entry.manifest.config, refusal(entry.manifest)
        known = [] if refused else examples_of(entry, most=EXAMPLES)
        content = {
            "title": f"ICE what if: {config.model} on {config.task}",
            "entry": entry,
            "refused": refused,
            "examples": known,
            "fields": list(known[0].fields) if known else [],
            "is_ready": self._what_if.is_ready(entry.manifest),
            "links": [_HOME, ("Report of the run", f"/run/{entry.id}/")],
        }
        return _page(html_page("what_if.html", content, own=[] if refused else ["what_if.js"], live=True))

    async def ask(self, request: Request) -> Response:
        entry = self._entry(request.path_params["run"])
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > _LARGEST_QUESTION:
                raise HTTPException(413, "The question is too long.")
        fields, units, operator = _question(bytes(body))
        try:
            return JSONResponse(await run_in_threadpool(self._what_if.ask, entry, fields, units, operator))
        except IceError as exc:
            return JSONResponse({"error": without_controls(str(exc))})

    def _entry(self, run: str) -> RunEntry:
        """Return a run by its id in the index; nothing of a request becomes a path."""
        with self._lock:
            if run not in self._runs:
                self._runs.entries()  # a run that has just been finished
            if run not in self._runs:
                raise HTTPException(404, "There is no such run in this folder.")
            return self._runs[run]


def _question(body: bytes) -> tuple[dict[str, str], list[int], str]:
    """Return fields, units and operator of a request; raise HTTPException if it is none."""
    with contextlib.suppress(ValueError, RecursionError, KeyError, TypeError, AttributeError):
        content = json.loads(body)
        fields, units, operator = content["fields"], content["units"], content["operator"]
        are_texts = (type(each) is str and not is_broken(each) for each in (operator, *fields, *fields.values()))
        if all(are_texts) and all(type(each) is int for each in units):
            return fields, list(units), operator
    raise HTTPException(400, "The request cannot be read.")


def _page(text: str, status: int = 200) -> Response:
    """Return a page, with the policy that it names itself as a header too."""
    found = _POLICY.search(text)
    assert found is not None, "every page has a policy"
    policy = f"{html.unescape(found[1])}; frame-ancestors 'none'"
    return HTMLResponse(text, status, headers={"content-security-policy": policy})


def _failed(request: Request, exc: Exception) -> Response:
    status, said = (exc.status_code, exc.detail) if isinstance(exc, HTTPException) else (409, str(exc))
    return _sentence(request, without_controls(said), status)


def _unexpected(request: Request, exc: Exception) -> Response:
    """Answer what no check foresaw: most likely a file that somebody changed; the terminal gets one line."""
    reason = " ".join(without_controls(f"{type(exc).__name__}: {exc}").split())
    _LOG.error("%s: %s", request.url.path, reason)
    said = f"A file of the run may be changed or of another run ({reason}). `ice rescore` writes the summary again."
    return _sentence(request, said, 500)


def _sentence(request: Request, said: str, status: int) -> Response:
    if request.method == "POST":
        return JSONResponse({"error": said}, status)
    content = {"title": "ICE runs", "said": said, "links": [_HOME]}
    return _page(html_page("message.html", content), status)


@contextlib.contextmanager
def listening_on(host: str, port: int) -> Iterator[socket.socket]:
    """Open a socket, or raise `ConfigError` if the port is taken."""
    with socket.socket() as found:
        if os.name == "posix":  # the port of a server that has just ended
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, port))
            found.listen()
        except OSError as exc:
            raise ConfigError(f"port {port} cannot be used ({exc.strerror}); choose another --port, or none.") from exc
        yield found


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:  # uvicorn would raise them again when it has ended
        yield


def stoppable(app: ASGIApp) -> uvicorn.Server:
    """Return a server that answers until SIGINT or SIGTERM, and then ends as if it were done."""
    options: dict[str, Any] = {"access_log": False, "server_header": False, "proxy_headers": False, "lifespan": "off"}
    server = _Server(uvicorn.Config(app, ws="none", log_level="error", **options))

    def stop(number: int, frame: object) -> None:
        logging.disable()  # a request that is cut off is no error
        server.should_exit = server.force_exit = True
        last = threading.Timer(GRACE_S, os._exit, (0,))  # nothing is written, so a model may be left in mid-answer
        last.daemon = True
        last.start()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    return server
