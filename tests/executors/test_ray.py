"""Runs on a real Ray cluster end as they do in one process, whatever happens to workers and nodes."""

import functools
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest
from tests.small_grids import content, write_reviews
from tests.small_runs import Waves, results_of, rows_of, run, texts

import ice_eval
from ice_eval import executors
from ice_eval.bench import grid_of, run_grid
from ice_eval.errors import ConfigError, ModelError
from ice_eval.executors import executor_named

ray = pytest.importorskip("ray", reason="needs the extra: pip install 'ice-eval[ray]'")

SETTINGS = {"attributions": ["attention", "lime", "random"], "operators": ["delete", "infill"], "n": 56, "m": 10}
MEMORY = {"object_store_memory": 100 * 2**20}


@pytest.fixture(scope="module")
def cluster():
    """One node with two CPUs, so two workers; runs join it by its address."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")  # or workers wait for all other tests
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        found = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False, **MEMORY})
        yield found
        found.shutdown()


@pytest.fixture(scope="module")
def reviews():
    return texts(56)


@pytest.fixture(scope="module")
def local(reviews, tmp_path_factory):
    """The run in one process."""
    return run(reviews, out=tmp_path_factory.mktemp("local") / "run", **SETTINGS)


@pytest.fixture
def on_cluster(cluster, reviews, tmp_path):
    """Run the same on the cluster."""
    where = {"executor": "ray", "address": cluster.address, "out": tmp_path / "run"}
    return lambda **changes: run(reviews, **SETTINGS | where | changes)


class Heard:
    """A reporter that remembers."""

    def __init__(self):
        self.said, self.scored = [], 0

    def say(self, message):
        self.said.append(message)

    def advance(self, rows, *, scored=True):
        self.scored += rows if scored else 0

    def start(self, total, *, examples): ...
    def correct(self, total): ...
    def stop(self): ...

    def asked_to_stop(self):
        return False


class Mortal(Waves):
    """Meets its fate in every process where it scores parts, before the first rows; checks call `log_scores`."""

    def __init__(self, folder, fate):
        super().__init__()
        self.folder, self.fate, self.met = folder, fate, False
        folder.mkdir()

    def use_threads(self, n_threads):
        if n_threads is not None:
            (self.folder / f"threads-{n_threads}-process-{os.getpid()}").touch()
        return n_threads or 1

    def submit(self, batch, labels, *, prefix=0):
        if not self.met:
            self.met = True
            self.fate(self.folder)
        return super().submit(batch, labels, prefix=prefix)


def taken(path):
    """Whether this process is the first one that asks for a file."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def wait_for(path):
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)


def assert_same(found, local):
    assert results_of(found) == results_of(local)
    assert rows_of(found) == rows_of(local)
    for name in ("ledger", "inputs"):
        files = sorted(path.name for path in (found.path / name).glob("*"))
        assert files == [f"part-{index:06d}-000.parquet" for index in range(4)]


def lost(heard):
    return [message for message in heard.said if "was lost; another worker repeats its part" in message]


def second_dies(folder):
    """The second process is killed over its first rows, and the first one waits for it."""
    (folder / f"process-{os.getpid()}").touch()
    if taken(folder / "first"):
        wait_for(folder / "second")
    elif taken(folder / "second"):
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_run_whose_worker_is_killed_under_a_part_is_the_same(on_cluster, local, tmp_path):
    heard, seen = Heard(), tmp_path / "processes"
    found = on_cluster(model=Mortal(seen, second_dies), reporter=heard)
    assert_same(found, local)
    assert len(lost(heard)) == 1
    processes = {path.name for path in seen.glob("process-*")}
    assert len(processes) >= 2 and f"process-{os.getpid()}" not in processes
    assert found.folder.manifest().threads == 1
    assert all((seen / f"threads-1-{name}").exists() for name in processes)
    assert heard.scored == local.folder.manifest().cost.rows == found.folder.manifest().cost.rows


def broken(texts):
    raise KeyError("no such word")


def test_errors_of_workers_are_the_same_as_in_one_process(cluster, on_cluster, reviews, tmp_path):
    few = {"n": 4, "attributions": ["random"], "operators": ["delete"]}
    with pytest.raises(ModelError) as here:
        run(reviews, model=broken, **few)
    with pytest.raises(ModelError) as there:
        on_cluster(model=broken, **few)
    assert str(there.value) == str(here.value) == "the function broken, given texts, failed: KeyError: 'no such word'"
    assert not ray.is_initialized()


@pytest.fixture
def second_node(cluster):
    """Another node with one CPU."""
    node = cluster.add_node(num_cpus=1, **MEMORY)
    yield node
    if node in cluster.list_all_nodes():
        cluster.remove_node(node)


@pytest.mark.slow
def test_a_run_whose_node_dies_under_a_part_is_the_same(cluster, second_node, on_cluster, local, tmp_path):
    seen, victim, heard = tmp_path / "nodes", second_node.node_id, Heard()

    def fate(folder):
        node = ray.get_runtime_context().get_node_id()
        (folder / node).touch()
        if node == victim:
            time.sleep(600)
        wait_for(folder / victim)

    def kill():
        wait_for(seen / victim)
        cluster.remove_node(second_node, allow_graceful=False)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    found = on_cluster(model=Mortal(seen, fate), reporter=heard)
    killer.join(timeout=60)
    assert_same(found, local)
    assert len(lost(heard)) == 1
    assert (seen / victim).exists() and (seen / cluster.head_node.node_id).exists()
    assert heard.scored == local.folder.manifest().cost.rows == found.folder.manifest().cost.rows


@pytest.fixture
def with_gpus(cluster):
    """Add nodes that declare GPUs; Ray hands them out by number, whether they are there or not."""
    nodes = []

    def add(gpus):
        nodes.append(cluster.add_node(num_cpus=4, num_gpus=gpus, **MEMORY))
        return nodes[-1]

    yield add
    for node in nodes:
        if node in cluster.list_all_nodes():
            cluster.remove_node(node)


def shown_gpus(folder, *, wanted):
    """Note the GPUs that this process may use, and wait until as many processes have as are wanted."""
    (folder / f"gpus-{os.environ.get('CUDA_VISIBLE_DEVICES')}-process-{os.getpid()}").touch()
    deadline = time.monotonic() + 60
    while len(list(folder.glob("gpus-*"))) < wanted and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gpus_per_worker", "seen"),
    [(None, {"0": 1, "1": 1}), (0.5, {"0": 2, "1": 2}), (0.6, {"0": 1, "1": 1}), (2, {"0,1": 1}), (0, {"": 4})],
)
def test_replicas_share_declared_gpus_as_asked(on_cluster, with_gpus, local, tmp_path, gpus_per_worker, seen):
    with_gpus(2)
    folder = tmp_path / "processes"
    model = Mortal(folder, functools.partial(shown_gpus, wanted=sum(seen.values())))
    found = on_cluster(model=model, gpus_per_worker=gpus_per_worker)
    assert_same(found, local)
    assert Counter(path.name.split("-")[1] for path in folder.glob("gpus-*")) == seen


@pytest.mark.slow
def test_more_gpus_than_a_node_has_are_refused_with_what_there_is(on_cluster, with_gpus):
    with_gpus(2)
    there = (
        r"needs, 1 CPU and 3 GPU; its nodes have (2 CPU and 0 GPU; 4 CPU and 2 GPU|4 CPU and 2 GPU; 2 CPU and 0 GPU)"
    )
    with pytest.raises(ConfigError, match=there):
        on_cluster(gpus_per_worker=3)


@pytest.mark.slow
def test_a_run_waits_for_gpus_that_others_hold_and_says_so(cluster, on_cluster, with_gpus, local, monkeypatch):
    monkeypatch.setattr(executors, "_PATIENCE", 1)
    with_gpus(1)
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        holder = ray.remote(num_cpus=0, num_gpus=1)(Counter).remote()
        ray.get(holder.total.remote())

        class Waiting(Heard):
            def say(self, message):
                super().say(message)
                if "waiting for room" in message:
                    ray.kill(holder)

        heard = Waiting()
        assert_same(on_cluster(reporter=heard), local)
    finally:
        ray.shutdown()
    assert "waiting for room on the Ray cluster: a worker needs 1 CPU and 1 GPU." in heard.said


@pytest.mark.slow
@pytest.mark.parametrize("others", [0, 1])
def test_a_part_of_a_lost_node_goes_to_another_gpu_if_there_is_one(
    cluster, on_cluster, with_gpus, local, tmp_path, others
):
    node, *_ = [with_gpus(1) for _ in range(1 + others)]
    seen, victim, heard = tmp_path / "nodes", node.node_id, Heard()

    def fate(folder):
        here = ray.get_runtime_context().get_node_id()
        (folder / here).touch()
        if here == victim:
            time.sleep(600)
        wait_for(folder / victim)

    def kill():
        wait_for(seen / victim)
        cluster.remove_node(node, allow_graceful=False)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    if others:
        assert_same(on_cluster(model=Mortal(seen, fate), reporter=heard), local)
        assert len(lost(heard)) == 1
    else:
        lost_all = r"no node of the Ray cluster has room for a worker any more \(1 CPU and 1 GPU\); the same command"
        with pytest.raises(ModelError, match=lost_all):
            on_cluster(model=Mortal(seen, fate))
    killer.join(timeout=60)
    assert (seen / victim).exists() and not (seen / cluster.head_node.node_id).exists()


def dies(folder):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_part_that_kills_every_worker_ends_the_run_and_says_so(on_cluster, tmp_path):
    with pytest.raises(ModelError, match="the same examples were lost 3 times with their worker, at last on .* memory"):
        on_cluster(model=Mortal(tmp_path / "processes", dies), n=8)


@pytest.mark.slow
def test_what_is_added_on_a_cluster_scores_only_what_is_missing(on_cluster, reviews, tmp_path):
    few, heard = {"n": 20, "operators": ["delete"]}, Heard()
    run(reviews, out=tmp_path / "run", **SETTINGS | few | {"attributions": ["random"]})
    found = on_cluster(**few, attributions=["random", "attention"], reporter=heard)
    whole = run(reviews, **SETTINGS | few | {"attributions": ["random", "attention"]})
    assert results_of(found) == results_of(whole)
    assert heard.scored == 20  # a rationale for each example


@pytest.mark.slow
def test_a_grid_is_the_same_on_a_cluster(cluster, tmp_path):
    grid = grid_of(
        content(write_reviews(tmp_path / "reviews.jsonl", 20), n=20), where="grid", folder=tmp_path, default_name="g"
    )
    here = run_grid(grid, tmp_path / "here")
    there = run_grid(grid, tmp_path / "there", executor=executor_named("ray", address=cluster.address))
    assert [record.status for record in there.records()] == ["complete", "complete"]
    assert there.summary() == here.summary()


@pytest.mark.slow
def test_a_language_model_in_float32_scores_the_same_to_the_last_bit(cluster, tmp_path):
    from tests.helpers import save_tiny

    save_tiny(tmp_path / "llama", "llama")
    settings = SETTINGS | {"attributions": ["attention", "gradient", "lime"], "n": 40, "device": "cpu"}
    here = ice_eval.evaluate(str(tmp_path / "llama"), "demo", **settings)
    where = {"executor": "ray", "address": cluster.address}
    there = ice_eval.evaluate(str(tmp_path / "llama"), "demo", **settings, **where)
    assert results_of(there) == results_of(here)
    assert rows_of(there) == rows_of(here)
    same = ("threads", "token_budget", "identity", "messages", "noise_guard")
    assert [getattr(there.folder.manifest(), name) for name in same] == [
        getattr(here.folder.manifest(), name) for name in same
    ]


SLOW = """
import pathlib, time

def probabilities(texts):
    time.sleep(0.5 if pathlib.Path(__file__).with_name("pause").exists() else 0)
    return [[0.3 + len(text) % 7 / 100, 0.7 - len(text) % 7 / 100] for text in texts]
"""


@pytest.mark.slow
def test_an_interrupted_command_can_be_continued_on_a_cluster_of_its_own_and_without(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    options = "--model python:slow:probabilities --task demo --attributions random --operators delete --m 20"
    command = [sys.executable, "-c", "from ice_eval.cli import main; main()", "run", *options.split(), "--out"]
    on_cluster = ["--executor", "ray"]
    (tmp_path / "home").mkdir()  # where Ray keeps its token
    environment = {**os.environ, "HOME": str(tmp_path / "home"), "RAY_worker_niceness": "0"}

    def start(out, *further):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([*command, out, *further], cwd=tmp_path, env=environment, **pipes)

    (tmp_path / "pause").touch()
    child = start("run", *on_cluster)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("run/inputs/part-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    stdout, stderr = child.communicate(timeout=60)
    assert (child.returncode, stdout) == (130, "")
    assert "run the same command to continue" in " ".join(stderr.split()) and "Traceback" not in stderr
    assert not (tmp_path / "run/summary.json").exists()

    (tmp_path / "pause").unlink()
    for child in (start("run"), start("whole", *on_cluster)):
        _, stderr = child.communicate(timeout=120)
        assert child.returncode == 0, stderr
    assert results_of(ice_eval.Run(tmp_path / "run")) == results_of(ice_eval.Run(tmp_path / "whole"))
