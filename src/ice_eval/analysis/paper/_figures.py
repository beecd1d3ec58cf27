"""The figures that the paper derives from its tables, computed again from them by the code that analyses any grid."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ice_eval.analysis.operator_dependence import anti_faithful
from ice_eval.analysis.paper._recomputed import RECOMPUTED, defined, dependence, max_gap, points, under
from ice_eval.analysis.paper._tables import number, paper_table, read_json, referred
from ice_eval.stats import step_reasoning_capacity


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A figure that the paper states, beside what its tables give."""

    id: str
    where: str
    says: str
    """What the figure is, in our words."""
    stated: float
    relation: Literal["equal", "above", "below"]
    """Whether the figure is said to be this, as rounded in the paper, or to lie above or below it."""
    recomputed: float
    agrees: bool
    note: str


@dataclass(frozen=True, kw_only=True)
class Discrepancy:
    """Something that the paper says in two ways."""

    note: str
    values: tuple[str, ...]
    """The cells that differ, as printed, where it is about cells."""
    references: tuple[str, ...]
    """Where they are: `table.column:field=value,…`."""


def headline() -> dict[str, Any]:
    """The paper's headline figures as one flat record: shares as fractions, gaps in percentage points."""
    overall, short = dependence(), dependence(text_length="short")
    deleted = under("delete")
    return {
        "crossings": len(overall.crossings),
        "attention_configurations": len(overall.pairs),
        "anti_faithful_delete": len(anti_faithful(deleted)),
        "delete_configurations": len(deleted),
        "delete_exceeds_short_text": round(defined(short.first_exceeds), 3),
        "median_gap_short_pp": points(short.median_gap),
        "mean_gap_short_pp": points(short.mean_gap),
        "max_gap_pp": max_gap(),
    }


def claims() -> list[Claim]:
    """Every figure of `claims.json`, recomputed."""
    return [_claim(entry) for entry in read_json("claims.json")]


def discrepancies() -> list[Discrepancy]:
    """Where the paper contradicts itself: cells of two tables, and statements that its tables do not bear out."""
    between = [
        Discrepancy(
            note=entry["note"],
            references=tuple(entry["cells"]),
            values=tuple(referred(reference, {}) for reference in entry["cells"]),
        )
        for entry in read_json("discrepancies.json")
    ]
    unborne = [
        Discrepancy(
            note=f"{claim.where}: {claim.says}. {claim.note}",
            references=(),
            values=(f"{claim.stated:g}", f"{claim.recomputed:g}"),
        )
        for claim in claims()
        if not claim.agrees
    ]
    return between + unborne


def _claim(entry: Mapping[str, Any]) -> Claim:
    """One entry of `claims.json`."""
    stated, relation = entry["stated"], entry.get("relation", "equal")
    value = round(RECOMPUTED[entry["id"]](), 6)  # without the noise of binary fractions in differences of decimals
    agrees = {
        "equal": abs(value - stated) <= 0.5 * 10 ** -entry.get("decimals", 0),
        "above": value > stated,
        "below": value < stated,
    }
    return Claim(
        id=entry["id"],
        where=entry["where"],
        says=entry["says"],
        stated=stated,
        relation=relation,
        recomputed=value,
        agrees=agrees[relation],
        note=entry.get("note", ""),
    )


def step_capacities() -> list[tuple[str, str, float]]:
    """Model, unit and SRC of every row of necessity and sufficiency; the paper prints the two factors only."""
    return [
        (row["model"], row["unit"], step_reasoning_capacity(number(row["necessity"]), number(row["sufficiency"])))
        for row in paper_table("steps_and_tokens").rows
    ]
