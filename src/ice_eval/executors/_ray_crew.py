"""Workers on a Ray cluster, seen from the process that writes the run: who is up, who is busy, who was lost."""

import contextlib
import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ice_eval import __version__
from ice_eval.errors import ConfigError, ModelError
from ice_eval.executors._base import Crew, Finished, Item, Result, Say, W, Work
from ice_eval.executors._ray_seat import Place, Seat, Told, ray_package
from ice_eval.scoring import Progress

_LOSSES = 3
"""How often an item may take its worker with it, or workers die before they are up, until the run is given up."""
_GLANCE_S = 2.0
"""After which workers that say nothing are asked how far they are."""
_PATIENCE = 10
"""Glances after which a user is told that workers wait for room."""
_BESIDE = "beside"
"""The threads of workers that answer while they work."""
_CONTINUES = "the same command again continues where it was."


class Needs(NamedTuple):
    """What a worker takes of a node, or what a node has."""

    cpus: float
    gpus: float

    @classmethod
    def of(cls, node: dict[str, float]) -> "Needs":
        return cls(node.get("CPU", 0.0), node.get("GPU", 0.0))

    def fit_into(self, node: dict[str, float]) -> int:
        """How many such workers a node has room for."""
        has = Needs.of(node)
        by_cpus = has.cpus // self.cpus
        return int(min(by_cpus, (has.gpus + 1e-9) // self.gpus) if self.gpus else by_cpus)

    def __str__(self) -> str:
        return f"{self.cpus:g} CPU and {self.gpus:g} GPU"


@dataclass(eq=False)
class _Job:
    """An item that is to be done."""

    item: Any
    lost_on: list[str] = field(default_factory=list)
    """Nodes whose worker died over it."""


@dataclass(eq=False)
class _Worker:
    """A worker as it is seen from here."""

    seat: Any
    awaited: Any
    """What it will say next: where it is, then what came of its job; None while it has nothing to do."""
    place: Place | None = None
    """None until it is up."""
    job: _Job | None = None
    told: int = 0
    """Rows of the job that progress knows of."""


class RayCrew(Crew[W]):
    """As many workers as there is work and room for; those that die are replaced."""

    def __init__(self, make: Callable[[], W], needs: Needs, say: Say) -> None:
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
            concurrency_groups={_BESIDE: 1},
        )
        self._seat = remote(Seat)
        self._make = ray_package().put(make)
        self._workers: list[_Worker] = []
        self._stillborn = 0
        """Workers that died before they were up, since one was."""

    def ask(self, question: Callable[[W], Result]) -> Result:
        [(_, told)] = self._through("ask", question, [None], lambda rows: None)
        answer: Result = told.answer
        return answer

    def map(
        self, work: Work[W, Item, Result], items: Iterable[Item], progress: Progress
    ) -> Iterator[Finished[Item, Result]]:
        for item, told in self._through("work", work, items, progress):
            yield Finished(item, told.answer, told.seconds)

    def release(self) -> None:
        for worker in list(self._workers):
            self._dismiss(worker)

    def _through(
        self, method: str, function: Any, items: Iterable[Item], progress: Progress
    ) -> Iterator[tuple[Item, Told]]:
        """Every item to a worker that is free; an item that is lost with its worker comes first again."""
        shared, source, waiting = ray_package().put(function), map(_Job, items), deque[_Job]()
        try:
            while True:
                room = self._room()
                # No more than can be handed out now: whoever makes the items may want to stop.
                free = max(room, len(self._workers)) - len(self._busy)
                waiting.extend(itertools.islice(source, max(free - len(waiting), 0)))
                if not waiting and not self._busy:
                    return
                self._grow(min(room, len(waiting) + len(self._busy)))
                for worker in self._workers:
                    self._hand_out(worker, waiting, lambda seat, item: getattr(seat, method).remote(shared, item))
                worker = self._next_to_speak(progress)
                word = self._word_of(worker)
                if isinstance(word, Told) and worker.job is not None:
                    progress(word.rows - worker.told)
                    item, worker.job, worker.told = worker.job.item, None, 0
                    yield item, word
                elif isinstance(word, Exception):
                    progress(-worker.told)
                    waiting.extendleft(self._lost(worker, word))
        finally:
            # Whoever is still busy works for nobody.
            for worker in self._busy:
                self._dismiss(worker)

    @property
    def _busy(self) -> list[_Worker]:
        return [worker for worker in self._workers if worker.job is not None]

    def _room(self) -> int:
        """How many workers the cluster could hold now; nodes come and go."""
        room = sum(self._needs.fit_into(node["Resources"]) for node in ray_package().nodes() if node["Alive"])
        if not room:
            raise ModelError(f"no node of the Ray cluster has room for a worker any more ({self._needs}); {_CONTINUES}")
        return room

    def _grow(self, wanted: int) -> None:
        """Start workers, unless the last ones did not come up: those that are there go on, and one is always tried."""
        while len(self._workers) < wanted and (self._stillborn < _LOSSES or not self._workers):
            seat = self._seat.remote(self._make)
            self._workers.append(_Worker(seat, seat.place.remote()))

    def _hand_out(self, worker: _Worker, waiting: deque[_Job], start: Callable[[Any, Any], Any]) -> None:
        """The first item that did not die on the worker's node, unless there is no other node."""
        if worker.place is None or worker.job is not None:
            return
        nodes = {each.place.node for each in self._workers if each.place is not None}
        for job in waiting:
            if worker.place.node not in job.lost_on or nodes <= set(job.lost_on):
                waiting.remove(job)
                worker.job, worker.awaited = job, start(worker.seat, job.item)
                return

    def _next_to_speak(self, progress: Progress) -> _Worker:
        """Wait for a worker that has something to say, and tell progress meanwhile."""
        ray = ray_package()
        speaking = {worker.awaited: worker for worker in self._workers if worker.awaited is not None}
        for glances in itertools.count(1):
            ready, _ = ray.wait(list(speaking), timeout=_GLANCE_S)
            if ready:
                break
            if glances == _PATIENCE and all(worker.place is None for worker in self._workers):
                self._say(f"waiting for room on the Ray cluster: a worker needs {self._needs}.")
            self._glance(progress)
        return speaking[ready[0]]

    def _glance(self, progress: Progress) -> None:
        """Ask those that work how far they are; one that does not answer at once may do so the next time."""
        ray = ray_package()
        asked = {worker.seat.scored.options(concurrency_group=_BESIDE).remote(): worker for worker in self._busy}
        ready, _ = ray.wait(list(asked), num_returns=len(asked), timeout=_GLANCE_S) if asked else ([], [])
        for answer in ready:
            with contextlib.suppress(ray.exceptions.RayError):  # it was lost, which its job will tell
                rows, worker = ray.get(answer), asked[answer]
                progress(rows - worker.told)
                worker.told = rows

    def _word_of(self, worker: _Worker) -> Told | Place | Exception:
        """What a worker says, or how it was lost.

        Raises:
            IceError: That it met; whatever else it met is raised as it is, too.
        """
        ray = ray_package()
        said, worker.awaited = worker.awaited, None
        try:
            word: Told | Place = ray.get(said)
        except ray.exceptions.RayTaskError as exc:
            raise exc.cause or exc from exc
        except ray.exceptions.RayError as exc:
            lost: Exception = exc
            return lost
        if isinstance(word, Place):
            self._welcome(worker, word)
        elif word.error is not None:
            raise word.error
        return word

    def _welcome(self, worker: _Worker, place: Place) -> None:
        if place.version != __version__:
            raise ConfigError(
                f"the Ray node {place.host} has ice-eval {place.version}, and here is {__version__}; install the same."
            )
        worker.place, self._stillborn = place, 0

    def _lost(self, worker: _Worker, why: Exception) -> list[_Job]:
        """Go on without a worker; what it had is to be done again.

        Raises:
            ModelError: That happened too often.
        """
        self._dismiss(worker)
        if worker.job is None or worker.place is None:
            self._stillborn += 1
            if self._stillborn >= _LOSSES and not self._workers:
                raise ModelError(
                    f"workers on the Ray cluster do not start ({first_line(why)}). Is ice-eval {__version__} "
                    "installed on every node, and Ray's token here that of the cluster?"
                ) from why
            return []
        job, place = worker.job, worker.place
        job.lost_on.append(place.node)
        if len(job.lost_on) >= _LOSSES:
            raise ModelError(
                f"the same examples were lost {_LOSSES} times with their worker, at last on {place.host} "
                f"({first_line(why)}). Is there too little memory? {_CONTINUES.capitalize()}"
            ) from why
        self._say(f"a worker on {place.host} was lost; what it had in hand goes to another one.")
        return [job]

    def _dismiss(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        ray_package().kill(worker.seat)


def first_line(exc: Exception) -> str:
    return (str(exc).strip() or type(exc).__name__).partition("\n")[0][:300]
