"""Responses in logs of inspect_ai and lm-evaluation-harness, as records of a file of chains; neither is imported."""

import json
import string
import struct
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import regex

from ice_eval.errors import DataError
from ice_eval.tasks import numbered_rows

_Sample = Mapping[str, Any]
_ZIP, _ZSTD = b"PK\x03\x04", 93  # the compression of inspect_ai, which `zipfile` reads only from Python 3.14 on
_LARGEST_SAMPLE, _LARGEST_LOG = 2**28, 2**32  # bytes; what is larger is no log of texts, and would take all memory
_QUESTIONS = ("question", "problem", "query", "input", "prompt")
_EXPECTED = "Expected: a .jsonl file of chains, a log of inspect_ai, or samples_….jsonl of lm_eval (--log_samples)."


def read_log(path: Path) -> list[dict[str, Any]] | None:
    """Return the records of a log (None: the file is none): `id`, `question`, `response`, `choices` and `gold`.

    `n_further` counts the other responses to a sample (epochs, repeats), which are left out. Raises DataError where the
    log holds no responses, is damaged or too large, or the file is JSON of another kind.
    """
    try:
        records = _records(path)
    except (AttributeError, IndexError, KeyError, TypeError) as exc:
        raise DataError(f"{path} does not have the shape of a log ({type(exc).__name__}: {exc}). {_EXPECTED}") from exc
    if records is not None and not any(record["response"] for record in records):
        raise DataError(f"{path} holds no responses: no sample has a text that a model wrote. {_EXPECTED}")
    return records


def _records(path: Path) -> list[dict[str, Any]] | None:
    with path.open("rb") as file:
        if file.read(len(_ZIP)) == _ZIP:
            return _inspect_records(_members(path))
    with path.open(encoding="utf-8-sig") as lines:
        first = _parsed(next((line for line in lines if line.strip()), ""))
        lines.seek(0)
        if isinstance(first, dict) and {"doc", "resps"} <= first.keys():
            return list(_harness_records(row for _, row in numbered_rows(lines, str(path))))
        if isinstance(first, dict) and not {"eval", "results"} & first.keys():
            return None
        whole = _parsed(lines.read(_LARGEST_LOG))
    if whole is not None and not (isinstance(whole, dict) and "eval" in whole):
        raise DataError(f"{path} is JSON of another kind. {_EXPECTED}")
    return _inspect_records((str(each["id"]), each) for each in whole.get("samples") or ()) if whole else None


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _members(path: Path) -> Iterator[tuple[str, _Sample]]:
    """Yield the samples of an archive of inspect_ai by name: a file per sample and epoch, read in memory."""
    left = _LARGEST_LOG
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            for info in archive.infolist():
                if name := regex.fullmatch(r"samples/(.+)_epoch_\d+\.json", info.filename):
                    content = _content(archive, file, info)
                    left -= len(content)
                    if len(content) > _LARGEST_SAMPLE or left < 0:
                        raise ValueError(f"{info.filename} is too large")
                    yield name[1], json.loads(content)
    except (zipfile.BadZipFile, NotImplementedError, OSError, RuntimeError, ValueError, struct.error) as exc:
        raise DataError(f"{path} is a damaged log, or an archive of another kind: {exc}. {_EXPECTED}") from exc


def _content(archive: zipfile.ZipFile, file: IO[bytes], info: zipfile.ZipInfo) -> bytes:
    if info.compress_type != _ZSTD:
        return archive.open(info).read(_LARGEST_SAMPLE + 1)
    file.seek(info.header_offset + 26)  # the lengths of the name and of the extra field, which precede the data
    file.seek(sum(struct.unpack("<HH", file.read(4))), 1)
    packed = pa.BufferReader(file.read(min(info.compress_size, _LARGEST_SAMPLE)))
    return bytes(pa.CompressedInputStream(packed, "zstd").read(_LARGEST_SAMPLE + 1))


def _inspect_records(samples: Iterable[tuple[str, _Sample]]) -> list[dict[str, Any]]:
    """Return a record for each sample, of its first epoch; archives hold them in the order in which they ended."""
    first: dict[str, tuple[int, dict[str, Any]]] = {}
    n_epochs: Counter[str] = Counter()
    for name, sample in samples:
        n_epochs[name] += 1
        if name not in first or sample["epoch"] < first[name][0]:
            first[name] = sample["epoch"], _inspect_record(sample)
    records = [{**record, "n_further": n_epochs[name] - 1} for name, (_, record) in first.items()]
    return sorted(records, key=lambda record: (isinstance(record["id"], str), record["id"]))


def _inspect_record(sample: _Sample) -> dict[str, Any]:
    asked = sample["input"]
    if isinstance(asked, list):  # a conversation: the last thing that the user says
        asked = next((each["content"] for each in reversed(asked) if each["role"] == "user"), "")
    replies = [each["message"]["content"] for each in (sample.get("output") or {}).get("choices") or ()] or [""]
    text, thought = (_written(replies[0], sample, kind) for kind in ("text", "reasoning"))
    response = f"<think>\n{thought}\n</think>\n{text}" if thought else text
    found = {"id": sample["id"], "question": _written(asked, sample, "text"), "response": response}
    return found | _options(sample.get("choices"), sample.get("target"))


def _written(content: Any, sample: _Sample, kind: str) -> str:
    """Return the text, or the reasoning (its summary, where it is encrypted), of a message: a string, or blocks."""
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [each.get("summary" if each.get("redacted") else kind) for each in blocks if each["type"] == kind]
    attached = sample.get("attachments") or {}
    return "\n".join(attached.get(text.removeprefix("attachment://"), text) for text in texts if text)


def _harness_records(rows: Iterable[_Sample]) -> Iterator[dict[str, Any]]:
    """Yield a record for each sample of lm-evaluation-harness, which has a line for every filter of its responses."""
    read: dict[str, _Sample] = {}
    for row in rows:
        read.setdefault(str(row.get("doc_id", len(read))), row)
    for identity, row in read.items():
        doc, texts, prompts = row["doc"], _texts(row["resps"]), _texts(row.get("arguments"))
        question = next((doc[name] for name in _QUESTIONS if isinstance(doc.get(name), str)), "".join(prompts[:1]))
        found = {"id": identity, "question": question, "response": "".join(texts[:1]), "n_further": len(texts[1:])}
        yield found | _options(doc.get("choices", doc.get("options")), row.get("target"))


def _texts(nested: Any) -> list[str]:
    """Return the texts of the first entry: of `[["one", "two"]]`, or of `{"gen_args_0": {"arg_0": …, "arg_1": {}}}`."""
    for _ in range(2):
        entries = list(nested.values()) if isinstance(nested, dict) else nested or []
        nested = entries[0] if entries else None
    return [each for each in entries if isinstance(each, str)]


def _options(given: Any, target: object) -> dict[str, Any]:
    """Return `choices` and `gold` as far as they are known; options go by letters, whatever their names in the log."""
    named = given if isinstance(given, dict) else dict(enumerate(given or ()))
    if {"label", "text"} <= named.keys():
        named = dict(zip(named["label"], named["text"], strict=True))
    found: dict[str, Any] = {"choices": list(named.values())} if named else {}
    target = target[0] if isinstance(target, list) and len(target) == 1 else target
    if isinstance(target, str | int | float):
        gold, names = str(target).rpartition("####")[2].strip(), [*map(str, named)]
        found["gold"] = string.ascii_uppercase[names.index(gold)] if gold in names else gold
    return found
