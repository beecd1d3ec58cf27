"""A key goes to its server, and is written and shown nowhere."""

import json
import logging
import traceback

import pytest
from tests.servers.asking import KEY, ask, ask_one, question
from tests.servers.chat_server import ChatServer, Say, completion, error

from ice_eval.errors import ConfigError
from ice_eval.servers.exchange import redacted


def test_a_key_is_sent_and_stands_in_no_file_log_or_error(path, tmp_path, monkeypatch, caplog, capfd):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)

    def parrot(request, number):
        heard = server.headers[-1]["authorization"]
        said = [
            completion(f"you said {heard}", message={"reasoning": heard}, model=heard, system_fingerprint=heard),
            error(500, heard),
            Say(body=f"{{ {heard}"),
        ]
        return said[number - 1] if number <= 3 else error(401, f"Incorrect API key provided: {heard}")

    with ChatServer(parrot) as server:
        with pytest.raises(ConfigError) as caught:
            ask(server, path, [question(i) for i in range(9)], concurrency=1)
        with pytest.raises(ConfigError):
            ask(server, tmp_path / "two.jsonl", [question(i) for i in range(9)], concurrency=1, attempts=1)
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    assert "status 401: Incorrect API key provided: Bearer [key]" in str(caught.value)
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()).decode()
    assert "[key]" in written
    shown = "".join(traceback.format_exception(caught.value)) + caplog.text + "".join(capfd.readouterr())
    assert "HTTP" in caplog.text, "the log was not listened to"
    for text in (written, shown, repr(caught.value.__context__)):
        assert KEY not in text


def test_a_key_is_blotted_out_however_json_writes_it(path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    body = json.dumps(completion("you said KEY", message={"reasoning": "KEY"}, model="KEY")).replace("KEY", escaped)
    with ChatServer(lambda request, number: Say(body=body)) as server:
        found = ask_one(server, path)
    assert (found.text, found.reasoning, found.model) == ("you said [key]", "[key]", "[key]")
    assert KEY not in path.read_text() and escaped not in path.read_text()


def test_a_key_is_not_cut_in_half_before_it_is_blotted_out(path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    said = {"message": "x" * 290 + KEY}, {"message": KEY[:9] + "\x00" + KEY[9:]}
    for body in said:
        with ChatServer(lambda request, number, body=body: Say(401, {"error": body})) as server:
            with pytest.raises(ConfigError) as caught:
                ask_one(server, path)
        assert "sk-pl" not in str(caught.value)


def test_without_a_key_none_is_made_up_from_elsewhere(path, monkeypatch):
    monkeypatch.setenv("OPENAI_ADMIN_KEY", KEY)
    with ChatServer() as server:
        ask_one(server, path)
    assert KEY not in json.dumps(server.headers)


def test_a_key_is_blotted_out_and_a_placeholder_is_not():
    assert redacted(f"wrong key {KEY}!", KEY) == "wrong key [key]!"
    assert redacted("the EMPTY set", "EMPTY") == "the EMPTY set"
    assert redacted("text", None) == "text"
