"""The templates of pages and notebooks."""

import functools
import re

import jinja2
from markupsafe import Markup, escape

_APART = re.compile(r"(?<=\d) (?=%)|(?<=\b[a-zκ]) (?== [\d+−-])|(?<=\b[a-zκ] =) (?=[\d+−-])")
"""The spaces in `95 %` and `n = 20`."""
_CODE = re.compile(r"`([^`]+)`")


def template(name: str) -> jinja2.Template:
    """A template by its file name."""
    return _environment().get_template(name)


def unbroken(text: str) -> str:
    """With numbers that stay on one line with their sign of percent and their name."""
    return _APART.sub("\u00a0", text)


def with_code(text: str) -> Markup:
    """Escaped, with what stands between backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


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
    found.filters["with_code"] = with_code
    return found
