"""Write pictures of reports for README and docs: `python tools/screenshots.py FOLDER` (needs Chromium and Pillow).

Runs are made in FOLDER, and continued if they are there. The pictures show the first screen of each page, at two
widths, in light and dark colours: docs/images/pages/NAME-WIDTH-SCHEME.png.
"""

import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the scripted reasoners of the tests

from tests.report.chain_runs import chain_run  # noqa: E402

from ice_eval.api import evaluate  # noqa: E402
from ice_eval.bench import load_grid, run_grid  # noqa: E402
from ice_eval.report import write_html  # noqa: E402
from ice_eval.report.comparison import write_comparison  # noqa: E402
from ice_eval.results import RunFolder, differences  # noqa: E402
from ice_eval.tasks import Records, Task  # noqa: E402

PICTURES = ROOT / "docs" / "images" / "pages"
SIZES = {1440: 900, 390: 844}
SCHEMES = ("light", "dark")
COLOURS = 96
"""Number of colours of a picture; pages have few."""
GOOD, BAD = ("ممتاز", "رائع", "جميل"), ("سيئ", "ممل", "ضعيف")
"""Words of opinion in the Arabic reviews."""


def demo(root: Path) -> Path:
    return evaluate("smollm2", "demo", n=60, m=16, n_fills=4, out=root / "demo").report()


def example(root: Path) -> Path:
    return demo(root)


def many(root: Path) -> Path:
    """Return the page of 144 configurations."""
    names = ("attention", "gradient", "input-x-gradient", "occlusion", "longest-words", "random")
    operators, shares = ("delete", "infill", "mask-unk"), (0.1, 0.2, 0.3, 0.4)
    found = evaluate(
        "toy", "demo", attributions=names, operators=operators, k=shares, directions=("sufficiency", "necessity"),
        n=60, m=20, n_fills=2, out=root / "many",
    )  # fmt: skip
    return found.report()


def dropped(root: Path) -> Path:
    """Return the page of a model that fails for every text with one word."""

    def predict(texts: Sequence[str]) -> list[list[float]]:
        goods = [min(text.count("great") + text.count("good"), 3) for text in texts]
        shares = [float("nan") if "slow" in text else 0.2 + good / 5 for text, good in zip(texts, goods, strict=True)]
        return [[1 - share, share] for share in shares]

    places, feelings = ("film", "play", "album"), ("great", "dull", "good", "slow")
    texts = [
        f"we found the {place} {one} and {other} at the end"
        for place in places
        for one in feelings
        for other in feelings
    ]
    return _labelled(predict, texts, "standard", root / "dropped")


def arabic(root: Path) -> Path:
    def predict(texts: Sequence[str]) -> list[list[float]]:
        scores = [max(min(sum(map(text.count, GOOD)) - sum(map(text.count, BAD)), 3), -3) for text in texts]
        return [[0.5 - score / 8, 0.5 + score / 8] for score in scores]

    places = ("الفيلم", "الكتاب", "العرض", "المطعم")
    texts = [
        f"كان {place} {one} في البداية ثم أصبح {other} قبل النهاية بقليل"
        for place in places
        for one in GOOD
        for other in (*GOOD, *BAD)
    ]
    return _labelled(predict, texts, "arabic", root / "arabic")


def _labelled(predict: Callable[[Sequence[str]], object], texts: Sequence[str], name: str, out: Path) -> Path:
    labels = {"negative": "negative", "positive": "positive"}
    rows = Records([{"id": f"r{i}", "text": text} for i, text in enumerate(texts)])
    task = Task(data=rows, prompt="{text}", label_words=labels, name=name)
    methods = ("occlusion", "longest-words", "random")
    return evaluate(predict, task, attributions=methods, unit="word", m=20, n_fills=2, out=out).report()


def grid(root: Path) -> Path:
    content = {
        "models": ["toy"], "tasks": ["demo"], "prompts": ["standard", "question"], "n": 60, "m": 10,
        "attributions": ["attention", "gradient", "occlusion", "random"], "k": [0.1, 0.2],
    }  # fmt: skip
    (root / "wordings.json").write_text(json.dumps(content), encoding="utf-8")
    run_grid(load_grid(root / "wordings.json"), root / "grid")
    return root / "grid" / "report.html"


def chain(root: Path) -> Path:
    folder = chain_run(root / "chain", count=20)
    return write_html([folder], folder.path / "report.html")


def comparison(root: Path) -> Path:
    """Return the page of two models on the same texts; the first is that of `demo`."""
    evaluate("toy", "demo", n=60, m=16, n_fills=4, out=root / "toy")
    folders = [RunFolder.existing(root / name) for name in ("demo", "toy")]
    return write_comparison(differences(folders[0], folders[1:]), root / "comparison.html")


PAGES: dict[str, Callable[[Path], Path]] = {
    each.__name__: each for each in (demo, example, many, dropped, grid, comparison, chain, arabic)
}


def pictures(browser: Browser, name: str, page: Path) -> Iterator[Path]:
    """Write the pictures of a page and yield their paths."""
    for width, height in SIZES.items():
        for scheme in SCHEMES:
            shown = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
            shown.goto(page.resolve().as_uri() + ("#example=demo-03&attribution=gradient" if name == "example" else ""))
            shown.wait_for_timeout(1500)
            content = Image.open(io.BytesIO(shown.screenshot()))
            path = PICTURES / f"{name}-{width}-{scheme}.png"
            content.convert("RGB").quantize(COLOURS).save(path, optimize=True)
            shown.close()
            yield path


def main(root: Path, names: Sequence[str]) -> None:
    root.mkdir(parents=True, exist_ok=True)
    PICTURES.mkdir(parents=True, exist_ok=True)
    os.chdir(root)  # pages name folders as they are given
    pages = {name: PAGES[name](Path()) for name in names}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for name, page in pages.items():
            for path in pictures(browser, name, page):
                print(path.relative_to(ROOT), f"{path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or list(PAGES))
