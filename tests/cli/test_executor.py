import json

import pytest

RUN = ("run", "--model", "toy", "--task", "demo", "--n", 4, "--m", 5, "--operators", "delete", "--out", "run")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--executor", "rai"], "ice: no executor named 'rai'; did you mean 'ray'? Known: local, ray."),
        (
            ["--address", "auto"],
            "ice: address = 'auto' does not apply to the executor 'local'; leave it out, or use the executor 'ray'.",
        ),
        (
            ["--executor", "ray", "--gpus-per-worker", "1.5"],
            "ice: gpus per worker = 1.5: 0, a share such as 0.5, or a whole number is expected.",
        ),
    ],
)
def test_an_executor_that_cannot_be_is_bad_input(ice, tmp_path, options, message):
    for command in (RUN, ("bench", "--preset", "quick", "--out", "bench")):
        done = ice(*command, *options)
        assert (done.code, done.out, done.err.strip()) == (2, "", message)
        assert list(tmp_path.iterdir()) == []


def test_the_executor_may_stand_in_a_configuration_file(ice, tmp_path):
    (tmp_path / "run.yaml").write_text("executor: local\n")
    assert json.loads(ice(*RUN, "--config", "run.yaml", "--json").out)["configurations"]
    (tmp_path / "run.yaml").write_text("executor: nowhere\n")
    assert ice(*RUN, "--config", "run.yaml").code == 2
