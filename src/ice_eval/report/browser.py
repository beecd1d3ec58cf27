"""Data of the page's example browser: all examples of some runs, or a selection that fits."""

import itertools
import json
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from ice_eval.choices import PROTOCOLS
from ice_eval.files import as_text
from ice_eval.report.example import (
    ALWAYS,
    LARGEST_LOG_ODDS,
    MOST_REPLIES,
    ChainReply,
    chain_view,
    cut_at_units,
    shortened,
)
from ice_eval.report.tables import run_names
from ice_eval.results import Configuration, ExampleOutcome, InputRow, LedgerRow, RunFolder, RunSettings
from ice_eval.results.agreements import disagreements
from ice_eval.results.comparisons import ScoredExamples, ScoreMatrices
from ice_eval.results.ledger import Ledger
from ice_eval.results.outcomes import ALL
from ice_eval.results.summary import COMPARED, CONTROL, configurations, names_of
from ice_eval.results.view import is_open
from ice_eval.stats import CHANCE

Record = dict[str, Any]

BUDGET = 6_000_000
"""Size limit of the examples of a page in bytes; with the figures' library the page then stays below 8 MB."""
COLUMNS = (
    "win_rate", "ties", "p", "p_lower", "effect_size", "score", "disagree", "rationale", "null", "sets", "text",
    "random",
)  # fmt: skip
"""Fields of a cell, in this order. The last five are indices into the example's own lists."""
N_RANDOM_TEXTS = 2
LONGEST_TEXT = 600
"""Longest text of a row shown, in characters; `ice show` prints the rest."""
SIX_BITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
"""A set of units is written as characters that stand for six units each, the first unit the lowest bit."""
_CHARACTERS = np.frombuffer(SIX_BITS.encode(), np.uint8)
_LONGEST_REPLY = 300
"""Characters of a reply that the page shows; `ice show` prints the rest."""
USUAL_UNITS = (6, 30)
"""Numbers of units that fit on a screen and leave enough sets to compare with."""


def browser_data(folders: Sequence[RunFolder], *, budget: int = BUDGET) -> Record:
    """Return the data of the browser, with a share of the budget for each run."""
    runs = [
        {"title": f"{model} on {task}", **run_record(folder, budget=budget // len(folders))}
        for folder, (model, task) in zip(folders, run_names(folders), strict=True)
    ]
    return {"columns": COLUMNS, "runs": runs}


def run_record(folder: RunFolder, *, budget: int) -> Record:
    manifest = folder.manifest()
    config = manifest.config
    return {
        "folder": as_text(Path(folder.path.name)),
        "labels": list(manifest.labels),
        "chains": manifest.chains is not None,
        # Examples are claims, and scores are mean log-probabilities per token in place of log-odds.
        "claims": is_open(manifest.labels),
        # Fonts, hyphens and screen readers go by the language of the texts.
        "language": None if manifest.language == "und" else manifest.language,
        "configurations": [cell._asdict() for cell, _ in configurations(config)],
        "strict": PROTOCOLS[config.protocol].strict,
        "total": manifest.data.examples,
        **_examples(folder, budget=budget),
    }


def _examples(folder: RunFolder, *, budget: int) -> Record:
    """Return the examples of a run that fit, and the id of the one that the page opens with."""
    # Where not all fit, they are read twice, to hold only the chosen ones.
    kept, sketches, left = list[tuple[Record, Ranks]](), list[Sketch](), budget
    for record, ranks in example_records(folder):
        sketches.append((len(script_json(record).encode()), ranks))
        left -= sketches[-1][0]
        if left >= 0:
            kept.append((record, ranks))
    if left < 0:
        kept = list(example_records(folder, only=set(within(sketches, budget=budget))))
    opens = min(kept, key=lambda each: each[1][-1], default=None)
    return {"opens": opens and opens[0]["id"], "examples": [record for record, _ in kept]}


Ranks = tuple[float, float, float, float]
"""Ranks by which an example is chosen, smaller first: skipped, beaten by random sets, disagreement of operators, and
how telling it is."""
Sketch = tuple[int, Ranks]
"""Size of an example in the page, in bytes (a text full of "<" needs six times its length there), and its ranks."""


def within(sketches: Sequence[Sketch], *, budget: int) -> list[int]:
    """Return the indices of the examples that fit the budget, in the order of the data."""
    # Where not all fit they are taken in turn from five queues: the first in the data, the examples that were skipped,
    # those with the lowest win rate, those with the largest gap between operators, and the most telling ones.
    numbers = range(len(sketches))
    queues = [list(numbers), *(sorted(numbers, key=lambda i, q=q: sketches[i][1][q]) for q in range(4))]  # type: ignore[misc]
    kept = list[int]()
    for index in dict.fromkeys(itertools.chain.from_iterable(zip(*queues, strict=True))):
        budget -= sketches[index][0]
        if budget < 0:
            break
        kept.append(index)
    return sorted(kept)


def example_records(folder: RunFolder, *, only: Container[int] | None = None) -> Iterator[tuple[Record, Ranks]]:
    """Yield every example of a run, or those at some indices, in the order of the data."""
    manifest = folder.manifest()
    config, of_chains, of_claims = manifest.config, manifest.chains is not None, is_open(manifest.labels)
    n_cells, lines, place = len(configurations(config)), folder.examples(), 0
    for part in folder.parts():
        inputs = folder.inputs(part)
        outcomes = [list(itertools.islice(lines, n_cells)) for _ in inputs]
        chosen = [only is None or place + index in only for index in range(len(inputs))]
        place += len(inputs)
        if not any(chosen):
            continue
        examples = folder.columns(part)
        ledger = folder.ledger(part, names_of(config, examples.ids), kinds=None if of_chains else COMPARED)
        scored = ScoredExamples(examples, ledger, config)
        cells = [each for each in configurations(config) if each[0].operator != ALL]
        compared = {cell: scored.compared(cell, operators) for cell, operators in cells}
        for index in itertools.compress(range(len(inputs)), chosen):
            record = example_record(inputs[index], index, ledger, compared, outcomes[index], of_claims=of_claims)
            if of_chains:
                own = ledger.records(np.flatnonzero(ledger.head["example"] == index))
                record["chain"] = chain_record(inputs[index], own, config)
            yield record, _ranks(inputs[index], outcomes[index])


def _ranks(example: InputRow, outcomes: Sequence[ExampleOutcome]) -> Ranks:
    known = [line for line in outcomes if line.error is None]
    rates = [line.win_rate for line in known]
    groups: dict[Configuration, list[float]] = {}
    for line in (line for line in known if line.operator != ALL):
        groups.setdefault(line.configuration._replace(operator=""), []).append(line.win_rate)
    gap = max((max(found) - min(found) for found in groups.values()), default=0.0)
    return (float(bool(rates)), min(rates, default=1.0), -gap, telling(example, outcomes))


def telling(example: InputRow, outcomes: Sequence[ExampleOutcome]) -> float:
    """Return a rank of how clearly an example shows what a run tests; the page opens with the smallest.

    An example with fewer flaws comes first. These are one flaw each: skipped or without a number, a wrong prediction,
    a weak or negative signal, a text that was cut off, and less than 6 or more than 30 units. Among equals, the method
    that is furthest ahead of the control under every operator decides. That is the largest `min over operators of (win
    rate of the method - win rate of the control)`, in the first direction, null and size. The control of a run without
    one is 50 %.
    """
    known = [line for line in outcomes if line.operator != ALL]
    first = {line.attribution: line.configuration._replace(operator="") for line in reversed(known)}
    found = [line for line in known if line.configuration._replace(operator="") == first[line.attribution]]
    rates = {(line.attribution, line.operator): line.win_rate for line in found if line.error is None}
    ahead: dict[str, float] = {}
    for (name, operator), rate in rates.items():
        if name != CONTROL:
            ahead[name] = min(ahead.get(name, 1.0), rate - rates.get((CONTROL, operator), CHANCE))
    flaws = (
        example.skip_reason is not None or len(rates) < len(found),
        example.gold is not None and example.gold != example.target,
        any(flag in line.flags for line in found if line.error is None for flag in ("weak_signal", "negative_signal")),
        example.truncated,
        not USUAL_UNITS[0] <= len(example.spans) <= USUAL_UNITS[1],
    )
    return 3.0 * sum(flaws) - max(ahead.values(), default=-1.0)


class _Indexed(dict[Any, int]):
    """Index of each value that cells of one example refer to; attributions share the null, for example."""

    def __missing__(self, value: Any) -> int:
        return self.setdefault(value, len(self))


class _Cells:
    """The cells of one example, at its place in the part, and the lists that they refer to."""

    def __init__(
        self,
        example: InputRow,
        place: int,
        ledger: Ledger,
        compared: Mapping[Configuration, ScoreMatrices],
        of_claims: bool,
    ) -> None:
        self.example, self.place, self.ledger, self.compared = example, place, ledger, compared
        self.of_claims, self.largest = of_claims, np.inf if of_claims else LARGEST_LOG_ODDS
        self.texts, self.nulls, self.rationales, self.sets = _Indexed(), _Indexed(), _Indexed(), _Indexed()
        self._known: dict[bytes, tuple[int, int]] = {}

    def measured(self, score: float) -> int:
        return int(scaled(score if self.of_claims else logit(score), largest=self.largest))

    def cell(self, line: ExampleOutcome, disagree: bool) -> list[Any]:
        numbers = [round(value, 4) for value in (line.win_rate, line.tie_rate, line.p_value, line.p_lower)]
        effect = None if line.effect_size is None else round(line.effect_size, 2)
        rationale = self.rationales[tuple(line.rationale)]
        if line.operator == ALL:  # the operators are shown side by side, each with its own rows
            return [*numbers, effect, self.measured(line.score), int(disagree), rationale, None, None, None, []]
        found, ledger = self.compared[line.configuration], self.ledger
        scores = scaled(found.log_odds[self.place, : 1 + line.m], largest=self.largest).tolist()
        rows = found.null_rows[self.place, : line.m]
        known = rows.tobytes()
        if known not in self._known:  # attributions share the null, unless it leaves one of their rationales out
            gaps = np.flatnonzero(found.sets[self.place, : line.m] != np.arange(line.m))
            chosen = in_six_bits(ledger.masks(rows, len(self.example.spans)) ^ (line.direction == "necessity"))
            order = self.sets[int(gaps[0]) if len(gaps) else -1, chosen]
            self._known[known] = self.nulls[tuple(scores[1:])], order
        # Units and fills say what a row shows, unless it is a reply or has words of its own.
        said = [ledger.texts.get(int(row)) for row in (found.rationale[self.place], *rows[:N_RANDOM_TEXTS])]
        text, *random = (None if each is None else self.texts[shortened(each, LONGEST_TEXT)] for each in said)
        random = random if ledger.texts else []
        return [*numbers, effect, scores[0], int(disagree), rationale, *self._known[known], text, random]


def example_record(
    example: InputRow,
    place: int,
    ledger: Ledger,
    compared: Mapping[Configuration, ScoreMatrices],
    outcomes: Sequence[ExampleOutcome],
    *,
    of_claims: bool = False,
) -> Record:
    """Return one example, at its place in the part: its text in pieces, its attributions, and all cells."""
    first = next((line for line in outcomes if line.error is None), None)
    found = _Cells(example, place, ledger, compared, of_claims)
    cells = [
        found.cell(line, disagree) if line.error is None else line.error
        for line, disagree in zip(outcomes, disagreements(outcomes), strict=True)
    ]
    # Ties are those of one attribution; the other flags are of the example.
    flags = [flag for flag in first.flags if flag != "ties"] if first is not None else []
    return {
        "id": example.example_id,
        "fields": [_field(name, text, example) for name, text in example.fields.items()],
        "gold": example.gold,
        "target": example.target,
        "full": None if first is None else found.measured(first.score_full),
        "empty": None if first is None else found.measured(first.score_empty),
        "flags": [*flags, "truncated"] if example.truncated else flags,
        "skip": example.skip_reason,
        # Three significant digits, and None for what is no number.
        "vectors": {
            name: [float(f"{value:.3g}") if math.isfinite(value) else None for value in values]
            for name, values in example.attributions.items()
        },
        "texts": list(found.texts),
        "nulls": list(map(list, found.nulls)),
        # The number that the null leaves out of the order of draws, -1 for none, and its sets end to end.
        "sets": list(map(list, found.sets)),
        "size": len(example.spans),
        "fills": _fills(example),
        "rationales": list(map(list, found.rationales)),
        "cells": cells,
    }


def chain_record(example: InputRow, rows: Sequence[LedgerRow], config: RunSettings) -> dict[str, Any] | None:
    """Return what the example browser of the page shows of a chain beside its text; None for a skipped one."""
    if example.skip_reason is not None:
        return None
    found = chain_view(example, rows, config.operators[0])
    steps = [
        {"effect": effect and round(effect, 3), "changed": n, "read": read, "replies": _shown_replies(replies)}
        for _, effect, n, read, replies in found.steps
    ]
    about = {"answer": found.answer, "gold": found.gold, "right": found.is_right, "operator": found.operator}
    about |= {"alone": found.alone, "remark": ALWAYS if found.always else None}
    return {**about, "whole": _shown_replies(found.whole), "empty": _shown_replies(found.empty), "steps": steps}


def _shown_replies(replies: Sequence[ChainReply]) -> list[ChainReply]:
    """Return the most frequent replies, shortened."""
    return [reply._replace(text=shortened(reply.text, _LONGEST_REPLY)) for reply in replies[:MOST_REPLIES]]


def in_six_bits(masks: NDArray[np.bool_]) -> str:
    """Return sets of units, (sets, units), end to end with a character for every six units of each; see `SIX_BITS`."""
    padded = np.zeros((len(masks), -(-masks.shape[1] // 6) * 6), dtype=np.int64)
    padded[:, : masks.shape[1]] = masks
    return bytes(_CHARACTERS[padded.reshape(-1, 6) @ (1 << np.arange(6))]).decode()


def _fills(example: InputRow) -> dict[str, list[str]]:
    """Return the words that operators write, each draw as one text with a tab between units; one word if all agree."""
    found: dict[str, list[str]] = {}
    for fill in sorted(example.fills, key=lambda each: (each.operator, each.draw)):
        words = [" ".join(word.split()) for word in fill.texts]
        found.setdefault(fill.operator, []).append(words[0] if len(set(words)) == 1 else "\t".join(words))
    return found


def _field(name: str, text: str, example: InputRow) -> Record:
    """Return a field in pieces; `units` holds the unit of each piece, -1 for the text between units."""
    cut = cut_at_units(text, example.spans, name)
    human = [text[span.start : span.end] for span in example.human if span.field == name]
    return {"name": name, "pieces": [piece for piece, _ in cut], "units": [unit for _, unit in cut], "human": human}


def scaled(scores: ArrayLike, *, largest: float = LARGEST_LOG_ODDS) -> NDArray[np.int64]:
    """Return thousandths: four digits are enough to draw, and take half the space of a fraction."""
    return np.rint(1000 * np.clip(np.asarray(scores, dtype=np.float64), -largest, largest)).astype(np.int64)


# Inside <script> a browser looks for "</script" and "<!--" only, but escaping these five costs next to nothing and
# leaves no string that any parser could take for the end of the data.
_ESCAPES = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


def script_json(content: Any) -> Markup:
    """Return JSON for `<script type="application/json">`; `</script>` in a text is escaped."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_ESCAPES))
