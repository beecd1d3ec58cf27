"""What may be kept and shown of what a server says: never the key, and nothing that moves a terminal's cursor."""

_SHORTEST_KEY = 8
"""Shorter ones (`x`, `EMPTY`) are placeholders for local servers and no secret."""
_LONGEST_MESSAGE = 300


def redacted(text: str, key: str | None) -> str:
    """The text without the key, should a server repeat it."""
    return text if key is None or len(key) < _SHORTEST_KEY else text.replace(key, "[key]")


def one_line(text: str, key: str | None) -> str:
    """On one line, without what would move a terminal's cursor, without the key, and only then shortened."""
    line = redacted("".join(letter for letter in " ".join(text.split()) if letter.isprintable()), key)
    return line if len(line) <= _LONGEST_MESSAGE else line[:_LONGEST_MESSAGE] + "…"
