"""A sequential comparison of one rationale."""

from types import SimpleNamespace

import numpy as np

from ice_eval.stats import STOP_AFTER, compare_all_sequentially, effect_size


def sequential(observed, stream, *, h=STOP_AFTER):
    """The comparison of one rationale with its stream: its numbers, its draws, and whether both tails have stopped."""
    draws = np.asarray(stream, dtype=np.float64)
    found = compare_all_sequentially(np.array([float(observed)]), draws[None], np.array([draws.size]), h=h)
    rates = {name: float(value[0]) for name, value in vars(found.rates).items()}
    counts = {name: int(getattr(found, name)[0]) for name in ("n_upper", "n_lower", "n_used", "n_rated")}
    return SimpleNamespace(**rates, **counts, stopped=bool(found.stopped[0]), null=draws[: counts["n_rated"]])


def compare_sequentially(observed, stream, *, whole, h=STOP_AFTER):
    """The same, with its effect size; None until both tails have stopped, unless the stream is `whole`."""
    if len(stream) == 0 and not whole:
        return None
    found = sequential(observed, stream, h=h)
    if not (found.stopped or whole):
        return None
    found.null = found.null.tolist()
    found.effect_size = effect_size(observed, np.array(found.null))
    return found
