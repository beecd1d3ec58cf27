"""Write the JSON Schemas of the run folder and docs/results-format.md, from the records and columns of its files."""

import ast
import dataclasses
import inspect
import json
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter

import ice_eval.results
from ice_eval.records import Kind
from ice_eval.results.examples import INPUTS, InputRow
from ice_eval.results.ledger import LEDGER, LedgerRow, RowKey
from ice_eval.results.outcomes import OUTCOMES
from ice_eval.results.records import SCHEMA, ExampleOutcome, Manifest, Record, Summary, SummaryLine

FOLDER = Path(ice_eval.results.__file__).parent / "schemas"
PAGE = Path(__file__).parents[1] / "docs" / "results-format.md"
SCHEMAS: dict[str, tuple[type[Record], str]] = {
    "manifest": (Manifest, "manifest.json of a run folder"),
    "summary": (Summary, "summary.json of a run folder"),
}
"""Name of a published JSON Schema -> its record and title."""
Record.__pydantic_config__ = {"extra": "forbid", "use_attribute_docstrings": True}  # type: ignore[attr-defined]


def schema_text(name: str) -> str:
    """Return a JSON Schema as its published file holds it."""
    return json.dumps(_schema(name), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _schema(name: str) -> dict[str, Any]:
    kind, title = SCHEMAS[name]
    schema = TypeAdapter(kind).json_schema()
    for each in (schema, *schema.get("$defs", {}).values()):
        for field in each.get("properties", {}).values():
            field.pop("title", None)  # it repeats the name
    for verdict in ("Verdict", "ReasoningVerdict"):
        if verdict in schema.get("$defs", {}):
            own = schema["$defs"][verdict]
            own["properties"]["text"] = {"type": "string", "description": "The verdict in words."}
            own["required"] = [*own.get("required", []), "text"]
    schema["properties"]["schema"] = {"const": SCHEMA}
    schema["required"] = ["schema", *schema["required"]]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": title}


PAGE_TEXT = """\
# What is in a run folder?

A run folder has JSON and parquet files, which pandas can read. Their format is version {version}. Folders of other
versions are refused: run the evaluation again. This page is generated from the code (`make docs`).

| file | holds |
|---|---|
| `manifest.json` | [settings, origin, versions, cost](#manifestjson) |
| `inputs/part-PPPPPP-NNN.parquet` | [examples](#columns-of-inputsparquet) |
| `ledger/part-PPPPPP-NNN.parquet` | [every scored row](#columns-of-ledgerparquet) |
| `parts.sha256` | checksums of both, for `sha256sum --check` |
| `examples.parquet` | [one line per example and test](#columns-of-examplesparquet) |
| `summary.json` | [all statistics](#summaryjson) |
| `responses.jsonl` | [responses of a server](#lines-of-responsesjsonl) |
| `answers.jsonl` | answers that the model wrote before a run about citations |
| `levels.jsonl`, `hints.jsonl` | tests of `--levels` and `--hints` |
| `report.html` | [the report](report.md) |

```python
import pandas as pd

ledger = pd.concat(pd.read_parquet(path) for path in sorted(folder.glob("ledger/*.parquet")))
ledger[(ledger.kind == "rationale") & (ledger.attribution == "attention")][["example_id", "operator", "kept", "scores"]]
```

A part is 16 consecutive examples, or 128 for a small classifier on a GPU. A later command adds files `-001`, `-002`,
… to a part; readers take their union.

## When does a folder continue?

Model, weights, dtype, quantisation, task, data, prompt and all settings that define rows must be the same.
Attributions, operators, directions, nulls, k and `--eraser` may be added. A refusal names every field that differs.

- Kills, resumes and [other executors](tutorials/grid-on-a-cluster.md#on-a-ray-cluster) do not change results on the
  same hardware. A kill loses at most the part in flight, on a GPU two.
- The first Ctrl-C finishes the current part and exits with 130; the second stops at once. A full disk ends a run with
  exit code 1; run the same command to continue.
- With `--adaptive examples` m is the maximum number of sets of an example; with `dataset` the pilot's m is `planned`,
  and stays.
- A second process on the same folder is refused.

**Damage.** Parts are checked against `parts.sha256` on reading; the message names a lost or changed file. Repeat the
same `ice run` to score only that part again. `ice rescore` writes `examples.parquet` and `summary.json` again.

## Columns of `ledger/*.parquet`

{ledger}

Kinds: {kinds}.

A rationale's null are the first m `random` rows in the order of `set` that have its example, operator, direction,
size and null (shared, or of its `attribution`), without its own set. File metadata (`ice_cost`) hold the cost of each
file.

## Columns of `inputs/*.parquet`

{inputs}

## Columns of `examples.parquet`

{examples}

Also {others}; see [statistics](statistics.md). `ice report FOLDER --format jsonl` prints the same lines.

## `manifest.json`

The [schema]({schemas}/manifest.json) has all fields with types and descriptions. Settings are under `config`, and what
a run reported under `messages` and `warnings`.

## `summary.json`

Rates are fractions. A `verdict` has its `word` and its `text`; `Run.summary()` has the text alone. The
[schema]({schemas}/summary.json) describes all fields: {summary}. Each of `configurations` has:

```text
{configuration}
```

## Lines of `responses.jsonl`

The [schema]({schemas}/responses.json) has types. A request is known by its `key`: the SHA-256 of all that the server
sees (`request`) and the number of the `repeat`. `status` is `ok`, `refusal`, `truncated`, `empty`, `too_long` or
`error`. `lost` counts attempts that may have been charged without an answer, and `billed` holds the tokens that count.
A model on this machine writes the same file.

## Chains of thought

Units are steps. `spans` are in the field `chain`; further `fields` are `question`, `answer`, `gold` and `n_options`.
The input's `gold` is 0 where the chain's own answer is right. Labels are `same` and `changed`: `scores` are 0 and
−1000, or log ½ twice where a reply cannot be read. `input_ids` name problem, repeat and steps. In a further pose the
operator ends in it (`delete@prefill`). `token_budget` counts steps, and `noise_guard` is null.

## Cited answers

Examples are claims, `ANSWER#NUMBER`, and `group` is the answer. `fields` hold `question`, `answer`, `claim`, and each
passage as `passage NAME`. `scores` are mean log-probabilities of the claim's tokens; where a server answers again,
the labels are `stated` and `missing`.
"""


def page() -> str:
    """Return docs/results-format.md."""
    schemas = "../src/ice_eval/results/schemas"
    docs = _docs((ExampleOutcome,))
    return PAGE_TEXT.format(
        version=SCHEMA,
        schemas=schemas,
        ledger=_columns(LEDGER, (RowKey, LedgerRow)),
        kinds=_listed(kind.label for kind in Kind),
        inputs=_columns(INPUTS, (InputRow,)),
        examples=_columns([each for each in OUTCOMES if each.name in docs], (ExampleOutcome,)),
        others=_listed(each.name for each in OUTCOMES if each.name not in docs),
        summary=_fields(Summary),
        configuration=textwrap.fill(_fields(SummaryLine).replace("`", ""), 118),
    )


def _columns(columns: Iterable[pa.Field], records: tuple[type, ...]) -> str:
    """Return a table of columns, with the docstrings of the records' attributes."""
    docs = _docs(records)
    rows = [f"| `{each.name}` | {_type(each)} | {docs[each.name]} |" for each in columns]
    return "\n".join(["| column | type | |", "|---|---|---|", *rows])


def _docs(records: Iterable[type]) -> dict[str, str]:
    """Return attribute -> first paragraph of its docstring."""
    found = {}
    for record in records:
        [definition] = ast.parse(textwrap.dedent(inspect.getsource(record))).body
        assert isinstance(definition, ast.ClassDef)
        for field, doc in zip(definition.body, definition.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant):
                found[ast.unparse(field.target)] = _first(doc.value.value)
        properties = [each for each in definition.body if isinstance(each, ast.FunctionDef)]
        found |= {each.name: _first(text) for each in properties if (text := ast.get_docstring(each))}
    return found


def _first(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split()).replace("->", "→")


def _type(field: pa.Field) -> str:
    return _type_name(field.type) + (", null" if field.nullable else "")


def _type_name(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return _type_name(kind.value_type)
    if pa.types.is_list(kind):
        return f"list of {_type_name(kind.value_type)}"
    if pa.types.is_map(kind):
        return f"{_type_name(kind.key_type)} → {_type_name(kind.item_type)}"
    if pa.types.is_struct(kind):
        return f"{{{', '.join(each.name for each in kind)}}}"
    return str(kind)


def _fields(record: Any) -> str:
    return _listed(each.name for each in dataclasses.fields(record))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    for each in SCHEMAS:
        (FOLDER / f"{each}.json").write_text(schema_text(each), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
