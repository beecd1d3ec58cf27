"""Files of answers that cite sources: our own, of ALCE, LangChain, LlamaIndex and Ragas."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ice_eval.errors import DataError, is_broken
from ice_eval.files import as_text, json_in, readable
from ice_eval.subjects.context.answers import CitedAnswer, GivenClaim, Passage, claims_in, given_claims
from ice_eval.tasks import numbered_rows

_OWN, _ALCE, _LLAMA_INDEX = "passages", "docs", "source_nodes"
_PASSAGES = (_OWN, _ALCE, _LLAMA_INDEX, "source_documents", "retrieved_contexts", "contexts", "context")
"""Keys that passages have in the known formats; LangChain has `source_documents` or `context`, Ragas `…contexts`."""
_QUESTION = ("question", "query", "input", "user_input")
_ANSWER = ("answer", "result", "response", "output")
_EXPECTED = (
    '"question", "passages" and "answer" are expected, or a row of ALCE ("docs", "output"), LangChain '
    '("source_documents" or "context"), LlamaIndex ("source_nodes") or Ragas ("user_input", "retrieved_contexts")'
)


def read_answers_file(path: Path) -> list[CitedAnswer]:
    """Read the answers of a `.jsonl` file, or of a `.json` file with a list or ALCE's `{"data": […]}`."""
    origin = as_text(path)
    kind = path.suffix.lower()
    if kind not in {".jsonl", ".json"}:
        raise DataError(f"{origin} is neither .jsonl nor .json; convert it to one of them.")
    with readable(origin):
        content = path.read_text(encoding="utf-8-sig")
    if kind == ".jsonl":
        return read_answers(numbered_rows(content.split("\n"), origin), origin)
    whole = json_in(content, origin)
    rows = whole.get("data") if isinstance(whole, dict) else whole
    if not isinstance(rows, list):
        raise DataError(f'{origin} is {_kind(whole)}; a list of answers is expected, or {{"data": [...]}}.')
    return read_answers(enumerate(rows, start=1), origin, "entry")


def read_answers(rows: Iterable[tuple[int, object]], origin: str, place: str = "line") -> list[CitedAnswer]:
    """Read answers from numbered JSON objects of a known format; `origin` and `place` name their source in errors."""
    answers: dict[str, CitedAnswer] = {}
    for number, row in rows:
        try:
            answer = _answer(row, number)
            if answer.id in answers:
                raise DataError(f"a second answer with the id '{answer.id}'; give each its own id, or none of them.")
        except DataError as exc:
            raise DataError(f"{origin}, {place} {number}: {exc}") from exc
        answers[answer.id] = answer
    return list(answers.values())


def _answer(row: object, number: int) -> CitedAnswer:
    if not isinstance(row, Mapping):
        raise DataError(f"the row is {_kind(row)}; an object is expected: {_EXPECTED}.")
    key = next((key for key in _PASSAGES if row.get(key) is not None), None)
    asked = _first(row, _QUESTION)
    if key is None or asked is None:
        missing, keys = "passages" if key is None else "question", ", ".join(map(str, row)) or "(none)"
        raise DataError(f"no {missing} among the keys {keys}; {_EXPECTED}.")
    # In ALCE's files, `answer` and `claims` are gold, and `output` is the answer of the model.
    written = _first(row, ("output",) if key == _ALCE else _ANSWER)
    text = None if written is None else _text(written, "the answer", may_be_empty=True)
    given = _given_claims(row.get("claims")) if key == _OWN else []
    if text is None and given:
        text = " ".join(claim.text for claim in given if claim.text)
    answer = CitedAnswer(
        id=str(number) if row.get("id") is None else _text(str(row["id"]), "the id"),
        question=_text(asked, "the question"),
        passages=_passages(row[key], key, text or ""),
        text=text,
    )
    return with_claims(answer, given)


def with_claims(answer: CitedAnswer, given: Sequence[GivenClaim] = ()) -> CitedAnswer:
    """Return an answer with its claims: those that are given, or those in its text."""
    if not answer.passages:
        return replace(answer, problems=("there is no passage",))
    if answer.text is None:
        return answer
    if not answer.text.strip():
        return replace(answer, problems=("the answer is empty",))
    names = [passage.name for passage in answer.passages]
    read = given_claims(answer.text, given, names) if given else claims_in(answer.text, names)
    problems = read.problems if read.claims or read.problems else ("the answer holds no claim",)
    return replace(answer, claims=read.claims, problems=problems)


def _given_claims(value: object) -> list[GivenClaim]:
    claims = value or []
    if not isinstance(claims, list | tuple):
        raise DataError(f'"claims" is {_kind(claims)}; a list is expected.')
    read = []
    for number, claim in enumerate(claims, start=1):
        fields = claim if isinstance(claim, Mapping) else {}
        text, cites = fields.get("text"), fields.get("cites")
        if not isinstance(text, str) or not isinstance(cites, list | tuple):
            raise DataError(
                f'claim {number} is {claim!r:.80}; {{"text": "…", "cites": ["1", "2"]}} is expected. Leave "claims" '
                "out to read the citations in the answer."
            )
        notes = {str(key): value for key, value in fields.items() if key != "text" and isinstance(value, str)}
        read.append(GivenClaim(text.strip(), [str(cite).strip() for cite in cites], notes))
    return read


def _passages(value: object, key: str, answer: str) -> tuple[Passage, ...]:
    """Return the passages with the names that the answer cites them by: their ids, or positions from 1."""
    if isinstance(value, Mapping):
        value = [{"id": name, "text": text} for name, text in value.items()]
    if not isinstance(value, list | tuple):
        raise DataError(f'"{key}" is {_kind(value)}; a list of passages is expected, or an object of id and text.')
    read = [_passage(item, number, with_title=key == _ALCE) for number, item in enumerate(value, start=1)]
    # Nodes of LlamaIndex have random ids; its prompts number them.
    by_id = key == _OWN or (key == _LLAMA_INDEX and any(each.name and f"[{each.name}" in answer for each in read))
    passages: dict[str, Passage] = {}
    for number, passage in enumerate(read, start=1):
        name = passage.name if by_id and passage.name else str(number)
        if name in passages:
            raise DataError(f"two passages are named '{name}'; names must be unique (leave them out to count).")
        passages[name] = replace(passage, name=name)
    return tuple(passages.values())


def _passage(item: object, number: int, *, with_title: bool) -> Passage:
    """Return a passage; its name is its id, or empty."""
    fields = {"text": item} if isinstance(item, str) else item
    if not isinstance(fields, Mapping):
        raise DataError(f'passage {number} is {_kind(item)}; a text or an object with "text" is expected.')
    # LlamaIndex wraps the text in a node, and LangChain's `dumps` in its arguments.
    node = next((fields[key] for key in ("node", "kwargs") if isinstance(fields.get(key), Mapping)), fields)
    text = _text(_first(node, ("text", "page_content")), f"the text of passage {number}")
    title, identity = node.get("title"), _first(node, ("id", "id_", "node_id"))
    metadata = node.get("metadata")
    scored = [fields, metadata] if isinstance(metadata, Mapping) else [fields]
    score = next((each["score"] for each in scored if each.get("score") is not None), None)
    return Passage(
        name="" if identity is None else _text(str(identity), f"the id of passage {number}").strip(),
        text=f"{title}\n{text}" if with_title and title else text,
        score=None if score is None else _number(score, f"the score of passage {number}"),
    )


def _first(row: Mapping[str, object], keys: Iterable[str]) -> object:
    """Return the first value that is given under one of the keys; None: there is none."""
    return next((row[key] for key in keys if row.get(key) is not None), None)


def _text(value: object, name: str, *, may_be_empty: bool = False) -> str:
    if not isinstance(value, str) or not (value.strip() or may_be_empty):
        found = "empty" if isinstance(value, str) else _kind(value)
        raise DataError(f"{name} is {found}; a text is expected.")
    if is_broken(value):
        raise DataError(f"{name} holds half of a character (a lone surrogate); fix the text.")
    return value


def _number(value: object, name: str) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{name} is {value!r:.60}; a finite number is expected.")
    return number


def _kind(value: object) -> str:
    return "missing" if value is None else f"of type {type(value).__name__}"
