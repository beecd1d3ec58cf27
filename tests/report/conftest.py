import pytest


@pytest.fixture
def line():
    """One configuration of a summary, as `summary.json` has it, with changes."""

    def build(**changes):
        return {
            "model": "toy", "task": "demo", "attribution": "gradient", "operator": "delete", "direction": "sufficiency",
            "k": 0.2, "null": "size", "n": 60, "n_skipped": 0, "accuracy": 0.9, "win_rate": 0.7321,
            "win_rate_ci": [0.681, 0.7849],
            "win_rate_strict": 0.73, "tie_rate": 0.0, "p_value": 0.0001, "effect_size": 1.234,
            "effect_size_median": 1.1, "effect_word": "large", "nsr": 0.5, "nsr_median": 0.4, "significant_rate": 0.3,
            "significant_reason": None, "significant_floor_share": 0.196, "nonnull_share": 0.4,
            "nonnull_share_low": 0.2, "weak_signal_rate": 0.0, "negative_signal_rate": 0.1,
            "win_rate_nsr_order": 0.7, "detectable_win_rate": 0.58, "taxonomy": "faithful", "verdict": "faithful",
            "excludes_chance": True, "flags": [], **changes,
        }  # fmt: skip

    return build


@pytest.fixture
def agreement():
    """One comparison of two operators, with changes."""

    def build(**changes):
        return {
            "model": "toy", "task": "demo", "attribution": "gradient", "k": 0.2, "direction": "sufficiency",
            "null": "size", "operators": ["delete", "infill"], "n": 60, "gap": 0.0456, "gap_ci": [-0.012, 0.103],
            "p_crosses": 0.2,             "crosses_threshold": "no", "same_taxonomy": True, "rank_correlation": 0.41,
            "rank_correlation_ceiling": 0.93, "disagree_rate": 0.125, "disagree": ["7"], **changes,
        }  # fmt: skip

    return build


@pytest.fixture
def summary(line, agreement):
    """Changes of each configuration -> a summary."""

    def build(*lines, agreements=()):
        return {
            "schema": 1,
            "configurations": [line(**changes) for changes in lines or [{}]],
            "agreement": [agreement(**changes) for changes in agreements],
        }

    return build
