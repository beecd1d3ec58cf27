"""The origin of a run's numbers, the command that reproduces them, and a document of both for auditors."""

import contextlib
import importlib.resources
import itertools
import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ice_eval import __version__
from ice_eval.attributions import method_of
from ice_eval.choices import TableColumns
from ice_eval.errors import ConfigError, require, without_controls
from ice_eval.files import as_text, write_asked
from ice_eval.pipeline import task_identity
from ice_eval.report.colours import FILLS, INKS
from ice_eval.report.conclusion import conclude
from ice_eval.report.sentences import SCOPE, Note, lead, notes
from ice_eval.report.tables import run_names, tables
from ice_eval.results import Manifest, RunFolder, RunSettings
from ice_eval.results.outcomes import ALL
from ice_eval.results.records import ChainInfo, ServerInfo
from ice_eval.results.summary import simultaneous as with_simultaneous
from ice_eval.results.view import is_open
from ice_eval.settings import RUN, SETTINGS, ChainFields, RunConfig, chain_fields, run_config
from ice_eval.table import Table, unbroken
from ice_eval.tasks import FileData, NoData, Task, adhoc_task, in_chat, load_task, named_task, relabelled

CITATION = (
    "Basu, A., & Chakraborty, P. (2026). ICE: Intervention-Consistent Explanation Evaluation with Statistical "
    "Grounding for LLMs. arXiv preprint arXiv:2603.18579."
)
PROMPTS = ("worked examples", "prompt", "prompt for the answer")
"""Names of provenance that are parts of a prompt."""
_WHERE_KNOWN = ("remarks", "server", "worked examples", "weights", "fingerprints of answers")
"""Names of provenance that are left out if there is nothing to say."""
_OF_STEPS = ("attributions", "operators", "directions", "k", "n")
"""Settings of every run that apply to runs about chains."""


def provenance(manifest: Manifest) -> list[tuple[str, str]]:
    """Return names and values, in the order that suits an auditor."""
    rows = _of_texts(manifest) if manifest.chains is None else _of_chains(manifest, manifest.chains)
    rows += [
        ("versions", ", ".join(f"{name} {value}" for name, value in manifest.versions.items())),
        ("time", f"{manifest.started} to {manifest.finished or '–'}"),
        ("remarks", "\n".join(manifest.messages)),
    ]
    return [(name, value) for name, value in rows if value or name not in _WHERE_KNOWN]


def _of_texts(manifest: Manifest) -> list[tuple[str, str]]:
    config, identity, cost, spent = manifest.config, manifest.identity, manifest.cost, "–"
    stored = f", loaded in {identity['load_in']}" if identity.get("load_in") is not None else ""
    most = "at most " if config.adaptive == "examples" else ""
    examples, scored = "examples", ("labels", ", ".join(manifest.labels))
    if config.subject == "context":
        scale = "mean log-probability of the tokens of each claim"
        scale = scale if manifest.label_scoring == "given" else "1 if a reply states the claim, else 0"
        examples, scored = "claims", ("scores", scale)
    if cost is not None:
        spent = f"{cost.rows} rows, {cost.forwards} forward passes, {cost.tokens} tokens, {cost.seconds:.0f} s"
    return [
        ("model", f"{config.model}, {identity['dtype']}{stored} on {manifest.device}"),
        ("weights", f"fingerprint {identity['weights']}{_at(manifest.model_commit)}"),
        ("server", "" if manifest.server is None else _server(manifest.server)),
        ("data", f"{_origin(manifest)}, {manifest.data.examples} {examples}, sha256 {identity['data']}"),
        ("worked examples", "\n\n".join(manifest.worked)),
        ("prompt", manifest.prompt if manifest.classifier_text is None else manifest.classifier_text),
        scored,
        ("methods", _methods(manifest)),
        ("random sets", f"{most}m = {config.m}, seed = {config.seed}"),
        ("configuration", f"{_settings(config)}; hash {manifest.config_hash}"),
        ("cost", spent),
    ]


def _at(commit: str | None) -> str:
    return "" if commit is None else f", commit {commit}"


def _origin(manifest: Manifest) -> str:
    return f"{manifest.data.origin}{_at(manifest.data.commit)}"


def _of_chains(manifest: Manifest, about: ChainInfo) -> list[tuple[str, str]]:
    """Return those of a run about chains, with the servers that answered and the replies."""
    config = manifest.config
    served = ", ".join(name for name in about.served_models if name != config.model.removeprefix("openai:"))
    by = f"; answers came from {served}" if served else ""
    urls = about.base_urls or ((about.base_url,) if about.base_url else ())
    read, written = (0, 0) if about.tokens is None else (about.tokens.prompt, about.tokens.completion)
    return [
        ("model", f"{config.model}, {manifest.device}{by}"),
        ("server", _plain(urls) if urls else ""),
        ("weights", about.weights or ""),
        ("fingerprints of answers", " + ".join(about.fingerprints)),
        ("data", f"{_origin(manifest)}, {manifest.data.examples} problems, sha256 {manifest.identity['data']}"),
        ("prompt for the answer", manifest.prompt),
        ("worked examples", "\n\n".join(manifest.worked)),
        ("methods", _methods(manifest)),
        ("random sets", f"m = {config.m} of each size, seed = {config.seed}"),
        ("configuration", f"{_settings(config)}; hash {manifest.config_hash}"),
        ("replies", _counts(about.responses)),
        ("replies to rows", _counts(about.rows_read)),
        ("cost", f"{about.n_charged:,} requests, {read:,} tokens read, {written:,} written"),
    ]


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "–"


def _server(server: ServerInfo) -> str:
    """Return the requests to a server, and the rows that it left without a score."""
    labels = ", ".join(" + ".join(map(repr, tokens)) for tokens in server.label_tokens)
    lost, where = server.rows_without_score, _plain(server.base_urls or (server.base_url,))
    return (
        f"{where}, prompts as {server.prompts}, {server.top_logprobs} log-probabilities per row, "
        f"labels as {labels}{f'; {lost} rows without a score' if lost else ''}"
    )


def _methods(manifest: Manifest) -> str:
    """Return the method and fields behind each name of an attribution."""
    found = []
    for name, settings in manifest.attributions.items():
        values = ", ".join(f"{field}={value}" for field, value in settings.items() if field != "method")
        own = "" if name == settings["method"] else f"{name} = "
        found.append(f"{own}{settings['method']}({values})")
    return ", ".join(found) or "–"


def _settings(config: RunSettings) -> str:
    """Return all settings that apply; those of texts do not apply to steps."""
    shown = vars(config)
    if config.chain is not None:
        shown = {**{name: shown[name] for name in _OF_STEPS}, **vars(config.chain)}
    left_out = {"model", "task", "m", "seed", "chain"}
    return ", ".join(
        f"{name.replace('_', '-')} {_plain(value)}" for name, value in shown.items() if name not in left_out
    )


def _plain(value: object) -> str:
    if isinstance(value, tuple | list):
        return " + ".join(map(str, value)) or "–"
    return "–" if value is None else str(value)


def command(manifest: Manifest) -> str | None:
    """Return the `ice run` that scores the same rows, a flag on each line; None for a task that no flags make."""
    made = _answer_flags if manifest.config.subject == "context" else _task_flags
    task = (made if manifest.chains is None else _problem_flags)(manifest)
    if task is None:
        return None
    config, identity, served = manifest.config, manifest.identity, manifest.server or manifest.chains
    methods, supplied = list[str](), list[str]()  # those without a registered name came in files or from Python
    for name in config.attributions:
        try:
            method_of(name)
            methods.append(name)
        except ConfigError:
            supplied.append(name)
    # The m that a pilot chose is in the configuration; the requested one is in the identity.
    most = identity.get("m", config.m)
    flags = {"model": config.model, **task, "attributions": methods or ["none"], "n": config.n, "m": most}
    flags |= {name: value for name, value in _chosen(config, manifest.language).items() if name not in flags}
    loaded: dict[str, object] = {name: identity.get(name) for name in ("dtype", "load_in")}
    if served is not None and served.base_url is not None:
        loaded = {name: getattr(served, name, None) for name in ("base_url", "tokenizer", "extra_body")}
    flags |= {name: value for name, value in loaded.items() if value is not None}
    pairs = list[tuple[str, ...]]()
    for name, value in flags.items():
        text = ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
        pairs.append((SETTINGS[name].option,) if value is True else (SETTINGS[name].option, text))
    pairs += [("--attribution-file", f"{name}=FILE") for name in supplied]
    pairs += [(f"--{name.replace('_', '-')}",) for name in ("chat", "whole_answer") if identity.get(name)]
    pairs += [("--system", str(identity["system"]))] if identity.get("system") else []
    return " \\\n  ".join(["ice run", *map(shlex.join, pairs)])


def _chosen(config: RunSettings, language: str) -> dict[str, object]:
    """Return the settings that differ from their defaults; those that the defaults of others depend on come last."""

    def unlike(usual: RunConfig, names: Iterable[str]) -> dict[str, Any]:
        return {n: getattr(config, n) for n in names if getattr(config, n) not in (None, getattr(usual, n))}

    if config.chain is not None:
        operators = (*(name for name in config.operators if "@" not in name), *config.chain.arrangements)
        names = [each.name for each in RUN if "chain" in each.subjects and each.name != "operators"]
        chosen = unlike(run_config({}, "chain"), names)  # poses have a setting of their own
        own = {each.name: getattr(config.chain, each.name) for each in fields(ChainFields)}
        usual = chain_fields({})
        chosen |= {name: "server" if value is None else value for name, value in own.items() if value != usual[name]}
        return chosen | ({"operators": operators} if operators != ("delete",) else {})
    first = ("adaptive", "protocol")
    implying = unlike(RunConfig(), first)
    others = [each.name for each in fields(RunConfig) if each.name not in first]
    return unlike(run_config(implying, config.subject, task=config.task, language=language), others) | implying


def _task_flags(manifest: Manifest) -> dict[str, Any] | None:
    """Return `--task`, and `--data`, `--prompt`, `--labels` and `--explain` where they are not the task's own."""
    # None where these would be another task: a task file or Python code may define what no flag can.
    flags = None
    with contextlib.suppress(ConfigError):
        flags = _flags_from(load_task(manifest.config.task), manifest)
    return flags or _flags_from(None, manifest)  # a file of data may have the name of a known task


def _flags_from(known: Task | None, manifest: Manifest) -> dict[str, Any] | None:
    """Return the flags that make the task of a run from a known one, or from its data alone; None if none do."""
    name, origin, labels, prompt = manifest.config.task, manifest.data.origin, list(manifest.labels), manifest.prompt
    if not origin.endswith((".jsonl", ".csv")) and (known is None or origin != known.data.origin):
        return None
    flags: dict[str, Any] = {} if known is None else {"task": name}
    if known is None or origin != known.data.origin:
        flags["data"] = origin
    columns = manifest.data.columns
    if any("," in theirs for theirs in columns.values()):  # which no flag can write
        return None
    if columns:
        flags["columns"] = [f"{ours}={theirs}" for ours, theirs in columns.items()]
    if known is None or prompt != known.prompt:
        flags["prompt"] = prompt.replace("\n", "\\n").replace("\t", "\\t")
    if known is None or labels != list(known.label_words):
        flags["labels"] = labels
    try:
        # The task that the command line makes of these flags, which may explain other fields.
        if known is None:
            made = adhoc_task(FileData(Path(origin)), prompt=prompt, labels=labels, name=Path(origin).stem)
        else:
            made = replace(known, prompt=prompt, classifier_prompt=prompt) if "prompt" in flags else known
            made = relabelled(made, labels) if "labels" in flags else made
        if manifest.explained != tuple(made.explained):
            flags["explain"] = manifest.explained
            made = replace(made, explain=manifest.explained)
    except ConfigError:
        return None
    found = task_identity(made)
    same = all(found[field] == manifest.identity.get(field) for field in ("task", "task_version", "prompt", "lexicon"))
    return flags if same else None


def stored_task(manifest: Manifest) -> Task | None:
    """Return the task of a run about texts, made again from its manifest; None if its file or Python code had more.

    Prompt, label words, worked examples and lexicon are those of the run, by their hash. Its data are not read.
    """
    identity, system = manifest.identity, manifest.identity.get("system")
    own: dict[str, Any] = {"explain": manifest.explained or None, "name": manifest.config.task}
    made = list[Task]()
    with contextlib.suppress(ConfigError):  # a name of a file or of Python code is none of a known task
        known = named_task(manifest.config.task)
        made += [replace(relabelled(known, manifest.labels), **own), known] if isinstance(known, Task) else []
    with contextlib.suppress(ConfigError):
        made.append(adhoc_task(NoData(), prompt=manifest.prompt, labels=manifest.labels, **own))
        made.append(replace(made[-1], classifier_prompt=None))
    for each in made:
        found = in_chat(each, bool(identity.get("chat")), None if system is None else str(system))
        if all(task_identity(found)[field] == identity.get(field) for field in ("prompt", "lexicon")):
            return found
    return None


def _answer_flags(manifest: Manifest) -> dict[str, Any] | None:
    """Return `--task` and `--data` of a run about cited answers; None if they came from Python."""
    name, origin = manifest.config.task, manifest.data.origin
    try:
        known = named_task(name)
    except ConfigError:
        return None
    prompt = getattr(known, "prompt", "").replace("{passages}", getattr(known, "passage", ""))
    if prompt != manifest.prompt or Path(origin).suffix.lower() not in {".jsonl", ".json"}:
        return None
    return {"task": name, "data": origin}


def _problem_flags(manifest: Manifest) -> dict[str, Any] | None:
    """Return `--task`, `--data` or `--responses` of a run about chains; None if they came from Python."""
    name, origin, chain = manifest.config.task, manifest.data.origin, manifest.config.chain
    known, flags = None, dict[str, Any]()
    with contextlib.suppress(ConfigError):
        known, flags = named_task(name), {"task": name}
    if chain is not None and chain.example is not None:
        flags["worked_example"] = True
    given = Path(origin).suffix.lower() in {".jsonl", ".csv"}
    if manifest.chains is not None and manifest.chains.were_given:
        return {**flags, "responses": origin} if given else None
    if known is None or (not given and origin != known.data.origin):
        return None
    return {**flags, "data": origin} if given else flags


# --- a document for auditors ----------------------------------------------------------------------------------------

_NAMED = 30
"""Ids of excluded examples that are printed for each reason."""


def write_audit(
    folders: Sequence[RunFolder], path: Path, *, simultaneous: bool = False, columns: TableColumns | None = None
) -> Path:
    """Write a document on each run into one PDF.

    With `simultaneous`, intervals and verdicts are those that hold for all configurations of a run at once. `columns`
    are those of `summary_table`.

    Raises:
        ConfigError: The file cannot be written.
        MissingExtraError: typst is not installed.
    """
    typst = require("typst", install="ice-eval[pdf]", purpose="to write a PDF")
    names = list(map(" on ".join, run_names(folders)))
    settings: dict[str, Any] = {"simultaneous": simultaneous, "columns": columns}
    runs = [_run(folder, name, **settings) for folder, name in zip(folders, names, strict=True)]
    # Texts are data: the template shows them and never reads them as markup.
    content = {"title": ", ".join(dict.fromkeys(names)), "runs": runs, "version": __version__, "citation": CITATION}
    finished = max(_seconds(folder.manifest()) for folder in folders)
    pdf = typst.compile(
        (importlib.resources.files("ice_eval.report") / "templates" / "audit.typ").read_bytes(),
        sys_inputs={"data": json.dumps(_clean(content), ensure_ascii=False)},
        timestamp=finished,  # the same run gives the same file
    )
    write_asked(path, pdf)
    return path


def _seconds(manifest: Manifest) -> int:
    """Return the end of a run, or its start, in seconds since 1970; 0 where somebody changed both to no time."""
    for time in (manifest.finished, manifest.started):
        with contextlib.suppress(ValueError, OverflowError, TypeError):
            return max(int(datetime.fromisoformat(time or "").timestamp()), 0)
    return 0


def _run(folder: RunFolder, name: str, *, simultaneous: bool, columns: TableColumns | None) -> dict[str, Any]:
    summary, manifest = folder.summary(), folder.manifest()
    summary = with_simultaneous(summary) if simultaneous else summary
    found = conclude(summary, manifest)
    said = (note.plain if isinstance(note, Note) else note for note in notes(summary, columns=columns))
    return {
        "name": name,
        "hash": manifest.config_hash,
        "folder": as_text(Path(folder.path.name)),
        "sentences": found.sentences,
        "problems": found.problems,
        "facts": [fact for fact in provenance(manifest) if fact[0] not in PROMPTS],
        "prompts": _prompts(manifest),
        "exclusions": list(_exclusions(folder)),
        "examples": manifest.data.examples,
        "tables": [_table(table) for table in tables([summary], simultaneous=simultaneous, columns=columns)],
        "lead": lead([summary], simultaneous=simultaneous).replace("`", "") if summary.configurations else "",
        "limits": [SCOPE, found.silence, *(note.replace("`", "") for note in said)],
        "command": command(manifest) or "",
    }


def _prompts(manifest: Manifest) -> list[tuple[str, str]]:
    """Return everything that the model reads beside the data, with a name each."""
    system = manifest.identity.get("system")
    read = manifest.prompt if manifest.classifier_text is None else manifest.classifier_text
    has_labels = manifest.chains is None and manifest.target_text is None and not is_open(manifest.labels)
    labels = ", ".join(map(repr, manifest.labels)) if has_labels else ""
    worked = ((f"worked example {number}", text) for number, text in enumerate(manifest.worked, start=1))
    parts = [("system turn", str(system) if system else ""), *worked, ("prompt", read), ("labels", labels)]
    return [(name, text) for name, text in parts if text]


def _exclusions(folder: RunFolder) -> Iterator[tuple[str, int, str]]:
    """Yield each reason why examples have no result, their number, and their ids."""
    reasons: dict[str, dict[str, None]] = {}
    failed: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}
    for row in (row for part in folder.parts() for row in folder.inputs(part)):
        if row.skip_reason is not None:
            reasons.setdefault(row.skip_reason, {})[row.example_id] = None
    skipped = {each for ids in reasons.values() for each in ids}
    for line in folder.examples():
        if line.error is not None and line.operator != ALL and line.example_id not in skipped:
            methods, ids = failed.setdefault((line.error, line.operator), ({}, {}))
            methods[line.attribution] = ids[line.example_id] = None
    reasons |= {f"{why} ({', '.join(names)} under {operator})": ids for (why, operator), (names, ids) in failed.items()}
    for reason, ids in reasons.items():
        more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
        yield reason, len(ids), ", ".join(list(ids)[:_NAMED]) + more


def _table(table: Table) -> dict[str, Any]:
    words = itertools.chain.from_iterable(table.words) if table.words else itertools.repeat(None)
    texts = itertools.chain.from_iterable(table.rows)
    # The words are as many as the cells, or endless.
    cells = [{"text": text, "fill": FILLS.get(word), "ink": INKS.get(word)} for text, word in zip(texts, words)]  # noqa: B905
    return {"title": table.title, "header": table.header, "numbers": table.are_numbers, "cells": cells}


def _clean(content: Any, *, is_text: bool = False) -> Any:
    if isinstance(content, str):
        return unbroken(without_controls(content, is_text=is_text))
    if isinstance(content, dict):
        return {name: _clean(each, is_text=name == "prompts") for name, each in content.items()}
    return [_clean(each, is_text=is_text) for each in content] if isinstance(content, list | tuple) else content
