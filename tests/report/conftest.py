import os
import shutil

import pytest
from tests import made_records
from tests.made_records import agreement_line, summary_line, verdict_of

from ice_eval.results import Choice, Plan
from ice_eval.stats import Interval


@pytest.fixture
def line():
    """One configuration of a summary, with changes; its verdict is given as text."""

    def build(**changes):
        made = {
            "attribution": "gradient", "n": 60, "accuracy": 0.9, "win_rate": 0.7321, "win_rate_ci": (0.681, 0.7849),
            "win_rate_ci_simultaneous": (0.5912, 0.8321), "win_rate_strict": 0.73, "tie_rate": 0.0,
            "win_rate_untied": 0.73, "win_rate_attainable": 1.0, "p_value": 0.0001, "p_adjusted": 0.0004,
            "effect_size": 1.234, "effect_size_median": 1.1, "nsr": 0.5, "nsr_median": 0.4, "significant_rate": 0.3,
            "significant_floor_share": 0.196, "nonnull_share": 0.4, "nonnull_share_low": 0.2, "weak_signal_rate": 0.0,
            "negative_signal_rate": 0.1, "win_rate_nsr_order": 0.7, "detectable_win_rate": 0.58,
            "taxonomy": "faithful", "verdict": "faithful", "verdict_simultaneous": "weakly faithful", **changes,
        }  # fmt: skip
        for name in ("win_rate_ci", "win_rate_ci_simultaneous"):
            made[name] = None if made[name] is None else Interval(*made[name])
        for name in ("verdict", "verdict_simultaneous"):
            made[name] = verdict_of(made[name])
        if made["win_rate"] is not None and made["win_rate_ci"] is not None:
            effects = [2 * rate - 1 for rate in (made["win_rate"], *made["win_rate_ci"])]
            made |= {"rank_effect": effects[0], "rank_effect_ci": Interval(*effects[1:])}
        return summary_line(**made)

    return build


@pytest.fixture
def agreement():
    """One comparison of two operators, with changes."""

    def build(**changes):
        made = {
            "attribution": "gradient", "n": 60, "gap": 0.0456, "gap_ci": Interval(-0.012, 0.103),
            "crosses_threshold": "no", "same_taxonomy": True, "rank_correlation": 0.41,
            "rank_correlation_ceiling": 0.93, "disagree_rate": 0.125, "disagree": ("7",),
        }  # fmt: skip
        return agreement_line(**{**made, **changes})

    return build


@pytest.fixture
def summary(line, agreement):
    """Changes of each configuration, a verdict as its text -> a summary."""

    def build(*lines, agreements=(), robustness=()):
        return made_records.summary(
            configurations=[line(**changes) for changes in lines or [{}]],
            agreement=[agreement(**changes) for changes in agreements],
            robustness=robustness,
        )

    return build


@pytest.fixture
def plan():
    """A plan with two choices."""
    return Plan(
        model="toy", task="demo", device="cpu", pilot={"n": 32, "m": 16, "seconds": 1.2}, cheapest_m=4.4,
        choices=(
            Choice("as asked", 500, 50, 27000, 1_234_567, 90.0, 12.34, 0.061, 0.5437),
            Choice("--adaptive dataset", 500, 12, 8000, 300_000, 20.0, 3.0, 0.064, 0.5457),
        ),
        peak_memory_gb=0.5, warnings=("too few.",),
    )  # fmt: skip


@pytest.fixture(scope="module")
def chromium():
    """One browser for all tests of a file: while it is there, nothing else can have a loop of events in this thread."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    path = os.environ.get("ICE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("needs Chromium: install it, or set ICE_CHROMIUM to its path")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium):
    """An address -> the page there; it fails the test if anything is fetched, logged as an error, or asked."""
    contexts, faults = [], []

    def build(url, *, width=1280, height=900, drawn=False, shown="#detail h3", **options):
        context = chromium.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        context.set_offline(True)
        context.set_default_timeout(10_000)
        page = context.new_page()
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda r: None if r.url.startswith(("file:", "data:", "blob:")) else faults.append(r.url))
        page.goto(url)
        page.wait_for_selector(shown)
        if drawn:
            page.wait_for_selector("html[data-drawn]")
        return page

    yield build
    for context in contexts:
        context.close()
    assert faults == []


@pytest.fixture(scope="session")
def chains(tmp_path_factory):
    """A step-level run: every step but the first carries the answer; texts hold markup."""
    from tests.report.chain_runs import chain_run

    return chain_run(tmp_path_factory.mktemp("chains") / "explained")


@pytest.fixture(scope="session")
def shy_chains(tmp_path_factory):
    """Short chains without explanations; one reply in four cannot be read."""
    from tests.report.chain_runs import Shy, chain_run

    path = tmp_path_factory.mktemp("shy") / "plain"
    return chain_run(path, behave=Shy(steps=3), steps=3, attributions=(), operators=("delete",), k=(0.2,), count=4)
