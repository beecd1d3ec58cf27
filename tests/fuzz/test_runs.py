"""Whole runs of random texts: every row of the ledger keeps what it says, whatever the texts are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz.odd_texts import texts
from tests.rows import ledger_rows
from tests.small_runs import run, task_of

from ice_eval.encoding import encode
from ice_eval.errors import IceError
from ice_eval.models.toy import Toy
from ice_eval.operators import operators
from ice_eval.records import Example, Kind

ON_TEXTS = [name for name, each in operators.items() if "token" in each.units]
N_RUNS = {"ordinary": 6, "slow": 150}


def check(row, item):
    """Kept tokens are there in order, and nothing else has moved."""
    name = row.key.operator
    kept = item.tokens_kept(np.isin(np.arange(item.n_units), row.kept))
    if row.key.kind == Kind.FULL:
        assert list(row.input_ids) == item.ids.tolist()
    elif row.key.kind == Kind.EMPTY:
        assert list(row.input_ids) == item.empty().ids.tolist()
    elif name == "delete":
        assert list(row.input_ids) == item.ids[kept].tolist()
    else:
        assert len(row.input_ids) == len(row.segment_ids) == len(item.ids)
        assert np.array(row.input_ids)[kept].tolist() == item.ids[kept].tolist()


def fuzz(*, n_runs, fixed):
    """Run random texts; returns how many texts were checked under an operator."""
    checked = 0

    @settings(max_examples=n_runs, derandomize=fixed, database=None)
    @given(
        found=st.lists(texts(), min_size=3, max_size=3),
        unit=st.sampled_from(["token", "word"]),
        direction=st.sampled_from(["sufficiency", "necessity"]),
        k=st.sampled_from([0.1, 0.2, 0.5]),
    )
    def law(found, unit, direction, k):
        nonlocal checked
        task = task_of([*found, "a good film with a slow start", "the worst mess of a very long year"])
        try:
            done = run(task, model="toy", operators=ON_TEXTS, unit=unit, directions=[direction], k=k, m=4)
        except IceError as exc:
            assert "infill" in str(exc)  # texts of which nothing may be written
            return
        codec = Toy().codec
        rows = {row.example_id: row for part in done.folder.parts() for row in done.folder.inputs(part)}
        assert [rows[str(place)].fields["text"] for place in range(3)] == found
        items = {
            name: encode(codec, task, Example(name, row.fields), unit=unit)
            for name, row in rows.items()
            if row.skip_reason is None
        }
        for name, item in items.items():
            assert rows[name].spans == item.spans
        ledger = ledger_rows(done.folder)
        assert {row.key.example_id for row in ledger} == set(items)
        for row in ledger:
            check(row, items[row.key.example_id])
        checked += len({(row.key.example_id, row.key.operator) for row in ledger if row.key.operator is not None})

    law()
    return checked


def test_rows_of_any_run_keep_what_they_say(record_property):
    checked = fuzz(n_runs=N_RUNS["ordinary"], fixed=True)
    assert checked >= 2 * len(ON_TEXTS) * N_RUNS["ordinary"]  # two of the five texts are long enough always
    record_property("fuzz_cases", checked)


@pytest.mark.slow
def test_rows_of_many_other_runs_keep_what_they_say(record_property):
    tried = fuzz(n_runs=N_RUNS["slow"], fixed=False)
    assert tried >= N_RUNS["slow"]
    record_property("fuzz_cases", tried)
