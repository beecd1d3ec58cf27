"""Keys are used and stand nowhere: in no file of a run, in nothing that is printed or logged, in no traceback."""

import json
import logging
import traceback

import pytest
from tests.servers.chat_server import ChatServer, Say, completion, error
from tests.subjects.chain.reasoners import Reasoner, records

import ice_eval
from ice_eval.errors import IceError

SECRETS = {
    "OPENAI_API_KEY": "sk-planted-openai-0123456789",
    "HF_TOKEN": "hf_plantedtoken0123456789",
    "HUGGING_FACE_HUB_TOKEN": "hf_otherplanted0123456789",
    "MY_KEY": "planted-mine-0123456789",
}


@pytest.fixture(autouse=True)
def planted(monkeypatch, caplog):
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, secret)
    caplog.set_level(logging.DEBUG)


@pytest.fixture
def nowhere(tmp_path, caplog):
    """Looks for every secret in all files and in what is given."""

    def check(*shown):
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        for secret in SECRETS.values():
            found = [path.name for path in files if secret.encode() in path.read_bytes() or secret in path.name]
            assert found == []
            assert secret not in "".join(shown) + caplog.text
        return files

    return check


def parrot(server):
    """Repeats the key that it was sent in every answer and every error, and fails in many ways."""
    reasoner = Reasoner()

    def behave(request, number):
        heard = server[0].headers[-1].get("authorization", "")
        if number == 3:
            return error(500, f"I was told {heard}")
        if number == 5:
            return Say(body=f"{{ {heard}")
        said = reasoner(request, number)
        return {**said, "model": heard, "system_fingerprint": heard} if isinstance(said, dict) else said

    return behave


def test_a_run_against_a_server_that_repeats_the_key(ice, nowhere, tmp_path):
    data = tmp_path / "problems.jsonl"
    data.write_text("".join(json.dumps(record) + "\n" for record in records(3)))
    with ChatServer(lambda request, number: behave(request, number)) as server:
        behave = parrot([server])
        done = ice(
            "run", "--model", "openai:m", "--task", "gsm8k", "--data", data, "--base-url", server.url, "--n", 3,
            "--m", 3, "--attributions", "random", "--api-key-env", "MY_KEY", "--out", tmp_path / "run",
        )  # fmt: skip
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {SECRETS['MY_KEY']}"}
    assert done.code == 0
    files = nowhere(done.out, done.err)
    assert {"manifest.json", "responses.jsonl", "report.html", "summary.json"} <= {path.name for path in files}
    assert "[key]" in (tmp_path / "run" / "responses.jsonl").read_text()


@pytest.mark.parametrize(
    "url",
    [
        "https://user:{key}@host/v1", "https://host/v1?key={key}", "https://host/v1#{key}", "https://host/{key}/v1",
        "{key}",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "command", [["run", "--model", "openai:m", "--task", "gsm8k"], ["run", "--model", "openai:m", "--task", "demo"]]
)
def test_a_key_in_an_address_is_refused_and_not_repeated(ice, nowhere, tmp_path, command, url):
    address = url.format(key=SECRETS["OPENAI_API_KEY"])
    done = ice(*command, "--base-url", address, "--n", 1, "--out", tmp_path / "run")
    assert done.code == 2 and "--api-key-env" in done.err
    assert nowhere(done.out, done.err) == []


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_server_that_refuses_with_the_key_in_its_words(ice, nowhere, tmp_path, status):
    data = tmp_path / "problems.jsonl"
    data.write_text("".join(json.dumps(record) + "\n" for record in records(2)))
    refuse = error(status, f"Incorrect key: {SECRETS['OPENAI_API_KEY']}")
    with ChatServer(lambda request, number: refuse) as server:
        command = ["run", "--model", "openai:m", "--task", "gsm8k", "--data", data, "--base-url", server.url]
        done = ice(*command, "--n", 2, "--out", tmp_path / "run")
        scored = ice(
            "run", "--model", "openai:m", "--task", "demo", "--base-url", server.url, "--out", tmp_path / "words",
            "--attributions", "random", "--unit", "word", "--operators", "delete",
        )  # fmt: skip
        with pytest.raises(IceError) as caught:
            model = ice_eval.Served("m", base_url=server.url)
            ice_eval.evaluate(model, "gsm8k", data=data, n=2, out=tmp_path / "other")
    for each in (done, scored):
        assert each.code in {1, 2} and "Incorrect key: [key]" in each.err
        nowhere(each.out, each.err)
    shown = "".join(traceback.format_exception(caught.value))  # with all that it was raised from
    nowhere(shown, repr(caught.value.__context__))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--task", "demo", "--n", "4", "--m", "5"], 0),
        (["--task", "demo", "--n", "4", "--m", "5", "--json"], 0),
        (["--task", "demo", "--operators", "none"], 2),
        (["--task", "none"], 2),
    ],
)
def test_a_run_on_this_machine_writes_no_key(ice, nowhere, tmp_path, arguments, code):
    done = ice("run", "--model", "toy", *arguments, "--out", tmp_path / "run")
    assert done.code == code
    assert bool(nowhere(done.out, done.err)) == (code == 0)


def test_an_unforeseen_error_shows_no_variables(ice, nowhere, monkeypatch):
    """Tracebacks with the values of variables would hold whatever a client holds."""
    monkeypatch.setattr("ice_eval.api.evaluate", lambda **_: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        ice("run", "--model", "toy", "--task", "demo")
    nowhere("".join(traceback.format_exception(caught.value)))
    assert not ice_eval.cli.app.pretty_exceptions_enable


def test_the_search_would_find_a_key(nowhere, tmp_path):
    (tmp_path / "manifest.json").write_text(json.dumps(completion(SECRETS["HF_TOKEN"])))
    with pytest.raises(AssertionError):
        nowhere()
