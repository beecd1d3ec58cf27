"""What makes a run the run it is: the fields that define its rows."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ice_eval.errors import ConfigError


def content_hash(content: Any) -> str:
    """Tells one content, as JSON writes it, from others."""
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


def config_hash(identity: Mapping[str, Any]) -> str:
    """Names a run; the default folder carries it."""
    return content_hash(identity)


def refuse_other_run(path: object, stored: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """A folder continues only the run it holds.

    Raises:
        ConfigError: It holds another one; every field that differs is named.
    """
    differ = [
        f"{name} is {stored.get(name)!r} there and {asked.get(name)!r} here"
        for name in dict.fromkeys([*asked, *stored])
        if stored.get(name) != asked.get(name)
    ]
    if differ:
        raise ConfigError(
            f"{path} holds another run: {'; '.join(differ)}. Use another --out, or the same settings to continue it."
        )
