"""Find prose that is hard to read, in pages and docstrings: `python tools/prose.py [FILE …] [--counts] [--check]`.

Prints `file:line` for sentences over 35 words, docstrings that begin with "What", "Of" or "Whether", and words that
have a plainer one. `--counts` prints the words of every page. `--check` reads the pages in CLEAN alone, and exits with
1 if anything is found there.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 35
_CLEAN = "index quickstart concepts chain-of-thought view compare measures attributions faq footguns".split()
CLEAN = [ROOT / "README.md", *(ROOT / f"docs/{name}.md" for name in _CLEAN), *sorted(ROOT.glob("docs/tutorials/*.md"))]
"""Pages in which nothing may be found. Add a page once it is clean."""
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
_POOR_OPENING = re.compile(r"(?:What|Of|Whether)\b")
_CODE = re.compile(r"``.+?``|`[^`]+`", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|<https?://[^>]*>")
_END = re.compile(r"(?<=[.!?])[)\"'*_”]*\s+(?=[\"'*_(“]*[A-ZÀ-Þ])")
_NEW_BLOCK = re.compile(r"\s*(?:[-*+] |\d+\. |#|>|\||$)|\s*(?:Args|Returns|Raises|Yields|Attributes):$")
_FENCE = re.compile(r"\s*(?:```|~~~)")


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


def problems(path: Path) -> Iterator[tuple[int, str]]:
    """Yield what is hard to read in a page, or in the docstrings of a module and of its fields."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from found_in(text)
        return
    bodies = (body for node in ast.walk(ast.parse(text)) if isinstance(body := getattr(node, "body", None), list))
    for expression in (statement for body in bodies for statement in body if isinstance(statement, ast.Expr)):
        if isinstance(expression.value, ast.Constant) and isinstance(docstring := expression.value.value, str):
            if poor := _POOR_OPENING.match(docstring):
                yield expression.lineno, f"a docstring begins with {poor[0]!r}"
            yield from ((expression.lineno + place - 1, problem) for place, problem in found_in(docstring))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*", help="pages or modules; by default all pages and src")
    parser.add_argument("--counts", action="store_true", help="print the words of every page")
    parser.add_argument("--check", action="store_true", help="read clean pages alone; exit with 1 if anything is found")
    arguments = parser.parse_args()
    pages = [*(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")), *ROOT.glob("docs/**/*.md")]
    files = arguments.files or (CLEAN if arguments.check else [*sorted(pages), *sorted(ROOT.glob("src/**/*.py"))])
    found = [(path.resolve().relative_to(ROOT), *each) for path in files for each in problems(path)]
    print("".join(f"{path}:{line}: {problem}\n" for path, line, problem in found), end="")
    if arguments.counts:
        counts = {str(page.relative_to(ROOT)): len(page.read_text(encoding="utf-8").split()) for page in sorted(pages)}
        print("\n".join(f"{n:7,} {page}" for page, n in {**counts, "in all": sum(counts.values())}.items()))
    sys.exit(1 if arguments.check and found else 0)


if __name__ == "__main__":
    main()
