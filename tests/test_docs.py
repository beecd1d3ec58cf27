"""What the documentation says of names, options and formats is what the program says."""

import builtins
import json
import math
import pkgutil
import re
import runpy
from dataclasses import fields
from pathlib import Path

import pytest
import typer

import ice_eval as ice
from ice_eval.analysis.measures import measures
from ice_eval.attributions import attributions
from ice_eval.cli import app
from ice_eval.executors import executors
from ice_eval.interop import formats
from ice_eval.models import SUITE, models
from ice_eval.nulls import nulls
from ice_eval.operators import operators
from ice_eval.report.sentences import FLAGS
from ice_eval.subjects.context import CitationTask
from ice_eval.tasks import STANDARD, HubData, Task, named_task, tasks

ROOT = Path(__file__).parent.parent
PAGES = [
    *("README.md", "CONTRIBUTING.md", "examples/README.md"),
    *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))),
]
SOURCE = ROOT / "src/ice_eval"
GROUPS = {
    f"ice_eval.{each.kind}s" for each in (attributions, executors, formats, measures, models, nulls, operators, tasks)
}
"""Groups of entry points; some are no modules."""
FOREIGN = {"aggregate", "changes", "floor", "replace", "s"}
"""Functions of other packages, and notation."""
_DOTTED = re.compile(r"`((?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*)(?:\([^`]*\))?`")
_CALLED = re.compile(r"`(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)\([^`]*\)`")
_FILE = re.compile(r"`([\w-]+(?:/[\w-]+)+\.py)`")
_ICE = re.compile(r"(?:^|[`$(] ?)ice ([a-z][^\n`]*)", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert ((ROOT / page).parent / target).exists(), f"{page} links to {target}"


@pytest.fixture(scope="module")
def known_options():
    """The words of each command -> its options."""

    def walk(command, words):
        if hasattr(command, "commands"):
            return {k: v for name, each in command.commands.items() for k, v in walk(each, (*words, name)).items()}
        return {words: {flag for option in command.params for flag in option.opts} | {"--help"}}

    return walk(typer.main.get_command(app), ())


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_options_of_a_page_exist(page, known_options):
    text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n", " ")
    for line in _ICE.findall(text):
        words = tuple(line.partition("#")[0].split())
        names = [known for known in known_options if words[: len(known)] == known]
        assert names or words[0] in {known[0] for known in known_options}, f"{page}: no command 'ice {line}'"
        for flag in re.findall(r"(?<=\s)--[a-z][a-z-]*", line.partition("#")[0]):
            assert any(flag in known_options[name] for name in names), f"{page}: no option {flag} of 'ice {line}'"


def in_package(name):
    """Return True if a dotted name, perhaps without `ice_eval.`, is one of the package."""
    full = f"ice_eval.{name.removeprefix('ice.').removeprefix('ice_eval.')}"
    if full in GROUPS:
        return True
    try:
        return pkgutil.resolve_name(full) is not None
    except (ImportError, AttributeError):
        return False


@pytest.mark.parametrize("page", PAGES)
def test_functions_modules_and_files_on_a_page_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    ours = {"ice", "ice_eval", *(module.name for module in pkgutil.iter_modules(ice.__path__))}
    suffixes = {"csv", "html", "json", "jsonl", "md", "parquet", "pdf", "py", "yaml"}
    for name in _DOTTED.findall(text):
        first, last = name.split(".")[0], name.split(".")[-1]
        assert first not in ours or last in suffixes or in_package(name), f"{page}: no {name}"
    sources = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    known = {*re.findall(r"^ *(?:def|class) (\w+)", sources, re.MULTILINE), *dir(builtins), *dir(math), *FOREIGN}
    assert {*_CALLED.findall(text)} - known == set()
    for path in _FILE.findall(text):
        folders = (ROOT, SOURCE.parent, SOURCE, (ROOT / page).parent)
        assert any((folder / path).is_file() for folder in folders), f"{page}: no {path}"


def test_every_estimator_of_the_pages_of_statistics_names_its_function():
    pages = [(ROOT / f"docs/{name}.md").read_text(encoding="utf-8") for name in ("statistics", "shorter-runs")]
    found = []
    for table in re.findall(r"(?:^\|.*\n)+", "\n".join(pages), re.MULTILINE):
        head, _, *rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines()]
        if "function" in head:
            found += [name for row in rows for name in re.findall("`([^`]+)`", row[head.index("function")])]
    assert len(found) > 20
    assert [name for name in found if "." not in name or not in_package(name)] == []


def test_the_page_of_commands_is_what_the_program_says():
    written = runpy.run_path(str(ROOT / "tools/cli_reference.py"))["reference"]()
    assert (ROOT / "docs/cli.md").read_text(encoding="utf-8") == written, "run: python tools/cli_reference.py"


@pytest.mark.parametrize("registry", [attributions, formats, operators, models], ids=lambda registry: registry.kind)
def test_every_registered_name_has_a_line(registry):
    for name, item in registry.items():
        first = (item.__doc__ or "").strip().partition("\n")[0]
        assert first.endswith("."), f"{registry.kind} {name} has no one-line description"


@pytest.fixture(scope="module")
def rows_of_tasks():
    """The rows of the tables of docs/tasks.md, by the names in their first column; a name may stand in two tables."""
    found = {}
    for line in (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8").splitlines():
        for name in re.findall("`([^`]+)`", line.split("|")[1]) if line.startswith("| `") else ():
            found.setdefault(name, []).append(line)
    return found


def test_the_page_of_tasks_has_every_task_and_prompt(rows_of_tasks):
    for name in set(tasks.names()) - {"demo"}:
        task, [line, *prompts] = named_task(name), rows_of_tasks[name]
        if isinstance(task, CitationTask):
            assert "passages" in line
            continue
        if not isinstance(task, Task):
            assert task.data.path in line and task.data.split in line and f"`{task.data.revision[:15]}…`" in line
            continue
        assert task.language in line and all(label in line for label in task.labels)
        assert all(field in line for field in task.template.fields)
        assert re.findall("`([^`]+)`", "".join(prompts))[1:] == ([STANDARD, *task.variants] if task.variants else [])
        if isinstance(task.data, HubData):
            assert f"`{task.data.path}`" in line and task.data.split in line
            assert (f"`{task.data.revision[:15]}…`" if task.data.revision else "not pinned") in line


def test_the_page_of_tasks_has_every_model_of_the_suite(rows_of_tasks):
    for model in SUITE:
        [line] = rows_of_tasks[model.name]
        assert f"{model.parameters:g}B" in line and model.tuning in line
        assert ("| yes |" in line) == model.gated


def test_every_shape_of_json_line_in_the_page_says_the_same():
    page = (ROOT / "docs/bring-your-own.md").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in page.partition("```json\n")[2].partition("\n```")[0].splitlines()]
    task = ice.Task(
        data=ice.Records([{"id": "7", "text": "a gorgeous film"}]),
        prompt="Review: {text}\nSentiment:",
        label_words={"negative": " negative", "positive": " positive"},
    )
    mine = {f"shape {place}": [line] for place, line in enumerate(lines)}
    examples = ice.evaluate("toy", task, attributions=mine, operators=["delete"]).examples()
    assert len(examples) == 8
    assert {tuple(rationale) for rationale in examples["rationale"]} == {(1,)}


def test_every_flag_that_a_summary_can_raise_is_explained():
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/ice_eval").rglob("*.py"))
    raised = set(re.findall(r'yield "([a-z_]+)"', sources)) | set(re.findall(r'flags\.append\("([a-z_]+)"\)', sources))
    assert raised
    assert raised <= set(FLAGS)


def test_every_attribution_and_option_stands_in_the_table_of_attributions():
    text = (ROOT / "docs" / "attributions.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    for name, method in attributions.items():
        [line] = [line for line in lines if f"`{name}`" in line.split("|")[1]]
        assert [each.name for each in fields(method) if each.name not in line.split("|")[3]] == []


def test_python_reference_has_every_public_name():
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\w+", "".join(re.findall(r"^::: .*|^ +members: .*", text, re.MULTILINE))))
    assert set(ice.__all__) <= named
