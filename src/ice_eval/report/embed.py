"""Putting data and scripts into a page so that nothing in them is read as markup or as code."""

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

# Inside <script> a browser looks for "</script" and "<!--" only, but escaping these five costs next to nothing and
# leaves no string that any parser could take for the end of the data.
_ESCAPES = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


def script_json(content: Any) -> Markup:
    """JSON for `<script type="application/json">`; a text that holds `</script>` stays a text."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_ESCAPES))


def script_text(source: str) -> Markup:
    """A script of ours or of a library, that may hold `</script` in a string.

    Raises:
        ValueError: It holds `<!--`, which no escape makes harmless in every place.
    """
    if "<!--" in source:
        raise ValueError("a script with '<!--' cannot stand in a page")
    return Markup(source.replace("</script", "<\\/script").replace("\r\n", "\n"))


def content_policy(scripts: Sequence[str]) -> str:
    """A policy under which these scripts run and no others, and nothing is fetched from anywhere."""
    hashes = " ".join(f"'sha256-{_sha256(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
