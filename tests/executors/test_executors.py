import socket
import sys
from types import SimpleNamespace

import pytest
from tests.small_runs import run, texts

from ice_eval import __version__
from ice_eval.errors import ConfigError, MissingExtraError, ModelError
from ice_eval.executors import Local, RayWorkers, Resources, WorkerHost, WorkerResult, executor_named, executors


class Begun:
    def __init__(self, log, item, may_wait):
        self.log, self.item, self.may_wait = log, item, may_wait

    def finish(self):
        self.log.append(f"end {self.item}")
        return self.item * self.item


def worked(items, *, may_wait):
    """What a local worker did, in which order, and what came of it."""
    log = []

    def work(worker, item, progress):
        log.append(f"start {item}")
        progress(item)
        return Begun(log, item, may_wait)

    rows = []
    found = list(Local().workers(lambda: "worker").map(work, items, rows.append))
    assert rows == items
    assert all(each.seconds >= 0 for each in found)
    return log, [(each.item, each.result) for each in found]


def test_one_process_finishes_an_item_before_the_next_one_is_started():
    log, found = worked([1, 2, 3], may_wait=False)
    assert log == ["start 1", "end 1", "start 2", "end 2", "start 3", "end 3"]
    assert found == [(1, 1), (2, 4), (3, 9)]


def test_one_process_starts_the_next_item_first_where_the_last_one_may_wait():
    log, found = worked([1, 2, 3], may_wait=True)
    assert log == ["start 1", "start 2", "end 1", "start 3", "end 2", "end 3"]
    assert found == [(1, 1), (2, 4), (3, 9)]


def test_the_known_executors_and_what_they_are():
    assert executors.names() == ["local", "ray"]
    assert executor_named("local", address=None) == Local()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("rai", {}, "no executor named 'rai'; did you mean 'ray'"),
        ("local", {"address": "auto"}, "address = 'auto' does not apply to the executor 'local'; .* executor 'ray'"),
        ("ray", {"gpus_per_worker": 1e-5}, "gpus per worker = 1e-05: 0, a share such as 0.5"),
        ("ray", {"gpus_per_worker": -1}, "gpus per worker = -1: 0, a share such as 0.5, or a whole number is expected"),
        ("ray", {"gpus_per_worker": 1.5}, "gpus per worker = 1.5"),
    ],
)
def test_executors_that_cannot_be_are_refused_before_anything_is_loaded(name, options, message):
    with pytest.raises(ConfigError, match=message):
        run(texts(2), executor=name, **options)


def test_without_ray_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"'ray' is not installed.*pip install 'ice-eval\[ray\]'"):
        run(texts(2), executor="ray")


def test_an_address_where_nobody_listens_is_told_at_once(tmp_path):
    pytest.importorskip("ray", reason="needs the extra: pip install 'ice-eval[ray]'")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(ConfigError, match=f"no Ray cluster could be joined at {address} .*`ray start --head`"):
            run(texts(2), executor="ray", address=address, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("needs", "node", "n_workers"),
    [
        (Resources(cpus=4, gpus=0), {"CPU": 9.0}, 2),
        (Resources(cpus=4, gpus=0), {"CPU": 3.0, "GPU": 2.0}, 0),
        (Resources(cpus=1, gpus=1), {"CPU": 64.0, "GPU": 8.0}, 8),
        (Resources(cpus=1, gpus=0.1), {"CPU": 64.0, "GPU": 1.0}, 10),
        (Resources(cpus=1, gpus=2), {"CPU": 64.0, "GPU": 3.0}, 1),
        (Resources(cpus=1, gpus=0.4), {"CPU": 64.0, "GPU": 2.0}, 4),
        (Resources(cpus=1, gpus=0.6), {"CPU": 64.0, "GPU": 3.0}, 3),
        (Resources(cpus=1, gpus=0.5), {"CPU": 3.0, "GPU": 2.0}, 3),
        (Resources(cpus=1, gpus=1), {"memory": 1.0}, 0),
    ],
    ids=str,
)
def test_a_node_has_room_for_so_many_workers(needs, node, n_workers):
    assert needs.fit_into(node) == n_workers


class Lost(Exception):
    """What a worker that died has to say."""


def scripted_ray(fates):
    """Ray on one node with room for two workers, which meet these fates in turn and then none: places are told first.

    A fate is `stillborn`, or `dies` with the first item.
    """
    fates = iter(fates)

    def worker(make):
        fate = next(fates, "lives")
        location = Lost("it did not start") if fate == "stillborn" else WorkerHost("node", "host", __version__)

        def work(function, item):
            return 1, Lost("it died") if fate == "dies" else WorkerResult(item * item, rows=1, seconds=0.0)

        return SimpleNamespace(
            location=SimpleNamespace(remote=lambda: (0, location)), work=SimpleNamespace(remote=work), fate=fate
        )

    def wait(said, timeout):
        return [min(said, key=lambda each: each[0])], []

    def get(said):
        if isinstance(said[1], Exception):
            raise said[1]
        return said[1]

    return SimpleNamespace(
        remote=lambda **_: lambda _: SimpleNamespace(remote=worker),
        put=lambda what: what,
        nodes=lambda: [{"Alive": True, "Resources": {"CPU": 2.0}}],
        wait=wait,
        get=get,
        kill=lambda actor: None,
        exceptions=SimpleNamespace(RayError=Lost, RayTaskError=type("TaskError", (Exception,), {})),
    )


def on_scripted_ray(monkeypatch, fates):
    found = scripted_ray(fates)
    monkeypatch.setattr("ice_eval.executors.ray_package", lambda: found)
    workers = RayWorkers(lambda: "worker", Resources(cpus=1, gpus=0), lambda message: None)
    return sorted(each.result for each in workers.map(None, [1, 2], lambda rows: None))


def test_the_last_worker_is_replaced_even_where_others_did_not_start(monkeypatch):
    assert on_scripted_ray(monkeypatch, ["dies", "stillborn", "stillborn", "stillborn"]) == [1, 4]


def test_workers_that_never_start_end_the_run(monkeypatch):
    with pytest.raises(ModelError, match="workers on the Ray cluster do not start"):
        on_scripted_ray(monkeypatch, ["dies", *["stillborn"] * 9])
