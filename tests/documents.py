"""Pages of docs/ as programs: what their blocks show is written, run and printed."""

import io
import re
import shlex
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from ice_eval.cli import main

DOCS = Path(__file__).parents[1] / "docs"
_BLOCK = re.compile(
    r"(?:^<!-- needs: (\w+) -->\n)?^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
RUN = ("python", "sh")


class Block(NamedTuple):
    """A fenced block: with a title it is a file, as `python` or `sh` it is run, as `text` it is what was printed."""

    needs: str
    """A library without which it is not run, from a comment in front."""
    language: str
    title: str
    text: str


def blocks_of(page):
    """All blocks of a page, in their order."""
    return [Block(*found) for found in _BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))]


def play(page, *, names=None, changes=(), missing=(), fails=()):
    """Do what a page says in the present folder, and hold what is printed against what the page shows.

    `console` and `bash` blocks are not run. Lines of a `text` block that follows a run must be among what the run
    printed, dots stand for anything, and spaces do not count. `names` are known to its Python. `changes` are
    replacements in what is run, such as a server's address; blocks that need a library in `missing` are left out.
    Commands with a word of `fails` must exit with 1, and all others with 0.
    """
    names, printed = {"__name__": "__main__"} | (names or {}), ""
    for block in blocks_of(page):
        text = block.text
        for old, new in changes:
            text = text.replace(old, new)
        if block.needs in missing:
            printed = ""
        elif block.title:
            Path(block.title).write_text(text, encoding="utf-8")
        elif block.language in RUN:
            printed = _run(block.language, text, names, fails)
        elif block.language == "text" and printed:
            _assert_printed(text, printed, page)
            printed = ""
    return names


def commands_of(text):
    """The command lines of a block, as lists of words."""
    lines = text.replace("\\\n", " ").splitlines()
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


class _Printed(io.StringIO):
    """What a terminal would show."""

    encoding = "utf-8"


def _run(language, text, names, fails):
    out = _Printed()
    with redirect_stdout(out), redirect_stderr(out):
        if language == "python":
            exec(compile(text, "<page>", "exec"), names)
        else:
            for words in commands_of(text):
                _ice(words, out, expected=int(not set(fails).isdisjoint(words)))
    return out.getvalue()


def _ice(words, out, *, expected):
    assert words[0] == "ice", f"only `ice` is run: {words}"
    argv, handler = sys.argv, signal.getsignal(signal.SIGINT)
    sys.argv, code = words, 0
    try:
        main()
    except SystemExit as exc:
        code = exc.code or 0
    finally:
        sys.argv = argv
        signal.signal(signal.SIGINT, handler)
    assert code == expected, f"{shlex.join(words)}: exit {code}\n{out.getvalue()}"


def _assert_printed(shown, printed, page):
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    for line in shown.splitlines():
        wanted = ".*".join(re.escape(part.strip()) for part in " ".join(line.split()).split("…"))
        assert any(re.search(wanted, each) for each in lines), f"{page} shows {line!r}, not printed:\n{printed}"
