"""The templates of pages and notebooks."""

import functools

import jinja2


def template(name: str) -> jinja2.Template:
    """A template by its file name."""
    return _environment().get_template(name)


@functools.cache
def _environment() -> jinja2.Environment:
    # Whatever a user's file holds, a model's name included, is text in the page, never markup.
    return jinja2.Environment(
        loader=jinja2.PackageLoader("ice_eval.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
