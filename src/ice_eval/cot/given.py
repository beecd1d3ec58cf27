"""Chains that somebody has already: a file with `{question, steps | response, final, gold?}` per line."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ice_eval.cot.answers import Kind, Number, Option, Reading
from ice_eval.cot.steps import Chain, given_steps, split_steps
from ice_eval.cot.tasks import Problem
from ice_eval.errors import DataError
from ice_eval.tasks import numbered_rows

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Given:
    """One record: a problem, the chain that was written for it, and the final answer that this came to."""

    problem: Problem
    chain: Chain
    final: Reading


def read_given(path: Path, *, kind: Kind | None = None) -> list[Given]:
    """Read a file of chains.

    Args:
        path: A `.jsonl` file. Each record has `question`; `steps` (texts) or `response` (which is split); `final`,
            which may be missing beside a response that states it; perhaps `gold`, `id`, and `choices` (texts).
        kind: What the answers are; None: options where a record has `choices`, else numbers.

    Raises:
        DataError: The file or a line of it has another shape; the message names the line.
    """
    try:
        with Path(path).open(encoding="utf-8-sig") as lines:
            rows = list(numbered_rows(lines, str(path)))
    except UnicodeDecodeError as exc:
        raise DataError(f"{path} is not UTF-8 text ({exc.reason} at byte {exc.start}); save it as UTF-8.") from exc
    except OSError as exc:
        raise DataError(f"{path} cannot be read: {exc.strerror}. A .jsonl file is expected.") from exc
    if not rows:
        raise DataError(f"{path} holds no records; at least one is needed.")
    seen: dict[str, int] = {}
    records = []
    for index, (number, row) in enumerate(rows):
        try:
            record = _given(row, str(index), kind)
        except DataError as exc:
            raise DataError(f"{path}, line {number}: {exc}") from exc
        first = seen.setdefault(record.problem.id, number)
        if first != number:
            raise DataError(f"{path}, line {number}: the id '{record.problem.id}' was given in line {first} already.")
        records.append(record)
    return records


def final_of(chain: Chain, kind: Kind) -> Reading:
    """The answer that a chain states, in its answer part if it has one."""
    return kind.read(chain.answer.text if chain.answer else chain.response)


def _given(row: Row, index: str, kind: Kind | None) -> Given:
    question = row.get("question")
    if not isinstance(question, str) or not question.strip():
        raise DataError(f"'question' must be a text; the record has {', '.join(row) or 'no fields'}.")
    options = _texts(row, "choices") if row.get("choices") is not None else ()
    kind = kind or (Option(options) if options else Number())
    chain = _chain(row)
    gold = None
    if row.get("gold") is not None:
        gold = kind.gold(_written(row, "gold"))
        if gold is None:
            raise DataError(f"'gold' holds {row['gold']!r}, which cannot be read as {kind.noun}.")
    identity = index if row.get("id") is None else str(row["id"])
    return Given(Problem(identity, question, options, gold, kind), chain, _final(row, chain, kind))


def _chain(row: Row) -> Chain:
    if (row.get("steps") is None) == (row.get("response") is None):
        raise DataError(f"either 'steps' or 'response' is expected; the record has {', '.join(row)}.")
    if row.get("steps") is not None:
        return given_steps(_texts(row, "steps"))
    if not isinstance(row["response"], str):
        raise DataError(f"'response' holds {type(row['response']).__name__}, and text is expected.")
    return split_steps(row["response"])


def _final(row: Row, chain: Chain, kind: Kind) -> Reading:
    """What `final` says; beside a response it may be left to the response."""
    if row.get("final") is not None:
        return kind.read(_written(row, "final"))
    if row.get("response") is None:
        raise DataError("'final' is missing: steps alone do not say which answer they came to.")
    return final_of(chain, kind)


def _written(row: Row, name: str) -> str:
    value = row[name]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DataError(f"'{name}' holds {value!r}, and a text or a number is expected.")
    return str(value)


def _texts(row: Row, name: str) -> tuple[str, ...]:
    value = row[name]
    if not isinstance(value, list) or not value or not all(isinstance(text, str) and text.strip() for text in value):
        raise DataError(f"'{name}' must be a list of texts, none of them empty, and holds {value!r:.80}.")
    return tuple(text.strip() for text in value)
