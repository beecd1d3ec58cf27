"""Packages outside this one bring plug-ins of every kind, found by their entry points alone."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import ice_eval

TEMPLATE = Path(__file__).parents[1] / "examples/plugin"
SOURCE = Path(ice_eval.__file__).parents[1]


def python(*arguments, beside, cwd):
    """Run a fresh interpreter, to which the packages in a folder are installed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(beside), str(SOURCE)])}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cwd, check=False)


def ice(*arguments, beside, cwd):
    return python("-c", "from ice_eval.cli import main; main()", *arguments, beside=beside, cwd=cwd)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A folder that holds the template, installed from the wheel that pip builds."""
    pytest.importorskip("hatchling", reason="the template is built without a network, by the hatchling that is here")
    folder = tmp_path_factory.mktemp("installed")
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet"]
    command = [sys.executable, "-m", "pip", "install", *offline, "--target", str(folder), str(TEMPLATE)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture
def package(tmp_path):
    """The code of a package's only module, and its entry points -> the folder in which it is installed."""

    def build(name, code, groups):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(code), encoding="utf-8")
        metadata = tmp_path / f"{name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
        sections = "".join(f"[ice_eval.{group}]\n{entry}\n" for group, entry in groups.items())
        (metadata / "entry_points.txt").write_text(sections, encoding="utf-8")
        return tmp_path

    return build


def test_the_three_plug_ins_of_the_template_are_listed_and_a_run_uses_and_records_them(template, tmp_path):
    done = ice("list", "operators", "--json", beside=template, cwd=tmp_path)
    assert json.loads(done.stdout)["mask-any"].startswith("Units that are not kept become mask tokens, or else")
    names = ["--task", "help-desk", "--attributions", "gradient-norm:order=2,random", "--operators", "delete,mask-any"]
    done = ice("run", "--model", "toy", *names, "--out", "run", "--json", beside=template, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = json.loads((tmp_path / "run/summary.json").read_text(encoding="utf-8"))["configurations"]
    rates = {(line["attribution"], line["operator"]): line["win_rate"] for line in lines}
    assert rates["gradient-norm:order=2", "mask-any"] == 1 and 0.3 < rates["random", "mask-any"] < 0.7
    manifest = json.loads((tmp_path / "run/manifest.json").read_text(encoding="utf-8"))
    assert manifest["versions"]["ice-eval-example"] == "0.1.0"
    assert manifest["attributions"]["gradient-norm:order=2"] == {"method": "gradient-norm", "order": 2}


@pytest.mark.slow
def test_the_template_passes_its_own_tests(template):
    done = python("-m", "pytest", "-q", "-p", "no:cacheprovider", beside=template, cwd=TEMPLATE)
    assert done.returncode == 0, done.stdout


EVERY_KIND = """
    from ice_eval.analysis.measures import Found, Measure, measure
    from ice_eval.attributions import attribution
    from ice_eval.attributions.controls import LongestWords
    from ice_eval.executors import Local, executor
    from ice_eval.interop import Format, explanation_format
    from ice_eval.models import model
    from ice_eval.models.toy import Toy
    from ice_eval.nulls import null
    from ice_eval.nulls.strata import Position
    from ice_eval.operators import operator
    from ice_eval.operators.remove import Delete
    from ice_eval.tasks import task
    from ice_eval.tasks.suite import demo

    @measure("mine")
    class Silent(Measure):
        needs = "nothing"

        def of(self, folder):
            return Found(())

    @explanation_format("mine")
    class Unread(Format):
        def reads(self, source):
            return False

        def explanations(self, source):
            return iter(())

    attribution("mine")(type("Another", (LongestWords,), {}))
    executor("mine")(type("Another", (Local,), {}))
    null("mine")(type("Another", (Position,), {}))
    operator("mine")(type("Another", (Delete,), {}))
    model("mine")(lambda how: Toy())
    task("mine")(demo)
"""
KINDS = ["attributions", "executors", "formats", "measures", "models", "nulls", "operators", "tasks"]


def test_every_kind_of_plug_in_may_come_from_another_package(package, tmp_path):
    beside = package("mine", EVERY_KIND, dict.fromkeys(KINDS, "mine = mine"))
    code = f"""
        import ice_eval.api, ice_eval.analysis.measures, ice_eval.subjects.chain
        from ice_eval._registry import Registry
        import gc
        known = {{each.kind + "s": each for each in gc.get_objects() if isinstance(each, Registry)}}
        assert sorted(known) == {KINDS}, sorted(known)
        for registry in known.values():
            assert "mine" in registry, registry.kind
        import ice_eval
        mine = dict(attributions="mine", operators="mine", nulls=["size", "mine"], n=10, m=5)
        print(*ice_eval.evaluate("mine", "mine", executor="mine", **mine).summary()["null"])
    """
    done = python("-c", textwrap.dedent(code), beside=beside, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["size", "mine"]


def test_the_page_on_plug_ins_has_a_line_for_every_kind():
    page = (TEMPLATE.parents[1] / "docs/extending/index.md").read_text(encoding="utf-8")
    assert [kind for kind in KINDS if f"| `ice_eval.{kind}` | `ice_eval." not in page] == []


def test_a_plug_in_that_clashes_ends_a_command_with_one_line_that_says_what_to_do(package, tmp_path):
    clash = """
        from ice_eval.operators import operator
        from ice_eval.operators.remove import Mask

        @operator("delete")
        class Delete(Mask):
            pass
    """
    beside = package("clash", clash, {"operators": "delete = clash"})
    done = ice("list", "operators", beside=beside, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "ice: the operator plug-in 'delete' (clash) of the package clash 1.0 cannot be loaded: two operators are named "
        "'delete' (in ice_eval.operators.remove and clash); rename one of them. Fix or uninstall the package.\n"
    )
