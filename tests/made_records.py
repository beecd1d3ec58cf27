"""Records of results with plain values, for tests that need some of their fields."""

from dataclasses import fields

from ice_eval.results.records import (
    AgreementLine,
    DataInfo,
    Manifest,
    RobustnessLine,
    RunSettings,
    Summary,
    SummaryLine,
)
from ice_eval.settings import RunConfig
from ice_eval.stats import ANTI_FAITHFUL, PATTERNS, POSITIVE, WORDS, ReasoningVerdict, Verdict


def settings(**changes):
    """Settings of a run of the toy model, all of them defaults but for some."""
    usual = RunConfig(m=9)
    known = {field.name: getattr(usual, field.name) for field in fields(RunConfig)}
    named = {"model": "toy", "task": "demo", "own_size": (), "by_magnitude": ()}
    return RunSettings(**{**known, **named, **changes})


IDENTITY = {"weights": "0", "dtype": "float32", "data": "0", "chat": False, "system": None}


def manifest(**changes):
    """The manifest of a finished run."""
    made = {
        "status": "complete", "config": settings(), "attributions": {}, "config_hash": "0", "identity": IDENTITY,
        "labels": ("negative", "positive"), "label_ids": ((0,), (1,)), "label_scoring": "first",
        "data": DataInfo(origin="nowhere", examples=1), "prompt": "{text}", "device": "cpu", "threads": 1,
        "token_budget": 100, "part_size": 16, "flags": (), "versions": {}, "started": "2026-01-01T00:00:00+00:00",
        "messages": (),
    }  # fmt: skip
    return Manifest(**{**made, **changes})


HEAD = {"model": "toy", "task": "demo", "attribution": "mine", "direction": "sufficiency", "k": 0.2, "null": "size"}


def summary_line(**changes):
    """A configuration without numbers."""
    made = {**HEAD, "operator": "delete", "n": 100, "n_skipped": 0, "accuracy": None, "flags": ()}
    return SummaryLine(**{**made, **changes})


def agreement_line(**changes):
    """Two operators without numbers."""
    return AgreementLine(**{**HEAD, "operators": ("delete", "infill"), "n": 100, **changes})


def robustness_line(**changes):
    """All operators without numbers."""
    return RobustnessLine(**{**HEAD, "operators": ("delete", "infill"), "n": 100, **changes})


def summary(configurations=(), agreement=(), robustness=(), kappa=(), chains=None):
    """A summary of some lines."""
    return Summary(
        configurations=tuple(configurations),
        agreement=tuple(agreement),
        robustness=tuple(robustness),
        kappa=tuple(kappa),
        chains=chains,
    )


def verdict_of(text):
    """The verdict that reads as `text`; None for None."""
    if text is None:
        return None
    word, _, ties = text.partition(": ")
    assert word in WORDS
    tie_rate = int(ties.removesuffix(" % of sets tie")) / 100 if ties else None
    return Verdict(word=word, excludes_chance=word in (ANTI_FAITHFUL, *POSITIVE), tie_rate=tie_rate)


def reasoning_of(text):
    """The verdict on chains that reads as `text`; None for None."""
    if text is None:
        return None
    if text.startswith("undetermined ("):
        return ReasoningVerdict(reason=text.removeprefix("undetermined (").removesuffix(")"))
    words = tuple(word for word in PATTERNS if word in text.split(" or "))
    return ReasoningVerdict(words=words, pattern=words[0] if len(words) == 1 else None)
