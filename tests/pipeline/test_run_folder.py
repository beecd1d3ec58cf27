"""What a run writes."""

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.small_runs import lines_of, rows_of
from tests.toy_runs import Counting, reviews, run

from ice_eval.errors import ConfigError
from ice_eval.results import SCHEMA


def test_the_manifest_says_what_was_run_and_what_it_cost(tmp_path):
    model = Counting()
    found = run(model=model, out=tmp_path / "run")
    manifest = found.folder.manifest()
    assert (manifest.schema, manifest.status, manifest.config.seed) == (SCHEMA, "complete", 0)
    assert manifest.labels == ("negative", "positive")
    assert manifest.cost.rows == len(rows_of(found)) == sum(manifest.cost.rows_by_kind.values())
    tried = 2 * 4  # before the first row: full and empty inputs of two examples, together and each alone
    assert manifest.cost.forwards + manifest.noise_guard.rows + tried == model.asked
    assert manifest.cost.forwards <= manifest.cost.rows
    assert manifest.cost.rows_by_kind == {
        "empty": 24,
        "full": 24,
        "random": 24 * 9 * 2,
        "rationale": 48 * (1 + 8),  # delete, and infill with as many fills as sets
    }
    assert manifest.identity["m"] == manifest.config.m == 8 and manifest.config_hash
    assert manifest.token_budget and manifest.versions["python"]
    assert manifest.threads is None  # the toy has none of its own
    assert manifest.cost.tokens > 0 and set(manifest.cost.attribution_seconds) == {"attention", "random"}


def test_every_logical_row_has_its_own_key(tmp_path):
    found = run(k=[0.2, 0.35], n_fills=2, out=tmp_path / "run")
    keys = [row.key for row in rows_of(found)]
    assert len(set(keys)) == len(keys)


def test_lines_of_examples_match_the_contract(tmp_path):
    found = run([*reviews(4), {"text": "one"}], out=tmp_path / "run")
    lines = pq.read_table(found.path / "examples.parquet").to_pylist()
    assert len(lines) == 5 * 2 * 3
    contract = {
        "win_rate": float, "win_rate_strict": float, "tie_rate": float, "p_value": float, "p_lower": float,
        "effect_size": (float, type(None)), "nsr": (float, type(None)), "weak_signal": bool, "negative_signal": bool,
        "ties": bool, "rationale": list,
    }  # fmt: skip
    for line in lines:
        names = ("example_id", "attribution", "operator", "k", "direction")
        assert all(isinstance(line[name], str) for name in names)
        if line["example_id"] == "4":
            assert isinstance(line["error"], str) and all(line[name] is None for name in contract)
        else:
            assert all(isinstance(line[name], kind) for name, kind in contract.items()) and line["error"] is None
            assert len(line["rationale"]) == 2 and line["rationale"] == sorted(line["rationale"])


def test_rationales_are_the_top_units_of_the_recorded_attributions(finished):
    vectors = {row.example_id: row.attributions["random"] for part in (0, 1) for row in finished.folder.inputs(part)}
    for line in lines_of(finished, attribution="random", operator="delete"):
        top = np.argsort(vectors[line.example_id])[::-1][: len(line.rationale)]
        assert line.rationale == tuple(sorted(top.tolist()))


def test_an_unfinished_run_is_not_rescored(tmp_path):
    found = run(out=tmp_path / "run")
    found.folder.write_manifest(replace(found.folder.manifest(), status="running"))
    with pytest.raises(ConfigError, match="holds an unfinished run; run the same command again"):
        found.rescore()
