"""Lets pages of docs/ link to other files of the repository: the site gets copies of those that are linked.

On a forge `[CONTRIBUTING](../CONTRIBUTING.md)` opens the file next to docs/. The site holds docs/ alone, so the file is
put under `project/`, as a page or, if it is no Markdown, as a download, and the link is turned there. A link to a
folder leads to its README.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

COPIES = "project/"
_LINK = re.compile(r"(?<=\]\()(?!\w+:)([^)#\s]+)")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add what pages link to outside of docs/, and what those link to."""
    root = Path(config.docs_dir).parent
    pages = list(files.documentation_pages())
    for page in pages:  # grows while it is read
        for link in _LINK.findall(page.content_string):
            place = _place_in_site(link, page.src_uri, root)
            if place is None or not place.startswith(COPIES) or files.get_file_from_path(place) is not None:
                continue
            content = (root / place.removeprefix(COPIES)).read_text(encoding="utf-8")
            copy = File.generated(config, place, content=content, inclusion=InclusionLevel.NOT_IN_NAV)
            files.append(copy)
            pages += [copy] if copy.is_documentation_page() else []
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to where things are in the site; one that leads nowhere stays, and the build reports it."""
    root, here = Path(config.docs_dir).parent, page.file.src_uri

    def turned(link: re.Match[str]) -> str:
        place = _place_in_site(link[1], here, root)
        return link[1] if place is None else posixpath.relpath(place, posixpath.dirname(here) or ".")

    return _LINK.sub(turned, markdown)


def _place_in_site(link: str, page: str, root: Path) -> str | None:
    """Path in the site of the file that a page links to; None where there is no such file."""
    in_repository = page.removeprefix(COPIES) if page.startswith(COPIES) else f"docs/{page}"
    target = posixpath.normpath(posixpath.join(posixpath.dirname(in_repository), link))
    if (root / target).is_dir():
        target += "/README.md"
    if target.startswith("..") or not (root / target).is_file():
        return None
    return target.removeprefix("docs/") if target.startswith("docs/") else COPIES + target
