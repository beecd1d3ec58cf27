"""Executors create identical workers and distribute the items of a run among them: in this process, or by Ray."""

import contextlib
import itertools
import os
import socket
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from types import ModuleType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ice_eval import __version__
from ice_eval._registry import Registry
from ice_eval.errors import ConfigError, ModelError, require
from ice_eval.scoring import Progress

W = TypeVar("W")
Item = TypeVar("Item")
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


class PendingResult(Protocol[Result_co]):
    """A result that a device may still be computing."""

    @property
    def may_wait(self) -> bool:
        """True if the next item may be started before this one is finished."""

    def finish(self) -> Result_co:
        """Wait for the result and return it."""


Work = Callable[[W, Item, Progress], PendingResult[Result]]
"""Starts the work of a worker on an item; reports the rows that it scores."""


class FinishedItem(NamedTuple, Generic[Item, Result]):
    """An item, its result, and the worker's time."""

    item: Item
    result: Result
    seconds: float


class Workers(ABC, Generic[W]):
    """One or several identical workers."""

    @abstractmethod
    def ask(self, question: Callable[[W], Result]) -> Result:
        """Call a function with one of the workers and return its result."""

    @abstractmethod
    def map(
        self, work: Work[W, Item, Result], items: Iterable[Item], progress: Progress
    ) -> Iterator[FinishedItem[Item, Result]]:
        """Process every item once with some worker; yield results in order of completion."""

    @abstractmethod
    def release(self) -> None:
        """Stop the workers, even busy ones."""


class Executor(ABC):
    """Factory of workers. Its fields are options that users may set."""

    @abstractmethod
    def workers(
        self, make: Callable[[], W], *, threads: int | None = None, say: Callable[[str], None] | None = None
    ) -> Workers[W]:
        """Return workers, each created by `make`, in its own process, when it is first needed.

        `threads` is the number of threads of each worker, if known; `say` is called with messages for the user.
        """

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Set up what workers need, and shut it down on exit."""
        yield


executors: Registry[type[Executor]] = Registry("executor", "ice_eval.executors")
executor = executors.register
"""Register an executor, a frozen dataclass, under a name; the first line of its docstring describes it."""


def executor_named(name: str, **options: Any) -> Executor:
    """Return the executor of that name, or raise ConfigError; options that are None keep their defaults."""
    chosen = executors.get(name)
    known = {other: {field.name for field in fields(cls)} for other, cls in executors.items()}  # type: ignore[arg-type]
    given = {key: value for key, value in options.items() if value is not None}
    for key, value in given.items():
        if key not in known[name]:
            owners = " or ".join(other for other in known if key in known[other])
            advice = f"leave it out, or use the executor '{owners}'."
            raise ConfigError(f"{key} = {value!r} does not apply to the executor '{name}'; {advice}")
    return chosen(**given)


@executor("local")
@dataclass(frozen=True)
class Local(Executor):
    """One worker, in this process."""

    def workers(
        self, make: Callable[[], W], *, threads: int | None = None, say: Callable[[str], None] | None = None
    ) -> "LocalWorkers[W]":
        return LocalWorkers(make())


class LocalWorkers(Workers[W]):
    """An existing worker."""

    def __init__(self, worker: W) -> None:
        self._worker = worker

    def ask(self, question: Callable[[W], Result]) -> Result:
        return question(self._worker)

    def map(
        self, work: Work[W, Item, Result], items: Iterable[Item], progress: Progress
    ) -> Iterator[FinishedItem[Item, Result]]:
        """Yield results in order; if work may wait, the next item starts before the last one is finished."""
        last, waiting = time.monotonic(), list[tuple[Item, PendingResult[Result]]]()

        def finished() -> FinishedItem[Item, Result]:
            nonlocal last
            item, started = waiting.pop(0)
            result, before = started.finish(), last
            last = time.monotonic()
            return FinishedItem(item, result, last - before)

        for item in items:
            started = work(self._worker, item, progress)
            waiting.append((item, started))
            while len(waiting) > (1 if started.may_wait else 0):
                yield finished()
        while waiting:
            yield finished()

    def release(self) -> None:
        """Do nothing: the worker ends with this process."""


# Workers on the nodes of a Ray cluster. Items lost with a worker or node go to another worker.

_CONNECT_S = 10.0
_LEAST_SHARE = 0.0001  # of a GPU: Ray counts no smaller ones
_LOSSES = 3  # times that an item may be lost with its worker, or workers may fail to start, before the run ends
_POLL_S = 2.0  # interval at which busy workers are polled for progress
_PATIENCE = 10  # polls after which the user is informed that workers wait for resources
_STATUS_GROUP = "status"  # concurrency group of the threads that report progress
_CONTINUES = "run the same command to continue."


def ray_package() -> ModuleType:
    """Import Ray, or raise MissingExtraError."""
    return require("ray", install="ice-eval[ray]", purpose="to spread a run over a cluster (--executor ray)")


def _alive_nodes() -> list[dict[str, float]]:
    return [node["Resources"] for node in ray_package().nodes() if node["Alive"]]


class Resources(NamedTuple):
    """CPUs and GPUs of a worker or a node."""

    cpus: float
    gpus: float

    @classmethod
    def of(cls, node: dict[str, float]) -> "Resources":
        return cls(node.get("CPU", 0.0), node.get("GPU", 0.0))

    def fit_into(self, node: dict[str, float]) -> int:
        """Return the number of such workers that a node can hold."""
        has = Resources.of(node)
        by_cpus = has.cpus // self.cpus
        if not self.gpus:
            return int(by_cpus)
        # A share is of one GPU: what is left of two is not a third one.
        by_gpus = has.gpus // self.gpus if self.gpus >= 1 else has.gpus // 1 * ((1 + 1e-9) // self.gpus)
        return int(min(by_cpus, by_gpus))

    def __str__(self) -> str:
        return f"{self.cpus:g} CPU and {self.gpus:g} GPU"


@executor("ray")
@dataclass(frozen=True, kw_only=True)
class Ray(Executor):
    """Workers on the nodes of a Ray cluster: one per GPU, or one for as many CPUs as it has threads."""

    address: str | None = None
    """Address of an existing cluster; None: $RAY_ADDRESS, else a cluster started here."""
    gpus_per_worker: float | None = None
    """GPUs of each worker, possibly a fraction; None: 1 if the cluster has GPUs, else 0."""

    def __post_init__(self) -> None:
        gpus = self.gpus_per_worker
        shares = gpus == 0 or (gpus is not None and _LEAST_SHARE <= gpus <= 1)
        if gpus is not None and not (shares or (gpus > 1 and float(gpus).is_integer())):
            raise ConfigError(f"gpus per worker = {gpus}: 0, a share such as 0.5, or a whole number is expected.")

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Join the cluster unless this process has already, and leave it on exit."""
        ray = ray_package()
        if ray.is_initialized():
            yield
            return
        address = self.address or os.environ.get("RAY_ADDRESS", "")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # for a cluster started here
        try:
            host, colon, port = address.rpartition("//")[2].rpartition(":")
            if colon and port.isdigit():  # fails at once without a listener; Ray itself would try for minutes
                socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
            ray.init(address=self.address, include_dashboard=False, logging_level="error", log_to_driver=False)
        except (ConnectionError, ValueError, RuntimeError, OSError) as exc:
            raise ConfigError(
                f"no Ray cluster could be joined at {address or 'this machine'} ({_first_line(exc)}); start one "
                "with `ray start --head`, or leave out the address to have one started here."
            ) from exc
        try:
            yield
        finally:
            ray.shutdown()

    def workers(
        self, make: Callable[[], W], *, threads: int | None = None, say: Callable[[str], None] | None = None
    ) -> "RayWorkers[W]":
        nodes = _alive_nodes()
        gpus = self.gpus_per_worker
        if gpus is None:
            gpus = float(any(node.get("GPU", 0) >= 1 for node in nodes))
        most = max((node.get("CPU", 0.0) for node in nodes), default=0.0)
        # With a GPU the host has little to do.
        needs = Resources(cpus=1.0 if gpus else max(min(float(threads or 1), most), 1.0), gpus=gpus)
        if not any(map(needs.fit_into, nodes)):
            raise ConfigError(
                f"no node of the Ray cluster has room for a worker, which needs {needs}; its nodes have "
                f"{'; '.join(str(Resources.of(node)) for node in nodes)}. Give another --gpus-per-worker."
            )
        return RayWorkers(make, needs, say or (lambda message: None))


class WorkerResult(NamedTuple):
    """Message of a worker about a finished item."""

    value: Any
    rows: int
    seconds: float


class WorkerHost(NamedTuple):
    """Node and host of a worker, and its version of ice-eval."""

    node: str
    host: str
    version: str


class RayWorker(Generic[W]):
    """The Ray actor of a worker, which is created on the first call."""

    def __init__(self, make: Callable[[], W]) -> None:
        self._make = make
        self._worker: W | None = None
        self._rows = 0

    def location(self) -> WorkerHost:
        ray = ray_package()
        return WorkerHost(ray.get_runtime_context().get_node_id(), ray.util.get_node_ip_address(), __version__)

    def n_scored(self) -> int:
        """Return the rows of the current item so far; runs in a separate thread."""
        return self._rows

    def work(self, function: Callable[[W, Any, Progress], Any], item: Any) -> WorkerResult:
        self._rows = 0
        if self._worker is None:
            self._worker = self._make()
        started = time.monotonic()
        value = function(self._worker, item, self._advance)
        return WorkerResult(value, self._rows, time.monotonic() - started)

    def _advance(self, rows: int) -> None:
        self._rows += rows


@dataclass(eq=False)
class _Job:
    item: Any
    lost_on: list[str] = field(default_factory=list)  # nodes on which a worker died while processing it


@dataclass(eq=False)
class _Handle:
    """The driver's view of a worker."""

    actor: Any
    awaited: Any  # reference to its next message: its location, then the results of its jobs; None while idle
    location: WorkerHost | None = None  # None until it has started
    job: _Job | None = None
    reported: int = 0  # rows of the job already reported as progress


class RayWorkers(Workers[W]):
    """As many workers as items and resources allow; workers that die are replaced."""

    def __init__(self, make: Callable[[], W], needs: Resources, say: Callable[[str], None]) -> None:
        self._needs, self._say = needs, say
        threads = os.environ.get("OMP_NUM_THREADS") or str(os.cpu_count())
        environment = {"OMP_NUM_THREADS": threads}  # as here: numpy's solvers round by the number of their threads
        if not needs.gpus:
            environment["CUDA_VISIBLE_DEVICES"] = ""
        remote = ray_package().remote(
            num_cpus=needs.cpus,
            num_gpus=needs.gpus,
            max_restarts=0,
            scheduling_strategy="SPREAD",
            runtime_env={"env_vars": environment},
            concurrency_groups={_STATUS_GROUP: 1},
        )
        self._actor_class = remote(RayWorker)
        self._make = ray_package().put(make)
        self._handles: list[_Handle] = []
        self._failed_starts = 0  # workers that died while starting, since the last successful start

    def ask(self, question: Callable[[W], Result]) -> Result:
        [(_, found)] = self._process(lambda worker, item, progress: question(worker), [None], lambda rows: None)
        return found.value  # type: ignore[no-any-return]

    def map(
        self, work: Work[W, Item, Result], items: Iterable[Item], progress: Progress
    ) -> Iterator[FinishedItem[Item, Result]]:
        for item, found in self._process(lambda *given: work(*given).finish(), items, progress):
            yield FinishedItem(item, found.value, found.seconds)

    def release(self) -> None:
        for handle in list(self._handles):
            self._remove(handle)

    def _process(
        self, function: Callable[[W, Item, Progress], Any], items: Iterable[Item], progress: Progress
    ) -> Iterator[tuple[Item, WorkerResult]]:
        """Give every item to a free worker; lost items are given again first."""
        shared, source, waiting = ray_package().put(function), map(_Job, items), deque[_Job]()
        try:
            while True:
                capacity = self._capacity()
                # Take no more items than can be started now: their source may want to stop.
                n_free = max(capacity, len(self._handles)) - len(self._busy)
                waiting.extend(itertools.islice(source, max(n_free - len(waiting), 0)))
                if not waiting and not self._busy:
                    return
                wanted = min(capacity, len(waiting) + len(self._busy))
                # After several failed starts the others continue alone, but one worker is always tried.
                while len(self._handles) < wanted and (self._failed_starts < _LOSSES or not self._handles):
                    actor = self._actor_class.remote(self._make)
                    self._handles.append(_Handle(actor, actor.location.remote()))
                for handle in self._handles:
                    if (job := self._job_for(handle, waiting)) is not None:
                        waiting.remove(job)
                        handle.job, handle.awaited = job, handle.actor.work.remote(shared, job.item)
                handle = self._next_ready(progress)
                message = self._receive(handle)
                if isinstance(message, WorkerResult) and handle.job is not None:
                    progress(message.rows - handle.reported)
                    item, handle.job, handle.reported = handle.job.item, None, 0
                    yield item, message
                elif isinstance(message, Exception):
                    progress(-handle.reported)
                    waiting.extendleft(self._lost(handle, message))
        finally:
            for handle in self._busy:  # their results are not needed
                self._remove(handle)

    @property
    def _busy(self) -> list[_Handle]:
        return [handle for handle in self._handles if handle.job is not None]

    def _capacity(self) -> int:
        """Return the number of workers that the cluster can hold now; nodes come and go."""
        capacity = sum(map(self._needs.fit_into, _alive_nodes()))
        if not capacity:
            raise ModelError(f"no node of the Ray cluster has room for a worker any more ({self._needs}); {_CONTINUES}")
        return capacity

    def _job_for(self, handle: _Handle, waiting: Iterable[_Job]) -> _Job | None:
        """Return the first job that was not lost on this worker's node, unless there is no other node."""
        if handle.location is None or handle.job is not None:
            return None
        node, nodes = handle.location.node, {each.location.node for each in self._handles if each.location is not None}
        return next((job for job in waiting if node not in job.lost_on or nodes <= set(job.lost_on)), None)

    def _next_ready(self, progress: Progress) -> _Handle:
        """Wait for a worker's message, and report progress meanwhile."""
        by_message = {handle.awaited: handle for handle in self._handles if handle.awaited is not None}
        for n_polls in itertools.count(1):
            ready, _ = ray_package().wait(list(by_message), timeout=_POLL_S)
            if ready:
                break
            if n_polls == _PATIENCE and all(handle.location is None for handle in self._handles):
                self._say(f"waiting for room on the Ray cluster: a worker needs {self._needs}.")
            self._poll(progress)
        return by_message[ready[0]]

    def _poll(self, progress: Progress) -> None:
        """Poll busy workers for progress; one that does not answer in time is polled again later."""
        ray = ray_package()
        asked = {each.actor.n_scored.options(concurrency_group=_STATUS_GROUP).remote(): each for each in self._busy}
        ready, _ = ray.wait(list(asked), num_returns=len(asked), timeout=_POLL_S) if asked else ([], [])
        for reference in ready:
            with contextlib.suppress(ray.exceptions.RayError):  # the worker is lost, and so is its job: seen later
                rows, handle = ray.get(reference), asked[reference]
                progress(rows - handle.reported)
                handle.reported = rows

    def _receive(self, handle: _Handle) -> WorkerResult | WorkerHost | Exception:
        """Return the message of a worker, or the exception with which it was lost; raise any other error."""
        ray = ray_package()
        awaited, handle.awaited = handle.awaited, None
        try:
            message: WorkerResult | WorkerHost = ray.get(awaited)
        except ray.exceptions.RayTaskError as exc:
            raise exc.cause or exc from exc
        except ray.exceptions.RayError as exc:
            return exc  # type: ignore[no-any-return]
        if isinstance(message, WorkerHost):
            if message.version != __version__:
                theirs = f"the Ray node {message.host} has ice-eval {message.version}"
                raise ConfigError(f"{theirs}, but this machine has {__version__}; install the same.")
            handle.location, self._failed_starts = message, 0
        return message

    def _lost(self, handle: _Handle, why: Exception) -> list[_Job]:
        """Remove a lost worker and return its job, or raise ModelError after too many losses."""
        self._remove(handle)
        if handle.job is None or handle.location is None:
            self._failed_starts += 1
            if self._failed_starts >= _LOSSES and not self._handles:
                raise ModelError(
                    f"workers on the Ray cluster do not start ({_first_line(why)}). Is ice-eval {__version__} "
                    "installed on every node, and Ray's token here that of the cluster?"
                ) from why
            return []
        job, host = handle.job, handle.location.host
        job.lost_on.append(handle.location.node)
        if len(job.lost_on) >= _LOSSES:
            raise ModelError(
                f"the same examples were lost {_LOSSES} times with their worker, at last on {host} "
                f"({_first_line(why)}). Is there too little memory? {_CONTINUES.capitalize()}"
            ) from why
        self._say(f"a worker on {host} was lost; another worker repeats its part.")
        return [job]

    def _remove(self, handle: _Handle) -> None:
        self._handles.remove(handle)
        ray_package().kill(handle.actor)


def _first_line(exc: Exception) -> str:
    return (str(exc).strip() or type(exc).__name__).partition("\n")[0][:300]
