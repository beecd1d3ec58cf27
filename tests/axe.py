"""axe-core, which finds barriers in a page; `python tests/axe.py` fetches it once (npm)."""

import os
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest

VERSION = "4.14.0"


def script() -> Path:
    """`$ICE_AXE`, else a file in the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("ICE_AXE") or cache / "ice-eval" / f"axe-core-{VERSION}.min.js")


def violations(page) -> list[str]:
    """Rules that a page breaks, each with the places."""
    if not script().is_file():
        pytest.skip("needs axe-core: python tests/axe.py")
    page.evaluate(script().read_text(encoding="utf-8") + ";0")
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [f"{each['id']}: {[node['target'] for node in each['nodes']]}" for each in found]


def main() -> None:
    if script().is_file():
        return
    with tempfile.TemporaryDirectory() as work:
        try:
            subprocess.run(["npm", "pack", "--silent", f"axe-core@{VERSION}"], cwd=work, timeout=120, check=True)
            [archive] = Path(work).glob("*.tgz")
            with tarfile.open(archive) as files:
                content = files.extractfile("package/axe.min.js").read()
        except (OSError, subprocess.SubprocessError, KeyError, ValueError) as exc:
            print(f"axe-core cannot be fetched ({type(exc).__name__}): the tests that need it will be skipped.")
            return
    script().parent.mkdir(parents=True, exist_ok=True)
    script().write_bytes(content)


if __name__ == "__main__":
    main()
