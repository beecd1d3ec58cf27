import contextlib
import http.client
import json
import socket
import threading
import time
from types import SimpleNamespace

import pytest
from tests.report.conftest import chromium  # noqa: F401 - a fixture
from tests.small_runs import Waves, picks, run, task_of, texts

import ice_eval
from ice_eval.view import RunIndex, WhatIf

pytest.importorskip("starlette", reason="needs starlette and uvicorn: pip install starlette uvicorn")

TOKEN = "a-token-of-tests"
MARKUP = "<img src=x onerror=alert(1)>"
TEXT = "a warm and funny film, told with great care, although the ending is a bit slow and dull"


class Marked(Waves):
    """A model whose name is markup."""

    def __init__(self):
        super().__init__()
        self.name = f"waves{MARKUP}"


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """A folder with two runs of the toy, one of names that are markup, one that is not finished, and no run."""
    root = tmp_path_factory.mktemp("view") / "runs"
    for seed, name in ((0, "first"), (1, "grid/runs/second")):
        ice_eval.evaluate("toy", "demo", n=12, m=12, seed=seed, out=root / name)
    found = task_of([{"text": text, "label": index % 2} for index, text in enumerate(texts(8))])
    methods = {MARKUP: picks("hat"), "other": picks("other"), "random": None}
    run(found, model=Marked(), attributions=methods, m=8, out=root / "<b>odd<b>")
    manifest = json.loads((root / "first" / "manifest.json").read_text())
    (root / "unfinished").mkdir()
    (root / "unfinished" / "manifest.json").write_text(json.dumps({**manifest, "status": "running"}))
    (root / "empty").mkdir()
    return root


@contextlib.contextmanager
def serving(root):
    """The server of `ice view` over a folder, in a thread."""
    import uvicorn

    from ice_eval.view.server import HOST, application

    with socket.socket() as listening:
        listening.bind((HOST, 0))
        listening.listen()
        port = listening.getsockname()[1]
        app = application(RunIndex(root), WhatIf(), token=TOKEN, port=port)
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield SimpleNamespace(port=port, origin=f"http://{HOST}:{port}", url=f"http://{HOST}:{port}/?token={TOKEN}")
        server.should_exit = server.force_exit = True
        thread.join(10)


@pytest.fixture(scope="session")
def served(runs):
    with serving(runs) as found:
        yield found


@pytest.fixture
def ask(served):
    return asker(served)


def asker(served):
    """Method, path, headers and body of a request -> its status, headers and text."""

    def build(method="GET", path="/", *, token=TOKEN, host=None, body=None, **headers):
        sent = {"Host": host or f"127.0.0.1:{served.port}", **headers}
        if token is not None:
            sent["Cookie"] = f"ice-view-{served.port}={token}"
        link = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        link.request(method, path, body=body, headers=sent)
        found = link.getresponse()
        text = found.read().decode()
        link.close()
        return SimpleNamespace(status=found.status, headers=found.headers, text=text)

    return build


@pytest.fixture
def page(chromium, served):  # noqa: F811
    """The index in a browser; the test fails if anything is logged, asked, or fetched from elsewhere."""
    faults = []
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(15_000)
    found = context.new_page()
    found.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    found.on("pageerror", lambda error: faults.append(str(error)))
    found.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
    found.on("request", lambda r: None if r.url.startswith((served.origin, "data:")) else faults.append(r.url))
    found.goto(served.url)
    yield found
    context.close()
    assert faults == []
