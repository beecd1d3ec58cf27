import ast
import sys
from pathlib import Path

import ice_eval.stats as stats

FOLDER = Path(stats.__file__).parent
ALLOWED = ("numpy", "scipy", "ice_eval.errors", "ice_eval.stats")


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_public_names_exist_and_are_sorted():
    assert sorted(set(stats.__all__)) == stats.__all__
    assert all(hasattr(stats, name) for name in stats.__all__)


def test_statistics_import_numpy_scipy_and_the_standard_library_only():
    for path in FOLDER.glob("*.py"):
        for module in imported_modules(path):
            assert module.split(".")[0] in sys.stdlib_module_names or module.startswith(ALLOWED), (path.name, module)
