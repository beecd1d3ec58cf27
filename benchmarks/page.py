"""The report page at 20,000 examples: its size, its first paint and the time of a search, in the system Chromium.

    python benchmarks/page.py --n 20000 --out page

The toy model is run on as many different texts; the page of the run is then written and opened.
Goals: at most 10 MB, first paint within 2 s, a search within 0.5 s.
"""

import argparse
import json
import shutil
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

import ice_eval
from ice_eval.report import write_html
from ice_eval.tasks import Records, Task

PROMPT = "Review: {text}\nSentiment:"
LABELS = {"negative": " negative", "positive": " positive"}
WORDS = (
    "a gorgeous witty film with great cast and one dull scene that nobody enjoyed but we liked the slow story".split()
)
_PAINT = """() => new Promise(done => new PerformanceObserver(list => done(list.getEntries()[0].startTime))
  .observe({ type: "paint", buffered: true }))"""
_SEARCH = """text => {
  const began = performance.now(), box = document.querySelector("[name=query]");
  box.value = text;
  box.dispatchEvent(new Event("input"));
  document.body.offsetHeight;
  return performance.now() - began;
}"""


def records(n: int) -> list[dict[str, object]]:
    """Return texts of 10 to 24 words, all different."""
    texts = []
    for number in range(n):
        length = 10 + number % 15
        words = [WORDS[(number * 7 + 3 * place) % len(WORDS)] for place in range(length - 1)]
        texts.append({"id": f"example-{number}", "text": " ".join([*words, f"w{number}"]), "label": number % 2})
    return texts


def measured(path: Path) -> dict[str, float]:
    """Return seconds to the first paint, to the example, and of searches on a page."""
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("google-chrome"), args=["--no-sandbox"]
        )
        page = browser.new_page()
        began = time.monotonic()
        page.goto(path.resolve().as_uri(), wait_until="commit")
        page.wait_for_selector("#detail h3")
        shown, paint = time.monotonic() - began, page.evaluate(_PAINT) / 1000
        searches = [page.evaluate(_SEARCH, text) / 1000 for text in ("film", "w19", "no such words", "")]
        browser.close()
    return {"first_paint_s": paint, "example_shown_s": shown, "first_search_s": searches[0], "search_s": max(searches)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--m", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path("page-benchmark"))
    asked = parser.parse_args()
    task = Task(data=Records(records(asked.n)), prompt=PROMPT, label_words=LABELS, name="page")
    began = time.monotonic()
    run = ice_eval.evaluate("toy", task, operators=["delete", "infill"], n=asked.n, m=asked.m, out=asked.out / "run")
    scored = time.monotonic()
    path = write_html([run.folder], asked.out / "page.html")
    written = time.monotonic() - scored
    found = {"n": asked.n, "scored_s": scored - began, "written_s": written, "MB": path.stat().st_size / 1e6}
    print(json.dumps({name: round(value, 2) for name, value in {**found, **measured(path)}.items()}, indent=1))


if __name__ == "__main__":
    main()
