"""Workers on the nodes of a Ray cluster. What a worker loses, when it or its node dies, another one does again."""

import contextlib
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ice_eval.errors import ConfigError
from ice_eval.executors._base import Executor, Say, W, executor
from ice_eval.executors._ray_crew import Needs, RayCrew, first_line
from ice_eval.executors._ray_seat import ray_package

_KNOCK_S = 10.0


@executor("ray")
@dataclass(frozen=True, kw_only=True)
class Ray(Executor):
    """Workers on the nodes of a Ray cluster: one per GPU, or one for as many CPUs as it has threads."""

    address: str | None = None
    """Of a cluster that is there; None: what $RAY_ADDRESS says, else one that is started here."""
    gpus_per_worker: float | None = None
    """GPUs of each worker, or a share of one; None: 1 where the cluster has GPUs, else 0."""

    def __post_init__(self) -> None:
        gpus = self.gpus_per_worker
        if gpus is not None and not (0 <= gpus <= 1 or (gpus > 1 and float(gpus).is_integer())):
            raise ConfigError(f"gpus per worker = {gpus}: 0, a share such as 0.5, or a whole number is expected.")

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Join the cluster, unless this process has done so, and leave it as it was found."""
        ray = ray_package()
        if ray.is_initialized():
            yield
            return
        address = self.address or os.environ.get("RAY_ADDRESS", "")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # of a cluster that is started here
        try:
            _knock(address)
            ray.init(address=self.address, include_dashboard=False, logging_level="error", log_to_driver=False)
        except (ConnectionError, ValueError, RuntimeError, OSError) as exc:
            raise ConfigError(
                f"no Ray cluster could be joined at {address or 'this machine'} ({first_line(exc)}); start one "
                "with `ray start --head`, or leave out the address to have one started here."
            ) from exc
        try:
            yield
        finally:
            ray.shutdown()

    def crew(self, make: Callable[[], W], *, threads: int | None = None, say: Say | None = None) -> "RayCrew[W]":
        nodes = [node["Resources"] for node in ray_package().nodes() if node["Alive"]]
        needs = self._needs(nodes, threads or 1)
        if not any(map(needs.fit_into, nodes)):
            raise ConfigError(
                f"no node of the Ray cluster has what a worker needs, {needs}; its nodes have "
                f"{'; '.join(str(Needs.of(node)) for node in nodes)}. Give another --gpus-per-worker."
            )
        return RayCrew(make, needs, say or (lambda message: None))

    def _needs(self, nodes: Sequence[dict[str, float]], threads: int) -> Needs:
        """What a worker takes: a GPU where there are any and nothing else is said, and CPUs for its threads."""
        gpus = self.gpus_per_worker
        if gpus is None:
            gpus = 1.0 if any(node.get("GPU", 0) >= 1 for node in nodes) else 0.0
        if gpus:  # the host has little to do
            return Needs(cpus=1.0, gpus=gpus)
        most = max((node.get("CPU", 0.0) for node in nodes), default=0.0)
        return Needs(cpus=max(min(float(threads), most), 1.0), gpus=0.0)


def _knock(address: str) -> None:
    """Whether somebody listens at HOST:PORT; Ray itself would try for minutes.

    Raises:
        OSError: Nobody does.
    """
    host, colon, port = address.rpartition("//")[2].rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=_KNOCK_S).close()
