"""Options that several commands share."""

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def names(text: str) -> tuple[str, ...]:
    """`"a, b"` as a tuple."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
