"""Prompts with fields: `Review: {text}` and what is left of it when it is rendered."""

import functools
import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ice_eval.errors import ConfigError


class Piece(NamedTuple):
    """A run of characters of a rendered prompt, from the template (`field` is None) or from a field."""

    text: str
    field: str | None = None


@dataclass(frozen=True)
class Template:
    """A prompt, parsed. `{{` and `}}` stand for braces."""

    prompt: str
    parts: tuple[Piece, ...]
    """Literal text, and fields with their placeholder name."""

    @classmethod
    @functools.lru_cache(maxsize=256)
    def parse(cls, prompt: str) -> "Template":
        """Read a prompt.

        Raises:
            ConfigError: It has no field, or a brace that opens no field.
        """
        parts: list[Piece] = []
        try:
            for literal, name, spec, conversion in string.Formatter().parse(prompt):
                parts += [Piece(literal)] if literal else []
                if name is not None:
                    if not name.isidentifier() or spec or conversion:
                        raise ValueError(f"'{{{name}}}' is not a field name")
                    parts.append(Piece(name, name))
        except ValueError as exc:
            raise ConfigError(
                f"the prompt {prompt!r} cannot be read: {exc}. Write fields as {{text}}, braces as {{{{ and }}}}."
            ) from exc
        template = cls(prompt, tuple(parts))
        if not template.fields:
            raise ConfigError(
                f"the prompt {prompt!r} has no field; put the text to explain in it, as in 'Review: {{text}}\\nLabel:'."
            )
        return template

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields, in order, each once."""
        return tuple(dict.fromkeys(part.field for part in self.parts if part.field is not None))

    def render(self, fields: Mapping[str, str]) -> list[Piece]:
        """The pieces of the prompt for one example. What a field holds is never read as a template."""
        return [part if part.field is None else Piece(fields[part.field], part.field) for part in self.parts]
