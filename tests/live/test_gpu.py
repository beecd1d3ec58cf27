"""On a GPU: batches in half precision against plain forwards, and parts that overtake each other."""

import gc

import numpy as np
import pytest
import torch
from tests.helpers import save_tiny
from tests.rows import join, ledger_rows

import ice_eval as ice
from ice_eval.encoding import encode, shared_prefix
from ice_eval.models import load_model
from ice_eval.tasks import load_task

pytestmark = pytest.mark.gpu


@pytest.fixture
def evaluate(tmp_path):
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    save_tiny(tmp_path / "model", "qwen2")

    def run(device, dtype, n=40, m=10, **settings):
        model = load_model(str(tmp_path / "model"), device=device, dtype=dtype)
        found = ice.evaluate(model, "demo", n=n, m=m, attributions=["attention", "gradient", "random"], **settings)
        return found, ledger_rows(found.folder)

    return run


def test_float32_on_a_gpu_gives_the_scores_of_a_cpu(evaluate):
    here, there = evaluate("cuda", "float32"), evaluate("cpu", "float32")
    assert [row.key for row in here[1]] == [row.key for row in there[1]]
    same = [a for a, b in zip(here[1], there[1], strict=True) if a.input_ids == b.input_ids]
    assert len(same) > 0.98 * len(here[1])  # a near-tie of two attributions may fall either way
    for a, b in zip(here[1], there[1], strict=True):
        if a.input_ids == b.input_ids:
            np.testing.assert_allclose(a.scores, b.scores, atol=2e-3)


def test_a_second_run_is_the_same_bit_for_bit(evaluate):
    first, second = evaluate("cuda", "bfloat16"), evaluate("cuda", "bfloat16")
    assert first[1] == second[1]
    assert first[0].folder.summary() == second[0].folder.summary()


def test_half_precision_stays_within_its_noise(evaluate):
    exact = {row.key: row for row in evaluate("cpu", "float32")[1]}
    found, rows = evaluate("cuda", "bfloat16")
    assert found.folder.manifest().noise_guard.probability < 0.1
    close = [
        np.abs(np.exp(row.scores) - np.exp(exact[row.key].scores)).max()
        for row in rows
        if row.input_ids == exact[row.key].input_ids
    ]
    assert np.median(close) < 0.02


def test_running_out_of_memory_is_survived(evaluate):
    plain = evaluate("cuda", "float32", n=16, m=300)[1]
    gc.collect()
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 1e8) / total)
    try:
        found, rows = evaluate("cuda", "float32", n=16, m=300, token_budget=2**22)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert "out_of_memory" in found.folder.manifest().flags
    assert found.folder.manifest().cost.token_budgets_by_length
    for a, b in zip(rows, plain, strict=True):
        if a.input_ids == b.input_ids:
            np.testing.assert_allclose(a.scores, b.scores, atol=2e-3)


def test_a_prefix_is_not_read_before_it_is_there(evaluate, tmp_path):
    """Computed behind other work on one stream, read at once on the other."""
    model = load_model(str(tmp_path / "model"), device="cuda", dtype="bfloat16")
    task = load_task("demo")
    items = [encode(model.codec, task, example) for example in task.examples()[:4]]
    rows, labels, prefix = join(item.full() for item in items), model.labels(task), shared_prefix(items)
    right = model.log_scores(rows, labels, prefix=prefix)
    for _ in range(3):
        model._cached = None
        torch.cuda._sleep(200_000_000)  # a tenth of a second
        behind = model.submit(rows, labels, prefix=prefix)
        with model.ahead():
            at_once = model.log_scores(rows, labels, prefix=prefix)
        np.testing.assert_array_equal(at_once, right)
        np.testing.assert_array_equal(behind.collect(), right)


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("family", ["bert", "distilbert", "roberta"])
def test_the_host_does_not_wait_while_a_classifier_scores(tmp_path, family, dtype):
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    save_tiny(tmp_path / "model", family)
    model, task = load_model(str(tmp_path / "model"), device="cuda", dtype=dtype), load_task("demo")
    rows, labels = (
        join(encode(model.codec, task, example).full() for example in task.examples()[:24]),
        model.labels(task),
    )
    assert np.ptp(rows.lengths) > 0
    assert model.check(rows, labels, prefix=0) == []
    right = model.log_scores(rows, labels)
    try:
        torch.cuda.set_sync_debug_mode("error")
        pending = [model.submit(batch, labels) for batch in (rows, rows.take([0, 0, 0]), rows)]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    for found in (pending[0].collect(), pending[2].collect()):
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("family", ["bert", "modernbert", "roberta"])
def test_attention_and_gradient_of_a_classifier_are_those_of_a_cpu(tmp_path, family):
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    save_tiny(tmp_path / "model", family)
    task = load_task("demo")

    def observed(device):
        model = load_model(str(tmp_path / "model"), device=device, dtype="float32")
        items = [encode(model.codec, task, example) for example in task.examples()[:8]]
        with model.ahead():
            return model.observe(items, [0, 1] * 4, model.labels(task), {"attentions", "gradients"})

    here, there = observed("cuda"), observed("cpu")
    for one, other in zip(here.attentions, there.attentions, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    for one, other in zip(here.gradients, there.gradients, strict=True):
        np.testing.assert_allclose(one.gradient, other.gradient, atol=1e-3 * np.abs(other.gradient).max())
