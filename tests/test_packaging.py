"""What people install holds all that it needs, and starts at once."""

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import ice_eval

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HEAVY = {
    "altair", "datasets", "jinja2", "numpy", "openai", "pandas", "pyarrow", "scipy", "sklearn", "torch", "transformers",
}  # fmt: skip
CACHES = {"__pycache__", ".hypothesis", ".pytest_cache"}


def run(*command, path, cwd=None, **environment):
    """Run a command that imports packages from a folder first."""
    return subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(path), **environment},
        cwd=cwd,
        check=False,
    )


def files(*folders):
    """Files below folders of the project, by their names from its root on."""
    found = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    return {path.relative_to(ROOT).as_posix() for path in found if not CACHES & set(path.parts)}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the source distribution, and the wheel that was built from it."""
    pytest.importorskip("build", reason="distributions are made by build")
    pytest.importorskip("hatchling", reason="they are made without a network, by the hatchling that is here")
    out = tmp_path_factory.mktemp("dist")
    done = run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, path="")
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def test_the_wheel_holds_every_file_of_the_package(built):
    [wheel] = built.glob("*.whl")
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {f"src/{name}" for name in inside} == files("src/ice_eval")
    assert {"ice_eval/py.typed", "ice_eval/tasks/data/demo.jsonl", "ice_eval/results/schemas/manifest.json"} <= inside


def test_the_source_distribution_holds_what_its_tests_read(built):
    [archive] = built.glob("*.tar.gz")
    with tarfile.open(archive) as content:
        inside = {name.partition("/")[2] for name in content.getnames()}
    assert files("src", "tests", "docs", "examples", "benchmarks", "tools") <= inside
    others = "pyproject.toml Makefile constraints.txt mkdocs.yml README.md LICENSE CITATION.cff CHANGELOG.md"
    assert set(others.split()) <= inside


@pytest.mark.slow
def test_the_installed_wheel_runs_an_evaluation_by_itself(built, tmp_path):
    [wheel] = built.glob("*.whl")
    target = tmp_path / "installed"
    offline = ["--no-deps", "--no-index", "--disable-pip-version-check", "--quiet", "--target", target]
    assert run(sys.executable, "-m", "pip", "install", *offline, wheel, path="").returncode == 0
    ice = target / "bin/ice"
    assert run(ice, "--version", path=target, cwd=tmp_path).stdout.split()[-1] == PROJECT["version"]
    assert "sst2" in run(ice, "list", "tasks", path=target, cwd=tmp_path).stdout
    flags = ["--task", "demo", "--n", "5", "--m", "5", "--operators", "delete", "--out", "run"]
    done = run(ice, "run", "--model", "toy", *flags, path=target, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run/report.html").is_file()


def test_the_package_runs_as_a_module_under_the_name_of_the_command():
    done = run(sys.executable, "-m", "ice_eval", "--help", path=ROOT / "src")
    assert done.returncode == 0 and "Usage: ice [OPTIONS] COMMAND" in done.stdout, done.stderr


def test_the_version_is_said_once():
    assert PROJECT["version"] == ice_eval.__version__


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["--version"]], ids=" ".join)
def test_help_loads_nothing_heavy(arguments):
    code = (
        "import sys; from ice_eval.cli import app\n"
        f"try: app({arguments}, prog_name='ice')\n"
        f"except SystemExit: print(*sorted({HEAVY} & set(sys.modules)))"
    )
    done = run(sys.executable, "-c", code, path=ROOT / "src")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "", "loaded, though nothing is to be computed"


def test_shells_complete_commands_and_options():
    command = [sys.executable, "-c", "from ice_eval.cli import main; main()"]
    chosen = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    shown = run(*command, "--show-completion", "bash", path=ROOT / "src", **chosen).stdout
    assert "_ICE_COMPLETE=complete_bash" in shown
    for words, wanted in [("ice res", "rescore"), ("ice run --attribution-f", "--attribution-file")]:
        asked = {"_ICE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        assert run(*command, path=ROOT / "src", **asked).stdout.split() == [wanted]
