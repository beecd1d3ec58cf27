"""Find prose that is hard to read: `python tools/prose.py [FILE …] [--counts] [--check]`.

Reads pages, templates, docstrings, messages, help and other strings of several words. Prints `file:line` for sentences
over 35 words, docstrings that begin with "What", "Of" or "Whether", and words that have a plainer one. `--counts`
prints the words of every page, with and without code; marks of tables are no words. `--check` exits with 1 if anything
is found.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 35
GENERATED = {"docs/calibration.md", "docs/cli.md", "docs/results-format.md"}
"""Pages that programs write; they are counted apart."""
BETTER = {
    r"\w*slopes?": "gradients, no_grad",
    r"told": "reported, printed; distinguished",
    r"brought": "user-supplied, installed",
    r"(?:take|takes|took|taking) no part": "is skipped",
    r"(?:left|leaves?|leaving) aside": "is ignored",
    r"(?:stand|stands|stood|standing) in": "is listed in, replaces",
    r"(?:file|folder|weight|page|report|package|model)s? (?:that )?(?:lie|lies|lay)": "is in",
    r"shortages?": "out-of-memory retries",
    r"overtakes?": "runs ahead of",
    r"(?:hang|hangs|hung) on": "depends on",
    r"before anybody": "before",
    r"of (?:his|its|one's|a user's|your) bringing": "user-supplied",
    r"(?:Desk|Crew|Seat|Lesson|School)s?": "the noun a paper would use",
}
"""Wrong wherever they occur. "Say", "lie", "place" and "stand" have a plain sense too: a person has to judge them."""
_BETTER = {re.compile(rf"\b(?:{wrong})\b"): better for wrong, better in BETTER.items()}
_POOR_OPENING = re.compile(r"(?:What(?!-)|Of|Whether)\b")
_CODE = re.compile(r"``.+?``|`[^`]+`", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|<https?://[^>]*>")
_END = re.compile(r"(?<=[.!?])[)\"'*_”]*\s+(?=[\"'*_(“]*[A-ZÀ-Þ])")
_NEW_BLOCK = re.compile(r"\s*(?:[-*+] |\d+\. |#|>|\||[├└│]|$)|\s*(?:\w+ )?\w+:$|\s+\*{0,2}\w+: |\w+ {2,}\S|\s+python ")
"""An item, a heading, a quotation, a row, a branch of a tree; the name of a docstring's section, of an argument or of
a value; a command."""
_FENCE = re.compile(r"\s*(?:```|~~~)")
_TAG = re.compile(r"<style.*?</style>|<script.*?</script>|\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", re.DOTALL)
"""Tags and expressions of a template."""
_FEWEST = 5
_ENDS = (".", "!", "?", ":", ",", ";")
"""Strings of fewer words, and those that end otherwise (lists of words, patterns, drafts), are no sentences."""


def blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield paragraphs, items and table cells with their first lines; code is left out."""
    start, lines, fenced = 1, list[str](), False
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        fence = _FENCE.match(line) is not None
        if (fence or fenced or _NEW_BLOCK.match(line)) and lines:
            yield start, "\n".join(lines)
            lines = []
        fenced ^= fence
        if line.lstrip().startswith("|") and not fenced:
            yield from ((number, cell) for cell in re.split(r"(?<!\\)\|", line))
        elif not (fence or fenced or not line.strip() or line.startswith(("<!--", ">>>"))):
            start = start if lines else number
            lines.append(line)


def found_in(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the description of everything that is hard to read."""
    for first, block in blocks(text):
        plain = _CODE.sub(lambda code: "Code" + "\n" * code[0].count("\n"), block)
        plain = _LINK.sub(lambda link: link[1] or "link", plain)
        at = 0
        for sentence in _END.split(plain):
            at = plain.index(sentence, at)
            words = [word for word in sentence.split() if any(letter.isalnum() for letter in word)]
            if len(words) > LONGEST:
                yield first + plain[:at].count("\n"), f"{len(words)} words: {' '.join(words[:8])} …"
        for wrong, better in _BETTER.items():
            for match in wrong.finditer(plain):
                yield first + plain[: match.start()].count("\n"), f"{match[0]!r}: {better}"


def sentences(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the lines and texts of all strings of several words, messages and help among them; values are one word."""
    nodes = list(ast.walk(tree))
    raised = {id(part) for node in nodes if isinstance(node, ast.Raise) for part in ast.walk(node)}
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)} - {
        id(node) for node in nodes if isinstance(node, ast.JoinedStr)
    }
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "Value" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            text = node.value
        else:
            continue
        if len(text.split()) >= _FEWEST and (id(node) in raised or text.rstrip(" ").endswith(_ENDS)):
            yield node.lineno, text


def _without_tag(tag: re.Match[str]) -> str:
    """Return the line breaks of a tag; a closing one ends a sentence."""
    return (". A" if tag[0].startswith("</d") else "") + "\n" * tag[0].count("\n")


def problems(path: Path) -> Iterator[tuple[int, str]]:
    """Yield what is hard to read in a page, a template or a module: docstrings, messages, help and other strings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from found_in(_TAG.sub(_without_tag, text) if path.suffix == ".html" else text)
        return
    tree = ast.parse(text)
    bodies = (body for node in ast.walk(tree) if isinstance(body := getattr(node, "body", None), list))
    alone = {id(statement.value) for body in bodies for statement in body if isinstance(statement, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in alone and isinstance(node, ast.Constant) and isinstance(node.value, str):
            if poor := _POOR_OPENING.match(node.value):
                yield node.lineno, f"a docstring begins with {poor[0]!r}"
            yield from ((node.lineno + place - 1, problem) for place, problem in found_in(node.value))
            node.value = ""
    for line, message in sentences(tree):
        yield from ((line, problem) for _, problem in found_in(message))


def everything() -> list[Path]:
    """Return all pages and templates, and all modules but those of the tests."""
    pages = [*(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")), *ROOT.glob("docs/**/*.md")]
    folders = ("benchmarks", "examples", "src", "tools")
    modules = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    templates = (ROOT / "src").rglob("*.html")
    return [*sorted(pages), *sorted(ROOT.glob("examples/**/*.md")), *sorted(modules), *sorted(templates)]


def words(text: str, *, code: bool) -> int:
    """Return the number of words with a letter or digit; fenced blocks count with `code`."""
    lines, fenced = list[str](), False
    for line in text.splitlines():
        fence = _FENCE.match(line) is not None
        fenced ^= fence
        if code or not (fence or fenced):
            lines.append(line)
    return sum(any(map(str.isalnum, word)) for line in lines for word in line.split())


def counts(pages: Iterable[Path]) -> str:
    """Return a line per page with its words and those outside of code, and the sums of docs/."""
    found = {}
    for page in pages:
        text = page.read_text(encoding="utf-8")
        found[str(page.relative_to(ROOT))] = (words(text, code=True), words(text, code=False))
    docs = {name: number for name, number in found.items() if name.startswith("docs/")}
    groups = {"docs, written": docs.keys() - GENERATED, "docs, generated": GENERATED, "docs": docs.keys()}
    for group, names in groups.items():
        found[group] = (sum(docs[name][0] for name in names), sum(docs[name][1] for name in names))
    return "\n".join(f"{n:7,} {outside:7,}  {name}" for name, (n, outside) in found.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*", help="pages or modules; by default all but the tests")
    parser.add_argument("--counts", action="store_true", help="print the words of every page")
    parser.add_argument("--check", action="store_true", help="exit with 1 if anything is found")
    arguments = parser.parse_args()
    files = arguments.files or everything()
    found = [(path.resolve().relative_to(ROOT), *each) for path in files for each in problems(path)]
    print("".join(f"{path}:{line}: {problem}\n" for path, line, problem in found), end="")
    if arguments.counts:
        print(counts(path for path in everything() if path.suffix == ".md"))
    sys.exit(1 if arguments.check and found else 0)


if __name__ == "__main__":
    main()
