"""The templates of pages and notebooks."""

import functools
import re

import jinja2

_APART = re.compile(r"(?<=\d) (?=%)|(?<=\b[a-zκ]) (?== [\d+−-])|(?<=\b[a-zκ] =) (?=[\d+−-])")
"""The spaces in `95 %` and `n = 20`."""


def template(name: str) -> jinja2.Template:
    """A template by its file name."""
    return _environment().get_template(name)


def unbroken(text: str) -> str:
    """With numbers that stay on one line with their sign of percent and their name."""
    return _APART.sub("\u00a0", text)


@functools.cache
def _environment() -> jinja2.Environment:
    # Whatever a user's file holds, a model's name included, is text in the page, never markup.
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("ice_eval.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["unbroken"] = unbroken
    return found
