"""The audit of dependencies finds what it is there to find."""

import importlib.metadata
from email.message import Message

import pytest
from tools import audit

PYPROJECT = """
[project]
requires-python = ">=3.11"
dependencies = ["mine>=1", "idle"]
[project.optional-dependencies]
more = ["extra"]
"""


@pytest.fixture
def project(tmp_path):
    """Source and pins -> a project."""

    def build(source="", pins=""):
        (tmp_path / "src" / "ice_eval").mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / "ice_eval" / "x.py").write_text(source)
        (tmp_path / "pyproject.toml").write_text(PYPROJECT)
        (tmp_path / "constraints.txt").write_text(f"# pins\n{pins}")
        return audit.Project(tmp_path)

    return build


class Package:
    """An installed distribution."""

    def __init__(self, version="1.0", requires=(), **metadata):
        self.version, self.requires, self.metadata = version, list(requires), Message()
        for name, value in metadata.items():
            self.metadata[name.replace("_", "-")] = value


@pytest.fixture
def shelf(monkeypatch):
    """Name -> package: what is installed."""
    found = {"mine": Package(License_Expression="MIT"), "idle": Package(License="BSD")}

    def distribution(name):
        if name not in found:
            raise importlib.metadata.PackageNotFoundError(name)
        return found[name]

    monkeypatch.setattr(importlib.metadata, "distribution", distribution)
    return found


PINS = "mine==1.0\nidle==1.0\n"


def test_a_pinned_version_that_the_oldest_python_cannot_install_is_named(project, shelf):
    shelf["mine"] = Package(License_Expression="MIT", Requires_Python=">=3.11.5")
    shelf["idle"] = Package(License="BSD", Requires_Python=">=3.9,<4")
    [problem] = audit.problems_of_python(project(pins=PINS + "elsewhere==2.0\n"))
    assert problem == "mine 1.0 asks for Python >=3.11.5, and 3.11 is promised"


def test_allowed_licences_and_pinned_versions_are_no_problem(project, shelf):
    assert list(audit.problems_of_packages(project(pins=PINS))) == []


@pytest.mark.parametrize(
    ("package", "problem"),
    [
        (Package(License_Expression="GPL-3.0-only"), "its licence is GPL-3.0-only, which is not on the list"),
        (Package(License_Expression="MIT AND AGPL-3.0-only"), "its licence is AGPL-3.0-only and MIT, which is not"),
        (Package(Classifier="License :: Other/Proprietary License"), "Other/Proprietary License, which is not"),
        (Package(License="a\nlong\ntext"), "its licence is not stated"),
        (Package(), "its licence is not stated"),
    ],
)
def test_other_licences_are_found_among_what_dependencies_need(project, shelf, package, problem):
    shelf["mine"] = Package(License_Expression="MIT", requires=["below>=1", "never; extra == 'all'"])
    shelf["below"] = package
    [found] = audit.problems_of_packages(project(pins=f"{PINS}below==1.0\n"))
    assert found.startswith("below 1.0: ") and problem in found


@pytest.mark.parametrize(
    ("pins", "problem"),
    [("mine==1.0\n", "idle 1.0: constraints.txt does not pin it"), (PINS.replace("1.0", "0.9", 1), "mine 1.0: constr")],
)
def test_versions_that_are_not_the_pinned_ones_are_found(project, shelf, pins, problem):
    [found] = audit.problems_of_packages(project(pins=pins))
    assert found.startswith(problem)


def test_what_is_not_installed_is_found(project, shelf):
    del shelf["idle"]
    assert list(audit.problems_of_packages(project(pins=PINS))) == ["idle is needed and not installed"]


def test_a_build_of_its_own_is_the_pinned_version(project, shelf):
    shelf["mine"] = Package("1.0+cpu", License_Expression="MIT")
    assert list(audit.problems_of_packages(project(pins=PINS))) == []


USES = "import mine.part\nimport os\nfrom idle import x\nimport ice_eval\n"


@pytest.mark.parametrize(
    ("source", "problems"),
    [
        (USES, []),
        (USES + "def f():\n    import extra\n", []),
        (USES + "def f():\n    import other\n", ["x.py imports other, and pyproject.toml does not declare it"]),
        (USES + "require('other', install='o')\n", ["x.py imports other, and pyproject.toml does not declare it"]),
        ("import mine\n", ["pyproject.toml declares idle, and nothing imports it"]),
    ],
)
def test_imports_and_declarations_are_the_same(project, source, problems):
    assert list(audit.problems_of_imports(project(source), {"mine": ["mine"]})) == problems


def test_a_package_may_have_another_name_than_what_is_imported(project):
    assert list(audit.problems_of_imports(project("import my_ne\nimport idle"), {"my_ne": ["Mine"]})) == []


def test_versions_that_nobody_looked_up_are_not_called_safe():
    skipped = {"name": "a", "skip_reason": "not found"}
    fine, bad = {"name": "b", "version": "1", "vulns": []}, {"name": "c", "version": "2", "vulns": [{"id": "CVE-1"}]}
    assert audit.told([skipped, skipped]) == "vulnerabilities: skipped, the service answered for none of 2 versions."
    assert audit.told([skipped, fine]) == "vulnerabilities: 1 of 2 versions looked up, 0 affected."
    assert audit.told([fine, bad]) == "c 2: CVE-1\nvulnerabilities: 2 of 2 versions looked up, 1 affected."


def test_no_dependency_of_this_project_is_undeclared_or_idle():
    packages = importlib.metadata.packages_distributions()
    assert list(audit.problems_of_imports(audit.Project(audit.ROOT), packages)) == []
