"""Write the JSON Schemas of the run folder, generated from the records of `ice_eval.results`."""

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

import ice_eval.results
from ice_eval.results.json_files import SCHEMAS
from ice_eval.results.records import SCHEMA, Record

FOLDER = Path(ice_eval.results.__file__).parent / "schemas"
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


if __name__ == "__main__":
    for each in SCHEMAS:
        (FOLDER / f"{each}.json").write_text(schema_text(each), encoding="utf-8")
