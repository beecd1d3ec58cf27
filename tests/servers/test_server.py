import pytest

from ice_eval.errors import ConfigError
from ice_eval.servers import Server
from ice_eval.servers.exchange import redacted

KEY = "sk-planted-0123456789"


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://secret/v1", "http://", "http://[secret/v1", "http://me:secret/v1", "me:secret"]
)
def test_what_is_no_address_is_refused_and_not_repeated(url):
    with pytest.raises(ConfigError, match="is no address; expected one as http://localhost:8000/v1") as caught:
        Server(base_url=url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://me:secret@host/v1", "me:secret@host", "https://host/v1?key=secret", "https://host/v1#secret",
        "https://host/sk-secret/v1", "sk-secret", "https://host/v1/hf_secret",
    ],
)  # fmt: skip
def test_an_address_with_a_secret_is_refused_and_not_repeated(url):
    with pytest.raises(ConfigError, match="holds a password or a query") as caught:
        Server(base_url=url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("change", [{"concurrency": 0}, {"attempts": 0}, {"timeout_s": 0.0}])
def test_numbers_that_make_no_sense_are_refused(change):
    with pytest.raises(ConfigError, match="must be at least 1"):
        Server(base_url="http://host/v1", **change)


@pytest.mark.parametrize(
    ("url", "named", "key"),
    [
        ("https://host/v1", None, KEY),
        ("http://localhost:1/v1", None, KEY),
        ("http://127.0.0.1:1/v1", None, KEY),
        ("http://[::1]:1/v1", None, KEY),
        ("http://host/v1", None, None),  # in clear text, to another machine: only when asked for
        ("http://host/v1", "OPENAI_API_KEY", KEY),
        ("http://host/v1", "MINE", "my-own-key"),
    ],
)
def test_which_key_goes_where(monkeypatch, url, named, key):
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    monkeypatch.setenv("MINE", "my-own-key")
    assert Server(base_url=url, api_key_env=named).key() == key


def test_without_a_key_none_is_sent_unless_one_was_named(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert Server(base_url="https://host/v1").key() is None
    with pytest.raises(ConfigError, match=r"the environment variable ICE_NO_SUCH \(--api-key-env\) is not set"):
        Server(base_url="https://host/v1", api_key_env="ICE_NO_SUCH").key()


def test_a_limit_has_one_of_two_names():
    with pytest.raises(ConfigError, match="--limit-field 'tokens': max_tokens or max_completion_tokens is expected"):
        Server(base_url="https://host/v1", limit_field="tokens")


@pytest.mark.parametrize("key", ["sk-planted \n X-Header: 1", "sk-plänted"])
def test_what_is_no_key_is_refused_and_not_repeated(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY holds no key") as caught:
        Server(base_url="https://host/v1").key()
    assert "sk-" not in str(caught.value)


def test_the_key_is_no_part_of_the_record(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = Server(base_url="https://host/v1")
    server.key()
    assert KEY not in repr(server) + repr(vars(server))


def test_a_key_is_blotted_out_and_a_placeholder_is_not():
    assert redacted(f"wrong key {KEY}!", KEY) == "wrong key [key]!"
    assert redacted("the EMPTY set", "EMPTY") == "the EMPTY set"
    assert redacted("text", None) == "text"
