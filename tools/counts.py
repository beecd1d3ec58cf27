"""Count what makes a source tree large or hard to follow, so that two trees can be compared.

    python tools/counts.py [SRC]          # by default the source of this project
    python tools/counts.py OTHER/src --json

Prints modules and lines by package, short modules, names of classes with several meanings, untyped annotations, first
words of docstrings, and the options that `ice run --help` shows. Also the files that a run of the toy model passes
through, and its calls from the command to the scores of the model (`hops`).
"""

import argparse
import ast
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SHORT = 40
"""Modules with fewer lines are counted apart."""
POOR_OPENINGS = ("What", "Whether", "Of", "How", "Where", "Why", "Who")
_HERE = Path(__file__).resolve().parents[1] / "src"
_TRACED = """
import json, sys
from pathlib import Path
root = str(Path(sys.argv[1]).resolve() / "ice_eval")
files, hops = set(), []

def called(code, offset):
    if code.co_filename.startswith(root):
        if code.co_name != "<module>":
            files.add(code.co_filename)
        if code.co_name == "submit" and code.co_filename.startswith(root + "/models"):
            frame, names = sys._getframe(1), []
            while frame:
                if frame.f_code.co_filename.startswith(root):
                    names.append(f"{Path(frame.f_code.co_filename).relative_to(root)}:{frame.f_code.co_qualname}")
                frame = frame.f_back
            hops.append(names[::-1])
    else:
        return sys.monitoring.DISABLE if hasattr(sys, "monitoring") else None

def traced(frame, event, arg):
    called(frame.f_code, 0)

sys.setprofile(traced)
from ice_eval.cli import main
sys.argv = ["ice", "run", "--model", "toy", "--task", "demo", "--n", "4", "--m", "3", "--out", sys.argv[2]]
try:
    main()
except SystemExit:
    pass
sys.setprofile(None)
print("\\n" + json.dumps({"files": len(files), "hops": max(hops, key=hops.count, default=[])}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("src", type=Path, nargs="?", default=_HERE, help="folder that holds ice_eval")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    found = counted(arguments.src)
    print(json.dumps(found, indent=2) if arguments.json else _text(found))


def counted(src: Path) -> dict[str, Any]:
    """Return all counts of a tree."""
    sources = {path: path.read_text(encoding="utf-8") for path in sorted((src / "ice_eval").rglob("*.py"))}
    trees = {path: ast.parse(source) for path, source in sources.items()}
    packages: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0])
    for path, source in sources.items():
        name = path.relative_to(src / "ice_eval").parts[0]
        for part in (name if not name.endswith(".py") else "(top level)", "all"):
            packages[part][0] += 1
            packages[part][1] += len(source.splitlines())
    classes = collections.Counter(
        node.name for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef)
    )
    return {
        "packages": {name: {"modules": each[0], "lines": each[1]} for name, each in sorted(packages.items())},
        "short_modules": sum(len(source.splitlines()) < SHORT for source in sources.values()),
        "repeated_class_names": sorted(
            name for name, count in classes.items() if count > 1 and not name.startswith("_")
        ),
        "str_any": sum(source.count("[str, Any]") for source in sources.values()),
        "poor_docstrings": sum(_opens_poorly(node) for tree in trees.values() for node in ast.walk(tree)),
        **_of_run(src),
    }


def _opens_poorly(node: ast.AST) -> bool:
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    words = (ast.get_docstring(node) or "").split(maxsplit=1)
    return bool(words) and words[0] in POOR_OPENINGS


def _of_run(src: Path) -> dict[str, Any]:
    """Count what a run passes through, and the options that its help shows."""
    environment = {**os.environ, "PYTHONPATH": str(src.resolve()), "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    command = [sys.executable, "-m", "ice_eval", "run", "--help"]
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", _TRACED, str(src), str(Path(folder) / "run")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=folder)
    traced = json.loads(done.stdout.splitlines()[-1])
    return {
        "help_lines": len(shown.splitlines()),
        "help_options": len(set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", re.sub(r"(?m)^.*Usage.*$", "", shown)))),
        "files_of_a_run": traced["files"],
        "hops": len(traced["hops"]),
        "way": traced["hops"],
    }


def _text(found: dict[str, Any]) -> str:
    lines = [
        f"{name:<14} {each['modules']:>4} modules {each['lines']:>7,} lines" for name, each in found["packages"].items()
    ]
    plain = {name: value for name, value in found.items() if name not in ("packages", "way")}
    lines += [f"{name}: {', '.join(value) if isinstance(value, list) else value}" for name, value in plain.items()]
    return "\n".join([*lines, "way from the command to the model:", *(f"  {hop}" for hop in found["way"])])


if __name__ == "__main__":
    main()
