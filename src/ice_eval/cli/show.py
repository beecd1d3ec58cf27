"""`ice show`."""

import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ice_eval._registry import did_you_mean
from ice_eval.cli._options import Json
from ice_eval.errors import ConfigError

if TYPE_CHECKING:
    from ice_eval.records import Answer
    from ice_eval.results import InputRow, LedgerRow, RunFolder


def show(
    folder: Annotated[Path, typer.Argument(help="Run folder.")],
    example: Annotated[str, typer.Option(help="Id of the example; without an id of its own, its row, counted from 0.")],
    rows: Annotated[int, typer.Option(help="Random rows to show per operator; -1 for all.")] = 3,
    as_json: Json = False,
) -> None:
    """Show one example: its text, its rationales, and every counterfactual that was scored."""
    from ice_eval.cli._output import console, harmless, print_json
    from ice_eval.results import RunFolder

    run = RunFolder.existing(folder)
    run.require_complete()
    found, ledger = _find(run, example)
    outcomes = [line for line in run.examples() if line["example_id"] == example]
    labels = run.manifest()["labels"]
    if as_json:
        print_json(
            {
                "example_id": example,
                "fields": dict(found.fields),
                "answers": {name: answer._asdict() for name, answer in found.answers.items()},
                "outcomes": outcomes,
                "rows": [_record(row, labels) for row in ledger],
            }
        )
        return
    out = console()
    for line in _lines(found, ledger, outcomes, labels, rows):
        out.print(line if isinstance(line, str) else harmless(line), soft_wrap=True)


def _find(run: "RunFolder", example: str) -> "tuple[InputRow, list[LedgerRow]]":
    known: list[str] = []
    for part in run.parts():
        for row in run.inputs(part):
            if row.example_id == example:
                return row, [r for r in run.ledger(part, inputs=True) if r.key.example_id == example]
            known.append(row.example_id)
    raise ConfigError(
        f"no example '{example}' in {run.path}{did_you_mean(example, known)} "
        f"It holds {len(known)}, from '{known[0]}' to '{known[-1]}'."
    )


def _record(row: "LedgerRow", labels: list[str]) -> dict[str, Any]:
    return {
        **row.key._asdict(),
        "kept": list(row.kept),
        "input_ids": list(row.input_ids),
        "segment_ids": list(row.segment_ids),
        "probabilities": _probabilities(row, labels),
        "text": row.text,
    }


def _probabilities(row: "LedgerRow", labels: list[str]) -> dict[str, float | None]:
    import numpy as np

    return {label: float(np.exp(z)) if np.isfinite(z) else None for label, z in zip(labels, row.scores, strict=True)}


def _lines(
    found: "InputRow", ledger: "list[LedgerRow]", outcomes: list[dict[str, Any]], labels: list[str], n_random: int
) -> list[Any]:
    from rich.text import Text

    head = [Text(f"example {found.example_id}", style="bold")]
    head += [Text(f"{name}: {text}") for name, text in found.fields.items()]
    if found.skip_reason is not None:
        return [*head, Text(f"takes no part: {found.skip_reason}")]
    gold = "unknown" if found.gold is None else labels[found.gold]
    head.append(Text(f"explained label: {labels[found.target or 0]}, gold: {gold}"))
    head += [Text(_answer_line(name, answer)) for name, answer in found.answers.items()]
    lines = [*head, *(_score_line(row, found, labels) for row in ledger if row.key.kind in {"full", "empty"})]
    for outcome in outcomes:
        if outcome["operator"] != "all":
            lines += ["", *_outcome_lines(outcome, found, ledger, labels)]
    for operator, direction in dict.fromkeys(
        (row.key.operator, row.key.direction) for row in ledger if row.key.operator
    ):
        sets = [row for row in ledger if row.key.set_index is not None]
        random = [row for row in sets if (row.key.operator, row.key.direction) == (operator, direction)]
        shown = random if n_random < 0 else random[:n_random]
        lines += ["", Text(f"{len(shown)} of {len(random)} random rows under {operator}, {direction}", style="bold")]
        lines += [_score_line(row, found, labels) for row in shown]
    return lines


def _answer_line(name: str, answer: "Answer") -> str:
    """What the model said, and what came of it."""
    if answer.text is None:
        return f"{name}: {answer.problem}"
    read = answer.problem or f"{answer.n_named} words of the text, {answer.n_absent} others"
    return f"{name}: the model answered {_quoted(answer.text)} ({read})"


def _outcome_lines(
    outcome: dict[str, Any], found: "InputRow", ledger: "list[LedgerRow]", labels: list[str]
) -> list[Any]:
    from rich.text import Text

    from ice_eval.report.tables import share

    title = f"{outcome['attribution']} under {outcome['operator']}, {outcome['direction']}, k = {share(outcome['k'])}"
    if "error" in outcome:
        return [Text(f"{title}: {outcome['error']}")]
    numbers = f"win rate {100 * outcome['win_rate']:.0f} % of {outcome['m']}, p = {outcome['p_value']:.3f}"
    kind, size = f"rationale:{outcome['attribution']}", len(outcome["rationale"])
    place = (kind, outcome["operator"], outcome["direction"], size)
    rows = [r for r in ledger if (r.key.kind, r.key.operator, r.key.direction, r.key.size) == place]
    return [
        Text(f"{title}: {numbers}", style="bold"),
        *_marked(found, outcome["rationale"]),
        *(_score_line(row, found, labels) for row in rows),
    ]


def _marked(found: "InputRow", rationale: list[int]) -> list[Any]:
    """The text, with the rationale in brackets, bold in a terminal; a line per field, named if there are several."""
    from rich.text import Text

    explained = {span.field for span in found.spans}
    lines = []
    for name, text in found.fields.items():
        if name not in explained:
            continue
        line, place = Text(f"  {name}: " if len(explained) > 1 else "  "), 0
        for unit in rationale:
            span = found.spans[unit]
            if span.field == name:
                line.append(text[place : span.start])
                line.append(f"[{text[span.start : span.end]}]", style="bold reverse")
                place = span.end
        lines.append(line.append(text[place:]))
    return lines


def _score_line(row: "LedgerRow", found: "InputRow", labels: list[str]) -> Any:
    from rich.text import Text

    target = labels[found.target or 0]
    probability = _probabilities(row, labels)[target]
    value = "not finite" if probability is None else f"{probability:.3f}"
    kind = f"empty ({row.key.operator})" if row.key.kind == "empty" and row.key.operator else row.key.kind
    return Text(f"  {value}  {kind:<20} {_quoted((row.text or '').strip())}")


def _quoted(text: str) -> str:
    """On one line, in quotes. `repr` would also escape the joiners of emoji and of Persian or Hindi words."""
    escaped = (repr(c)[1:-1] if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} else c for c in text)
    return f"'{''.join(escaped)}'"
