"""Texts and names of users, as a terminal may print them."""

import unicodedata


def without_controls(text: str) -> str:
    """Control characters but new lines and tabs become `\ufffd`: a terminal would obey them."""
    return "".join("\ufffd" if unicodedata.category(c) == "Cc" and c not in "\n\t" else c for c in text)
