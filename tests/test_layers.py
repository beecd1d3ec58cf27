import ast
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ice_eval

ROOT = Path(ice_eval.__file__).parent

LAYERS = [
    {"choices", "records", "errors", "_registry", "seeding", "files"},
    {"tasks", "operators", "rationales", "nulls", "stats", "subjects", "words", "servers"},
    {"models", "boundaries", "encoding", "interop", "table"},
    {"scoring", "settings"},
    {"attributions", "executors", "results"},
    {"pipeline", "analysis", "translation"},
    {"report", "subjects.chain", "subjects.context"},
    {"api", "bench", "selftest", "f_fidelity", "view", "reproduce"},
    {"__main__", "cli"},
]
LAYER_OF = {part: layer for layer, parts in enumerate(LAYERS) for part in parts}
SIDEWAYS = {
    ("__main__", "cli"),
    ("reproduce", "bench"),  # the paper's tables are made of grids
    ("bench", "api"),  # a run of a grid is an evaluation like any other
    ("files", "errors"),
    ("_registry", "errors"),
    ("records", "choices"),  # the words that settings may hold load nothing
    ("encoding", "boundaries"),  # tokens first, then their units
    ("models", "encoding"),
    ("nulls", "rationales"),  # the random order of sets is the same for sets of one size and for sets of one class
    ("operators", "rationales"),  # the random order of shuffled steps is that of random sets
    ("nulls", "words"),  # which units are pieces of one word
    ("subjects", "words"),  # where characters and words begin
}
"""Imports between parts of one layer: each is needed, and none has a way back."""
FACADE = "ice_eval"
"""The package itself: it offers the public names of every layer, and others take no more than its version from it."""


def part_of(module):
    """`ice_eval.models.toy` -> `models`; sub-packages with a layer of their own keep both names."""
    names = module.split(".")[1:]
    own = ".".join(names[:2])
    return own if own in LAYER_OF else names[0] if names else FACADE


def is_module(module, root=ROOT):
    path = root.joinpath(*module.split(".")[1:])
    return path.is_dir() or path.with_suffix(".py").is_file()


def imports(source, root=ROOT):
    """Every part of the package that a file imports, at its top, in a function or by a literal name, and where."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            # `from ice_eval import stats` takes a module, `from ice_eval import __version__` a name of the package.
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if node.module == "ice_eval" and is_module(name, root) else node.module for name in whole]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names = [value.value for value in node.args[:1] if isinstance(value, ast.Constant)]
        else:
            continue
        yield from ((part_of(name), node.lineno) for name in names if name and name.split(".")[0] == "ice_eval")


def allowed(importer, imported):
    if importer in (imported, FACADE) or imported == FACADE:
        return True
    return LAYER_OF[imported] < LAYER_OF[importer] or (importer, imported) in SIDEWAYS


def files(root=ROOT):
    """Every source file, and the part that it belongs to."""
    for path in sorted(root.rglob("*.py")):
        names = path.relative_to(root).with_suffix("").parts
        yield path, FACADE if names == ("__init__",) else part_of(".".join(["ice_eval", *names]))


def upward(root=ROOT):
    """Imports that point up or sideways, as `file:line imports part`."""
    return [
        f"{path.relative_to(root)}:{line} imports {imported}"
        for path, part in files(root)
        for imported, line in imports(path.read_text(encoding="utf-8"), root)
        if not allowed(part, imported)
    ]


def test_every_part_has_a_layer():
    assert {part for _, part in files()} - {FACADE} <= set(LAYER_OF)


def test_the_page_for_contributors_shows_the_layers():
    page = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = {int(layer): parts.split(" · ") for layer, parts in re.findall(r"^(\d)  (\w.*)$", page, re.MULTILINE)}
    assert shown == {layer: sorted(parts) for layer, parts in enumerate(LAYERS)}


def test_imports_point_down():
    assert upward() == []


def test_every_sideways_import_is_still_needed():
    found = {
        (part, imported)
        for path, part in files()
        for imported, _ in imports(path.read_text(encoding="utf-8"))
        if FACADE not in (part, imported) and part != imported and LAYER_OF[part] == LAYER_OF[imported]
    }
    assert found == SIDEWAYS


def test_only_the_version_is_taken_from_the_package_itself():
    for path, part in files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if part != FACADE and isinstance(node, ast.ImportFrom) and node.module == "ice_eval":
                names = {alias.name for alias in node.names if not is_module(f"ice_eval.{alias.name}")}
                assert names <= {"__version__"}, path.name


@pytest.mark.parametrize(
    ("file", "line", "found"),
    [
        ("records.py", "import ice_eval.cli", "records.py:1 imports cli"),
        ("scoring.py", "from ice_eval.pipeline import run", "scoring.py:1 imports pipeline"),
        ("scoring.py", "from ice_eval import api", "scoring.py:1 imports api"),
        ("encoding.py", "from ice_eval.models import Model", "encoding.py:1 imports models"),
        (
            "results/folder.py",
            "def f():\n    from ice_eval.attributions import Lens",
            "results/folder.py:2 imports attri",
        ),
        ("stats/fdr.py", "import importlib\nimportlib.import_module('ice_eval.tasks')", "stats/fdr.py:2 imports tasks"),
        ("tasks/sst2.py", "import os\nif os:\n    import numpy, ice_eval.scoring", "tasks/sst2.py:3 imports scoring"),
    ],
)
def test_an_import_that_points_up_would_be_found(tmp_path, file, line, found):
    for part in LAYER_OF:
        (tmp_path / part).mkdir()
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(line, encoding="utf-8")
    [message] = upward(tmp_path)
    assert message.startswith(found)


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("cli/run.py", "from ice_eval.api import evaluate"),
        ("models/toy.py", "from ice_eval.encoding import Tokens"),
        ("stats/fdr.py", "from ice_eval.stats._values import checked"),
        ("report/html.py", "from ice_eval import __version__"),
        ("records.py", "import numpy"),
    ],
)
def test_an_import_that_points_down_is_no_fault(tmp_path, file, line):
    for part in LAYER_OF:
        (tmp_path / part).mkdir()
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(line, encoding="utf-8")
    assert upward(tmp_path) == []


PACKAGES = [
    "ice_eval",
    "ice_eval.subjects.chain",
    *(f"ice_eval.{m.name}" for m in pkgutil.iter_modules(ice_eval.__path__) if m.ispkg),
]


@pytest.mark.parametrize("package", [package for package in PACKAGES if package != "ice_eval.stats"])  # has its own
def test_public_names_are_declared_sorted_and_there(package):
    module = importlib.import_module(package)
    # Constants, then classes, then functions.
    assert sorted(set(module.__all__), key=_kind_and_name) == list(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_that_a_package_gathers_is_public(package):
    module = importlib.import_module(package)
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    gathered = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{package}.")
        for alias in node.names
    }
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert {name for name in gathered | defined if not name.startswith("_")} <= set(module.__all__)


def _kind_and_name(name):
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


HEAVY = ("torch", "transformers", "datasets")
REPORT = f"import sys; print(*(name for name in {HEAVY!r} if name in sys.modules))"
EVALUATION = (
    "import ice_eval; ice_eval.evaluate('toy', 'demo', n=3, m=5).report()",
    "from ice_eval.cli import app; app(['list', 'models'], standalone_mode=False)",
)


def heavy_after(*statements, path=()):
    """Heavy packages that a fresh interpreter holds after the statements."""
    code = "\n".join([*statements, REPORT])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, path), str(ROOT.parent)])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()


def test_neither_the_package_nor_its_command_nor_a_toy_evaluation_loads_torch():
    assert heavy_after("import ice_eval", "import ice_eval.cli", *EVALUATION) == []


def test_torch_would_be_noticed_if_it_were_loaded(tmp_path):
    (tmp_path / "torch.py").write_text("", encoding="utf-8")
    assert heavy_after("import ice_eval, torch", path=[tmp_path]) == ["torch"]
