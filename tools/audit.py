"""Audit the dependencies: `make check` runs it without a network, `make audit` asks for known vulnerabilities too.

Looked at is what a plain `pip install ice-eval` brings: the dependencies of pyproject.toml and all that they need.

- Every one is under a licence of the list below, by its own metadata.
- Every one has the version that constraints.txt pins, so that what was tested is what is installed.
- Every pinned version that is installed, those for developers too, takes the oldest Python that is promised.
- Every package that the source imports is declared, and every one that is declared is imported.
"""

import argparse
import ast
import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "CNRI-Python", "ISC", "LLVM-exception",
    "MIT", "MPL-2.0", "PSF-2.0", "Unlicense", "Zlib",
}  # fmt: skip
"""SPDX names. Permissive, or copyleft by the file (MPL): none reaches what is built on top."""
SPELLINGS = {
    "Apache": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""How older metadata call them."""
OF_DEVICES = re.compile(r"nvidia-|cuda-|triton$|pytorch-triton|intel-|pytorch-rocm")
"""Packages of torch builds for GPUs, under terms of their own; `torch` for CPUs needs none of them."""
OF_INSTALLERS = {"pip", "setuptools", "wheel"}
"""Whatever the environment was built with."""
NOT_IMPORTED = {"accelerate": "transformers places weights on devices with it"}
"""Declared, and used by others on our behalf."""


class Project:
    """Dependencies in pyproject.toml and constraints.txt."""

    def __init__(self, root: Path) -> None:
        self.root = root
        said: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        self.oldest_python = str(said.get("requires-python", ">=3.11")).removeprefix(">=")
        self.needed = [Requirement(line) for line in said["dependencies"]]
        extras = said.get("optional-dependencies", {})
        self.optional = [Requirement(line) for lines in extras.values() for line in lines]
        lines = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
        pins = [line.partition("==") for line in lines if "==" in line and not line.startswith("#")]
        self.pinned: dict[str, str] = {canonicalize_name(name): version.strip() for name, _, version in pins}


def installed(needed: list[Requirement]) -> dict[str, importlib.metadata.Distribution | None]:
    """These and all that they need on this machine, by name; None for what is not installed."""
    found: dict[str, importlib.metadata.Distribution | None] = {}
    left = list(needed)
    while left:
        wanted = left.pop()
        name = canonicalize_name(wanted.name)
        if name not in found:
            try:
                package = found[name] = importlib.metadata.distribution(wanted.name)
            except importlib.metadata.PackageNotFoundError:
                found[name] = None
                continue
            further = map(Requirement, package.requires or ())
            left += [each for each in further if each.marker is None or each.marker.evaluate({"extra": ""})]
    return dict(sorted(found.items()))


def licences(metadata: Any) -> set[str]:
    """The licences that a package names, as SPDX calls them where that is known."""
    said = metadata.get("License-Expression")
    if not said:
        classifiers = [line for line in metadata.get_all("Classifier") or () if line.startswith("License ::")]
        short = (metadata.get("License") or "").strip()
        found = [line.rpartition("::")[2].strip() for line in classifiers] or ([short] if "\n" not in short else [])
        said = " AND ".join(SPELLINGS.get(name, name) for name in found if name and name != "OSI Approved")
    return {part.strip(" ()") for part in re.split(r"\bAND\b|\bOR\b|\bWITH\b", said) if part.strip(" ()")}


def imported(source: Path) -> dict[str, str]:
    """Packages that the source imports, anywhere in a file or by `require("name", …)`, and where."""
    found: dict[str, str] = {}
    for path in sorted(source.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "require":
                names = [str(each.value) for each in node.args[:1] if isinstance(each, ast.Constant)]
            for name in (name.partition(".")[0] for name in names):
                if name and name not in sys.stdlib_module_names and name != "ice_eval":
                    found.setdefault(name, str(path.relative_to(source)))
    return found


def problems_of_packages(project: Project) -> Iterator[str]:
    """Licences that are not on the list, and versions that are not the pinned ones."""
    for name, package in installed(project.needed).items():
        if OF_DEVICES.match(name) or name in OF_INSTALLERS:
            continue
        if package is None:
            yield f"{name} is needed and not installed"
            continue
        named = licences(package.metadata)
        if not named or not named <= ALLOWED:
            stated = " and ".join(sorted(named)) or "not stated"
            yield f"{name} {package.version}: its licence is {stated}, which is not on the list"
        pinned = project.pinned.get(name)
        if pinned != package.version.partition("+")[0]:
            yield f"{name} {package.version}: constraints.txt {f'pins {pinned}' if pinned else 'does not pin it'}"


def problems_of_python(project: Project) -> Iterator[str]:
    """Pinned versions that refuse the oldest Python of the project: there they cannot be installed."""
    for name in sorted(project.pinned):
        try:
            package = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # pinned for others: an extra, another platform
        asked = package.metadata.get("Requires-Python")
        if asked and not SpecifierSet(asked).contains(project.oldest_python):
            yield f"{name} {package.version} asks for Python {asked}, and {project.oldest_python} is promised"


def problems_of_imports(project: Project, packages: Mapping[str, list[str]]) -> Iterator[str]:
    """Imports that nobody declared, and declarations that nobody imports.

    Args:
        project: What is declared.
        packages: The distributions that a name to import belongs to.
    """
    needed = {canonicalize_name(each.name) for each in project.needed}
    declared = needed | {canonicalize_name(each.name) for each in project.optional}
    used: set[str] = set()
    for name, where in imported(project.root / "src" / "ice_eval").items():
        owners = {canonicalize_name(owner) for owner in packages.get(name, [name])}
        used |= owners
        if not owners & declared:
            yield f"{where} imports {name}, and pyproject.toml does not declare it"
    for name in sorted(needed - used - set(NOT_IMPORTED)):
        yield f"pyproject.toml declares {name}, and nothing imports it"


def ask_for_vulnerabilities(project: Project) -> int:
    """Let pip-audit look up the pinned versions; returns how many are vulnerable.

    Where it is not installed or its service does not answer, that is said: pip-audit itself calls versions that it
    could not look up free of known vulnerabilities.
    """
    pins = str(project.root / "constraints.txt")
    command = [sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "--format=json", "-r", pins]
    try:
        done = subprocess.run(command, timeout=300, capture_output=True, text=True, check=False)
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError):
        print("vulnerabilities: skipped, pip-audit is not installed (pip install pip-audit) or gave no answer.")
        return 0
    print(told(found))
    return sum(bool(each.get("vulns")) for each in found)


def told(found: list[dict[str, Any]]) -> str:
    """Return what pip-audit found, in lines."""
    asked = [each for each in found if "skip_reason" not in each]
    if not asked:
        return f"vulnerabilities: skipped, the service answered for none of {len(found)} versions."
    lines = [
        f"{each['name']} {each['version']}: {', '.join(one['id'] for one in each['vulns'])}"
        for each in asked
        if each["vulns"]
    ]
    return "\n".join(
        [*lines, f"vulnerabilities: {len(asked)} of {len(found)} versions looked up, {len(lines)} affected."]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vulnerabilities", action="store_true", help="ask pip-audit too (needs a network)")
    asked = parser.parse_args()
    project = Project(ROOT)
    packages = importlib.metadata.packages_distributions()
    problems = [
        *problems_of_packages(project),
        *problems_of_python(project),
        *problems_of_imports(project, packages),
    ]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(installed(project.needed))} packages audited, {len(problems)} problems.")
    found = ask_for_vulnerabilities(project) if asked.vulnerabilities else 0
    return 1 if problems or found else 0


if __name__ == "__main__":
    sys.exit(main())
