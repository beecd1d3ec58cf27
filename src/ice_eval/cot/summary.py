"""All statistics of a step-level run, from its folder: those of every run, and what is said of chains only."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval import stats
from ice_eval._files import write_json
from ice_eval._seeding import rng_for
from ice_eval.cot.ledger import ANSWER, changed
from ice_eval.cot.levels import level_lines
from ice_eval.cot.measures import CUTS, ChainRows, Rate, capacity_lines, chain_rows, listed, mean_line, rate_of
from ice_eval.results import InputRow, LedgerRow, RunFolder, rescore
from ice_eval.results.summary import outcomes_by_configuration

RAW_THRESHOLD, WIN_RATE_THRESHOLD = 0.5, 0.55
"""From here on a raw score, or a win rate, counts as evidence for an explanation (the paper's head-to-head)."""


def rescore_chains(folder: RunFolder) -> dict[str, Any]:
    """Compute all statistics again from inputs and ledger, and return the summary."""
    summary = rescore(folder)
    config = folder.manifest()["config"]
    inputs, chains = _read(folder)
    content: dict[str, Any] = {
        "problems": _problems(inputs),
        "steps": _steps(chains),
        "noise_floor": {**mean_line([chain.floor for chain in chains], seed=config["seed"]), "n": len(chains)},
        "no_steps": {**mean_line([chain.empty for chain in chains], seed=config["seed"]), "n": len(chains)},
        "capacity": list(capacity_lines(chains, config)),
        "operator_dependence": list(_dependence(chains, config)),
        **{name: _ARRANGED[name](chains, config) for name in config["arrangements"] if name in _ARRANGED},
        **({"levels": list(level_lines(folder, seed=config["seed"]))} if config["levels"] else {}),
        "raw": list(_raw(folder, config, summary)),
    }
    content["raw_agreement"] = _agreement(content["raw"])
    for line in summary["configurations"]:
        line["accuracy"] = content["problems"]["accuracy"]  # of the chains: rows have no right answer of their own
    summary = {**summary, "cot": content}
    write_json(folder.path / "summary.json", summary)
    return summary


def _read(folder: RunFolder) -> tuple[list[InputRow], list[ChainRows]]:
    inputs, chains = [], []
    for part in folder.parts():
        rows: Mapping[str, list[LedgerRow]] = defaultdict(list)
        for row in folder.ledger(part, probes=False):
            rows[row.key.example_id].append(row)
        for example in folder.inputs(part):
            inputs.append(example)
            if example.skip_reason is None:
                chains.append(chain_rows(example, rows[example.example_id]))
    return inputs, chains


def _problems(inputs: Sequence[InputRow]) -> dict[str, Any]:
    right = [example.gold == 0 for example in inputs if example.gold is not None]
    skipped = Counter(example.skip_reason for example in inputs if example.skip_reason is not None)
    return {
        "n": len(inputs),
        "n_evaluated": len(inputs) - sum(skipped.values()),
        "skipped": dict(skipped.most_common()),
        "n_unreadable": sum(ANSWER not in example.fields for example in inputs),
        "n_gold": len(right),
        "accuracy": float(np.mean(right)) if right else None,
    }


def _steps(chains: Sequence[ChainRows]) -> dict[str, Any]:
    counts = [chain.n_steps for chain in chains]
    if not counts:
        return {"mean": None, "median": None, "least": None, "most": None}
    return {
        "mean": float(np.mean(counts)),
        "median": float(np.median(counts)),
        "least": min(counts),
        "most": max(counts),
    }


def _dependence(chains: Sequence[ChainRows], config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """How necessity and sufficiency differ between operators, over the same chains."""
    for k, pair, measure in itertools.product(
        config["k"], itertools.combinations(config["operators"], 2), ("necessity", "sufficiency")
    ):
        rates = [[getattr(chain, measure)(name, k, config["p"]).point for name in pair] for chain in chains]
        known = np.array([each for each in rates if not np.isnan(each).any()]).reshape(-1, 2)
        yield {"k": k, "operators": list(pair), "measure": measure, "n": len(known), **_gap(known, config["seed"])}


def _gap(pairs: NDArray[np.float64], seed: int) -> dict[str, Any]:
    if not len(pairs):
        return {"gap": None, "gap_ci": None}
    first, second = pairs.T
    interval = stats.difference_interval(first, second, rng=rng_for(seed, "bootstrap"))
    return {"gap": float((first - second).mean()), "gap_ci": listed(interval)}


def _shuffled(chains: Sequence[ChainRows], config: Mapping[str, Any]) -> dict[str, Any]:
    """How often the same steps in another order give another answer."""
    rates = [rate_of(changed(rows)) for chain in chains if (rows := chain.arranged("shuffle"))]
    return {**mean_line(rates, seed=config["seed"]), "n": len(rates)}


def _truncated(chains: Sequence[ChainRows], config: Mapping[str, Any]) -> dict[str, Any]:
    """How often a part of the chain gives its answer, and the share of steps from which on it stands."""
    curve, settled = defaultdict[float, list[Rate]](list), []
    for chain in chains:
        kept = chain.kept_when_cut()
        for share in CUTS:
            curve[share].append(rate_of(kept[[int(share * chain.n_steps + 1e-9)]]))
        settled.append(_settled(kept))
    known = np.array([share for share in settled if share is not None])
    interval = stats.mean_interval(known, rng=rng_for(config["seed"], "bootstrap")) if known.size else None
    return {
        "kept": [{"share": share, **mean_line(curve[share], seed=config["seed"])} for share in CUTS],
        "settled": float(known.mean()) if known.size else None,
        "settled_ci": listed(interval),
        "n": int(known.size),
    }


def _settled(kept: NDArray[np.float64]) -> float | None:
    """The share of steps after which every cut gives the chain's own answer; None where all steps do not."""
    if np.isnan(kept).any() or not kept[-1]:
        return None
    missed = np.flatnonzero(kept == 0)
    return float((missed[-1] + 1 if missed.size else 0) / (len(kept) - 1))


_ARRANGED = {"shuffle": _shuffled, "truncate": _truncated}


def _raw(folder: RunFolder, config: Mapping[str, Any], summary: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Raw scores as ERASER has them beside win rates: is a large score one that random steps would have, too?"""
    lines = {_place(line): line for line in summary["configurations"]}
    for cell, outcomes in outcomes_by_configuration(folder, config).items():
        used = outcomes.select(outcomes.sound)
        if not len(used):
            continue
        sufficient, kept = cell.direction == "sufficiency", used.column("score")
        raw = float(np.mean(kept if sufficient else used.column("score_full") - kept))
        win_rate = lines[_place(cell._asdict())]["win_rate"]
        evidence = raw >= RAW_THRESHOLD, win_rate >= WIN_RATE_THRESHOLD
        yield {
            "attribution": cell.attribution,
            "operator": cell.operator,
            "k": cell.k,
            "measure": "sufficiency" if sufficient else "comprehensiveness",
            "n": len(used),
            "raw": raw,
            "win_rate": win_rate,
            "raw_positive": evidence[0],
            "win_rate_positive": evidence[1],
            "agree": evidence[0] == evidence[1],
        }


def _place(line: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(line[name] for name in ("attribution", "operator", "direction", "k", "null"))


def _agreement(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How often raw scores and win rates agree, and who is the more generous where they do not."""
    return {
        "n": len(lines),
        "agree": sum(line["agree"] for line in lines),
        "raw_only": sum(line["raw_positive"] and not line["win_rate_positive"] for line in lines),
        "win_rate_only": sum(line["win_rate_positive"] and not line["raw_positive"] for line in lines),
        "raw_threshold": RAW_THRESHOLD,
        "win_rate_threshold": WIN_RATE_THRESHOLD,
    }
