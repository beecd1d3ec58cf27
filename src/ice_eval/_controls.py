"""Characters that a terminal must not print, and those that no file can hold."""

import unicodedata


def without_controls(text: str) -> str:
    """Replace control characters but new lines and tabs by `\ufffd`: a terminal would obey them.

    So do halves of characters (lone surrogates), as file names that are no UTF-8 have: they cannot be printed.
    """
    return "".join("\ufffd" if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t" else c for c in text)


def is_broken(text: str) -> bool:
    """Return whether a text holds half of a character (a lone surrogate), which UTF-8 cannot write."""
    return any("\ud800" <= c <= "\udfff" for c in text)
