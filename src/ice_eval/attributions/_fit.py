"""Whether what a user brought fits the examples of a run: one check, for the run and for who asks before it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ice_eval.attributions._brought import Explained, Given
from ice_eval.errors import DataError
from ice_eval.interop import Aligned
from ice_eval.models import Labels
from ice_eval.rationales import Share, set_size
from ice_eval.records import Encoded


@dataclass(frozen=True)
class Fit:
    """How what a user brought fits the examples of a run."""

    examples: int
    """Those that a run evaluates."""
    too_short: int
    """Examples with one unit or none, which a run skips, so that nothing need be said about them."""
    covered: int
    """Examples whose explanation fits."""
    units: int
    """Of the examples that are covered."""
    units_covered: int
    """Of these, the units that the explanation says something about."""
    cut: int
    """Examples whose explanation ends before the text does."""
    silent: int
    """Examples whose explanation says nothing about any unit; a run skips them."""
    constant: int
    """Examples with the same number for every unit, where a rationale is a random draw."""
    drawn: int
    """Others with a score for fewer units than a rationale holds: a draw among those with 0 fills it."""
    not_finite: int
    """Examples with a number that is not finite; a run skips them."""
    missing: tuple[str, ...]
    """Ids of examples without an explanation."""
    mismatches: tuple[str, ...]
    """What is wrong with each example whose explanation does not fit, beginning with its id."""

    @property
    def fits(self) -> bool:
        """Whether a run can be made of it: everything fits, and something is left to evaluate."""
        return not self.missing and not self.mismatches and self.covered > self.silent + self.not_finite

    def remarks(self, name: str) -> Iterator[str]:
        """What a user should know of an attribution that fits."""
        told = {
            f"the attribution '{name}' ends before the text in {{}} examples: the rest counts as 0.": self.cut,
            f"the attribution '{name}' says nothing about any unit of {{}} examples, which are skipped.": self.silent,
            f"the attribution '{name}' has the same number for all units in {{}} examples: their rationale is a random "
            "draw.": self.constant,
            f"the attribution '{name}' has scores for fewer units than a rationale holds in {{}} examples: the rest of "
            "these rationales is drawn at random among the units with 0. Spans without scores are taken as they are, "
            "whatever k.": self.drawn,
            f"the attribution '{name}' is not finite in {{}} examples, which are skipped.": self.not_finite,
        }
        yield from (told_of.format(f"{count} of {self.examples}") for told_of, count in told.items() if count)


def fit_of(
    method: Given | Explained,
    name: str,
    items: Iterable[Encoded],
    labels: Labels,
    *,
    shares: Sequence[Share] = (),
    all_of_them: bool = False,
) -> Fit:
    """Check what a user brought against examples.

    Args:
        method: What was brought.
        name: What messages call it.
        items: The examples to evaluate, as the model sees them.
        labels: Those of the task, which classes must be about.
        shares: The k of the run.
        all_of_them: Collect what does not fit, in place of an error for the first.

    Raises:
        DataError: An example has no explanation, or one that does not fit.
    """
    known = method.values if isinstance(method, Given) else method.explanations
    missing: list[str] = []
    mismatches: list[str] = []
    fitting: list[Aligned] = []
    too_short = 0
    for item in items:
        if item.n_units < 2:
            too_short += 1
            continue
        try:
            fitting.append(method.of(name, item, labels))
        except DataError as exc:
            if not all_of_them:
                raise
            if item.example_id in known:
                mismatches.append(str(exc).removeprefix(f"the attribution '{name}', "))
            else:
                missing.append(item.example_id)
    return Fit(
        examples=len(fitting) + len(missing) + len(mismatches),
        too_short=too_short,
        covered=len(fitting),
        units=sum(len(found.covered) for found in fitting),
        units_covered=sum(int(found.covered.sum()) for found in fitting),
        cut=sum(found.cut for found in fitting),
        silent=sum(not found.covered.any() for found in fitting),
        constant=0 if method.sized else sum(map(_is_constant, fitting)),
        drawn=0 if method.sized else sum(not _is_constant(found) and _is_drawn(found, shares) for found in fitting),
        not_finite=sum(bool(found.covered.any() and not np.isfinite(found.values).all()) for found in fitting),
        missing=tuple(missing),
        mismatches=tuple(mismatches),
    )


def _is_constant(found: Aligned) -> bool:
    return bool((found.values == found.values[0]).all())


def _is_drawn(found: Aligned, shares: Sequence[Share]) -> bool:
    """Whether fewer units have a number other than 0 than a rationale holds, for some k."""
    if found.values.ndim > 1 or not np.isfinite(found.values).all():
        return False
    sizes = [set_size(len(found.values), share) for share in shares if isinstance(share, float)]
    return bool(np.count_nonzero(found.values) < max(sizes, default=0))
