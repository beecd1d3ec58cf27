"""Chains of thought of a real model behind real servers on this machine."""

import pytest
from tests.live.serving import transformers_serve

import ice_eval as ice
from ice_eval.servers import read_responses

pytestmark = [pytest.mark.slow, pytest.mark.real, pytest.mark.smollm2]

SETTINGS = {
    "n": 5,
    "m": 4,
    "repeats": 2,
    "max_tokens": 160,
    "answer_tokens": 24,
    "worked_example": True,
    "operators": ("delete", "truncate"),
}


def evaluated(url, model, task, shared_data, out):
    served = ice.Served(model, base_url=url, concurrency=2)
    data = shared_data / f"{task.partition('/')[0]}.jsonl"
    found = ice.evaluate(served, task, data=data, out=out, **SETTINGS)
    content = found.folder.summary().chains
    responses = list(read_responses(out / "responses.jsonl"))
    assert len({response.key for response in responses}) == len(responses), "nothing is asked twice"
    assert content.problems.n == 5 and 1 <= content.problems.n_evaluated <= 5
    every = next(line for line in content.capacity if line.chains == "all")
    assert every.n == content.problems.n_evaluated
    for name in ("necessity", "sufficiency", "src", "src_adjusted"):
        assert getattr(every, name) is None or 0 <= getattr(every, name) <= 1
    assert 0 <= content.truncate.kept[0].rate <= 1
    return found, responses


@pytest.mark.parametrize("task", ["gsm8k", "sst2/reasoning"])
def test_llama_cpp_writes_chains_and_concludes_from_their_steps(llama, shared_data, tmp_path, task):
    found, responses = evaluated(llama, "smollm2", task, shared_data, tmp_path / "run")
    assert found.folder.summary().chains.noise_floor.rate is not None
    assert all(response.usage is not None for response in responses)


@pytest.mark.parametrize("task", ["gsm8k", "sst2/reasoning"])
def test_transformers_serve_does_too(smollm2, shared_data, tmp_path, task):
    folder = str(smollm2.codec.tokenizer.name_or_path)
    with transformers_serve(folder, tmp_path / "log") as url:
        evaluated(url, folder, task, shared_data, tmp_path / "run")
