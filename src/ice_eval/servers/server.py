"""Where requests go, with which key, and with how much patience."""

import ipaddress
import os
import re
from dataclasses import dataclass
from typing import Literal, get_args
from urllib.parse import urlsplit

from ice_eval.errors import ConfigError

LimitField = Literal["max_tokens", "max_completion_tokens"]
DEFAULT_KEY = "OPENAI_API_KEY"
"""The environment variable that holds the key unless another is named."""
_SECRET = re.compile(r"[@?#]|(?:^|/)(?:sk|gsk|hf|key)[-_]", re.IGNORECASE)
"""What may hold a secret in an address: a password, a query, or a part that begins as keys do."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """An OpenAI-compatible server. The key is read from the environment when it is needed and kept nowhere.

    Raises:
        ConfigError: The address is none, holds a secret, or something else makes no sense.
    """

    base_url: str
    """Up to what comes before `/chat/completions`, as in `http://localhost:8000/v1`."""
    api_key_env: str | None = None
    """The environment variable with the key; by default `OPENAI_API_KEY`, and no key where that is not set."""
    concurrency: int = 16
    """Requests under way at once, at most; fewer while the server is too busy."""
    timeout_s: float = 300.0
    """For one attempt, from its beginning to the last byte of the answer."""
    attempts: int = 8
    """Tries of one request before it is given up."""
    first_backoff_s: float = 1.0
    """Pause after the first failed attempt; later ones are twice as long each."""
    most_backoff_s: float = 60.0
    most_pause_s: float = 600.0
    """A server that asks for a longer pause ends the run, which can be continued later."""
    limit_field: LimitField = "max_tokens"
    """The server's name for the limit of tokens; OpenAI's newer models want the second."""

    def __post_init__(self) -> None:
        if _SECRET.search(self.base_url):  # it is written to the manifest, and not even repeated here
            raise ConfigError(
                "--base-url holds a password or a query, or a key; give the bare address, and a key by --api-key-env."
            )
        try:
            parts = urlsplit(self.base_url)
            valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            valid = False
        if not valid:
            raise self.no_address()
        if self.concurrency < 1 or self.attempts < 1 or not self.timeout_s > 0:
            raise ConfigError("concurrency and attempts must be at least 1, and the timeout longer than 0 seconds.")
        if self.limit_field not in get_args(LimitField):
            raise ConfigError(f"--limit-field '{self.limit_field}': {' or '.join(get_args(LimitField))} is expected.")

    def no_address(self) -> ConfigError:
        """What to say where requests can go nowhere; half an address may be a password (`http://me:secret`)."""
        return ConfigError("--base-url is no address; expected one as http://localhost:8000/v1.")

    @property
    def is_local(self) -> bool:
        """Whether it runs on this machine."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    def key(self) -> str | None:
        """The key, or None. What nobody asked to send over an open line to another machine stays here.

        Raises:
            ConfigError: The variable that was named is not set, or holds what is no key.
        """
        if self.api_key_env is None and not self.is_local and urlsplit(self.base_url).scheme == "http":
            return None
        name = self.api_key_env or DEFAULT_KEY
        key = os.environ.get(name, "").strip()
        if self.api_key_env is not None and not key:
            raise ConfigError(f"the environment variable {name} (--api-key-env) is not set; it is to hold the key.")
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise ConfigError(f"the environment variable {name} holds no key: spaces or characters that no key has.")
        return key or None
