"""One chain as a plain, compact record: what the example browser of the page reads."""

from collections.abc import Sequence
from typing import Any

from ice_eval.report.chains.effects import ALWAYS, MOST_REPLIES, Reply, StepEffect, chain_view
from ice_eval.results import InputRow, LedgerRow, RunSettings

LONGEST_REPLY = 300
"""Characters of a reply that are shown; `ice show` prints the rest."""


def chain_record(example: InputRow, rows: Sequence[LedgerRow], config: RunSettings) -> dict[str, Any] | None:
    """What is shown of a chain beside its text; None for one that takes no part."""
    if example.skip_reason is not None:
        return None
    found = chain_view(example, rows, config.operators[0])
    return {
        "answer": found.answer,
        "gold": found.gold,
        "right": found.is_right,
        "operator": found.operator,
        "alone": found.alone,
        "remark": ALWAYS if found.always else None,
        "whole": _replies(found.whole),
        "empty": _replies(found.empty),
        "steps": [_step(step) for step in found.steps],
    }


def _step(step: StepEffect) -> dict[str, Any]:
    return {
        "effect": None if step.effect is None else round(step.effect, 3),
        "changed": step.n_changed,
        "read": step.n_read,
        "replies": _replies(step.replies),
    }


def _replies(replies: Sequence[Reply]) -> list[tuple[str, bool | None, int]]:
    """Text, whether it is another answer, and how often it came."""
    return [(_shortened(reply.text), reply.changed, reply.times) for reply in replies[:MOST_REPLIES]]


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_REPLY else text[:LONGEST_REPLY] + " …"
