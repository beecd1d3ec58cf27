"""The paper's tables and figures by their labels: the grids that each needs, its numbers, and its layout."""

import importlib.resources
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from ice_eval._registry import did_you_mean
from ice_eval.errors import ConfigError
from ice_eval.reproduce import contents
from ice_eval.reproduce.contents import Content, Sources
from ice_eval.reproduce.layout import Layout, Shown, Value

if TYPE_CHECKING:
    from ice_eval.report.figures import Figure


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A grid of runs that tables and figures share."""

    name: str
    preset: str
    """Name of its grid among those of `ice bench`."""
    title: str
    steps: bool = False
    """True for chains of thought."""
    served: bool = False
    """True for models behind a server."""
    needs: str = ""
    """Data or models that the user supplies."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """One table or figure."""

    label: str
    title: str
    experiments: tuple[str, ...] = ()
    content: Content | None = None
    """Returns its numbers; None where it has none."""
    layout: Layout | None = None
    tasks: tuple[str, ...] = ()
    """Tasks of its grids that it needs; all where it names none."""
    figure: str = ""
    """Name of the function of `reproduce.figures` that draws it; empty for a table."""
    needs: str = ""
    """Data that the user supplies, beside those of its experiments."""
    note: str = ""

    @property
    def file(self) -> str:
        """Name of its files."""
        return self.label.replace(":", "-")

    def drawn(self, values: Sequence[Value], sources: Sources) -> "Figure":
        """Return the figure of its numbers."""
        from ice_eval.reproduce import figures

        draw: Callable[[Sequence[Value], Item, Sources], Figure] = getattr(figures, self.figure)
        return draw(values, self, sources)


def _read() -> tuple[dict[str, Experiment], dict[str, Item]]:
    text = importlib.resources.files("ice_eval.reproduce").joinpath("catalogue.yaml").read_text("utf-8")
    content = yaml.safe_load(text)
    experiments = {name: Experiment(name=name, **fields) for name, fields in content["experiments"].items()}
    return experiments, {label: _item(label, **fields) for label, fields in content["items"].items()}


def _item(
    label: str,
    *,
    experiments: Sequence[str] = (),
    content: str | None = None,
    layout: Mapping[str, Any] | None = None,
    tasks: Sequence[str] = (),
    **fields: str,
) -> Item:
    """Return an item of the file, with its function and layout."""
    return Item(
        label=label,
        experiments=tuple(experiments),
        tasks=tuple(tasks),
        content=None if content is None else getattr(contents, content),
        layout=None if layout is None else _layout(**layout),
        **fields,
    )


def _layout(*, quantities: Mapping[str, Any], **fields: Any) -> Layout:
    shown = {name: each if isinstance(each, dict) else {"header": each} for name, each in quantities.items()}
    return Layout(quantities={name: Shown(**each) for name, each in shown.items()}, **fields)


EXPERIMENTS, ITEMS = _read()
"""Grids by name, and all tables and figures of the paper by label, in its order."""


def chosen(names: Sequence[str]) -> list[Item]:
    """Return items by label, with or without `tab:` and `fig:`, or by the name of an experiment; all for `all`.

    Raises:
        ConfigError: A name is unknown.
    """
    found: dict[str, Item] = {}
    short = {label.partition(":")[2]: label for label in ITEMS}
    for name in names or ["all"]:
        if name == "all":
            found |= ITEMS
        elif name in EXPERIMENTS:
            found |= {label: item for label, item in ITEMS.items() if name in item.experiments}
        elif name in ITEMS or name in short:
            label = short.get(name, name)
            found[label] = ITEMS[label]
        else:
            known = [*ITEMS, *EXPERIMENTS]
            raise ConfigError(
                f"the paper has no table or figure '{name}'{did_you_mean(name, known)} "
                "`ice reproduce --list` shows all of them; 'all' takes every one."
            )
    return [item for label, item in ITEMS.items() if label in found]
