"""Where the workers of `eman.distributed` run: processes of this machine, or actors of a Ray cluster.

A worker has one mesh in hand at a time.  So where one dies, that mesh alone is in doubt, and the others go on.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
import tempfile
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

from eman._tasks import Outcome, Task, Worker, one_line
from eman.context import build_info
from eman.errors import EmanError, InvalidArgumentError

_logger = logging.getLogger("eman")

#: How often a mesh is given to a worker, where they die of it.
ATTEMPTS = 2


class Hand(ABC):
    """A worker as the one sees it who gives it work."""

    @abstractmethod
    def begin(self) -> Future[None]:
        """`Worker.begin`."""

    @abstractmethod
    def work(self, source: str) -> Future[Outcome]:
        """`Worker.work`."""

    @abstractmethod
    def end(self) -> None:
        """End it, whatever it does."""


class Engine(ABC):
    """What hires workers."""

    @abstractmethod
    def close(self) -> None:
        """End what workers ran on; they have ended by then."""

    @abstractmethod
    def processors(self) -> tuple[int, int]:
        """How many there are, and how many the smallest machine has."""

    @abstractmethod
    def hire(self, task: Task, threads: int) -> Hand:
        """A new worker."""

    @abstractmethod
    def died(self, error: Optional[BaseException]) -> bool:
        """Whether an error says that a worker is no more, rather than what it raised."""


# ---------------------------------------------------------------------------------------------------------------------


class Processes(Engine):
    """Processes of this machine, spawned, so that they may use the library whatever this one does.

    They read their task, a large model perhaps, from a file: starting a process that ends before it has read all that
    is sent to it waits for ever.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="eman-")

    def close(self) -> None:
        """Remove the file."""
        self._folder.cleanup()

    def processors(self) -> tuple[int, int]:
        """Those that this process may use, by its affinity and its share (cgroups)."""
        found = int(build_info()["threads"])
        return found, found

    def hire(self, task: Task, threads: int) -> Hand:
        path = Path(self._folder.name) / "task"
        if not path.exists():
            path.write_bytes(pickle.dumps(task))
        return _Process(path, threads)

    def died(self, error: Optional[BaseException]) -> bool:
        return isinstance(error, BrokenProcessPool)


class _Process(Hand):
    """A pool of one process, which shows at once that it died, and with what in hand."""

    def __init__(self, task: Path, threads: int) -> None:
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _enter, (task, threads))
        self._identity = self._pool.submit(os.getpid)

    def begin(self) -> Future[None]:
        return self._submit(_begin)

    def work(self, source: str) -> Future[Outcome]:
        return self._submit(_work, source)

    def _submit(self, call: Callable[..., Any], *arguments: str) -> Future[Any]:
        try:
            return self._pool.submit(call, *arguments)
        except BrokenProcessPool as error:  # it died in between
            failed: Future[Any] = Future()
            failed.set_exception(error)
            return failed

    def end(self) -> None:
        for process in multiprocessing.active_children():
            if self._identity.done() and not self._identity.exception() and process.pid == self._identity.result():
                process.kill()  # it holds nothing that would be lost
        self._pool.shutdown(cancel_futures=True)


_worker: Optional[Worker] = None


def _enter(task: Path, threads: int) -> None:
    """In a new process: its worker, which does not outlive the process that hired it and leaves Ctrl-C to it."""
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow, name="eman-follow", daemon=True).start()
    _worker = Worker(pickle.loads(task.read_bytes()), threads)


def _follow() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _begin() -> None:
    assert _worker is not None
    _worker.begin()


def _work(source: str) -> Outcome:
    assert _worker is not None
    return _worker.work(source)


# ---------------------------------------------------------------------------------------------------------------------


class RayActors(Engine):
    """Actors of a Ray cluster, each with as many of its processors as it has threads.

    Parameters
    ----------
    address : str, optional
        Of the cluster, as ``ray.init`` takes it; None for that in use, or else for one on this machine.
    """

    def __init__(self, address: Optional[str]) -> None:
        import ray

        self._ray: Any = ray
        self._ours = not ray.is_initialized()
        if self._ours:
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR)

    def close(self) -> None:
        """Leave the cluster, or end it, unless it was in use before."""
        if self._ours:
            self._ray.shutdown()

    def processors(self) -> tuple[int, int]:
        """Those of the cluster's machines that have any."""
        found = self._machines()
        return sum(found), min(found)

    def _machines(self) -> list[int]:
        """How many processors each of the machines has that have any."""
        machines = (node["Resources"].get("CPU", 0) for node in self._ray.nodes() if node["Alive"])
        found = [int(processors) for processors in machines if processors]
        if not found:
            raise EmanError("no machine of the Ray cluster has processors")
        return found

    def hire(self, task: Task, threads: int) -> Hand:
        largest = max(self._machines())
        if threads > largest:  # Ray would wait for such a machine
            raise InvalidArgumentError(
                f"threads is {threads}, but no machine of the Ray cluster has more than {largest}"
            )
        actor = self._ray.remote(Worker).options(num_cpus=threads, max_restarts=0, max_task_retries=0)
        return _Actor(self._ray, actor.remote(task, threads))

    def died(self, error: Optional[BaseException]) -> bool:
        exceptions = self._ray.exceptions
        return isinstance(error, exceptions.RayError) and not isinstance(error, exceptions.RayTaskError)


class _Actor(Hand):
    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self._actor = ray, actor

    def begin(self) -> Future[None]:
        begun: Future[None] = self._actor.begin.remote().future()
        return begun

    def work(self, source: str) -> Future[Outcome]:
        working: Future[Outcome] = self._actor.work.remote(source).future()
        return working

    def end(self) -> None:
        self._ray.kill(self._actor)


# ---------------------------------------------------------------------------------------------------------------------


class Finished(NamedTuple):
    """A mesh, what became of it, and how many workers had it in hand."""

    source: str
    outcome: Outcome
    attempts: int


class _Item(NamedTuple):
    source: str
    attempt: int


def finished(engine: Engine, task: Task, sources: Iterable[str], workers: int, threads: int) -> Iterator[Finished]:
    """Have workers do a task to each mesh; what became of each, as they finish.

    A worker that dies is replaced.  What it had in hand is tried again, `ATTEMPTS` times in all.

    Raises
    ------
    EmanError
        If workers end before they are ready.
    """
    waiting = deque(_Item(source, 1) for source in sources)
    busy: dict[Future[Any], tuple[Hand, Optional[_Item]]] = {}
    hands: set[Hand] = set()
    stillborn = 0

    def hire() -> None:
        hand = engine.hire(task, threads)
        hands.add(hand)
        busy[hand.begin()] = hand, None

    def dismiss(hand: Hand) -> None:
        hands.remove(hand)
        hand.end()

    try:
        for _ in range(min(workers, len(waiting))):
            hire()
        while busy:
            for future in wait(busy, return_when=FIRST_COMPLETED).done:
                hand, item = busy.pop(future)
                error, outcome = future.exception(), None
                if error is None:
                    stillborn = 0
                    outcome = future.result()
                    if waiting:
                        following = waiting.popleft()
                        busy[hand.work(following.source)] = hand, following
                    else:
                        dismiss(hand)
                elif engine.died(error):
                    dismiss(hand)
                    if item is None:
                        stillborn += 1
                        if stillborn == ATTEMPTS:
                            raise EmanError(_STILLBORN + one_line(error)) from error
                    elif item.attempt < ATTEMPTS:
                        _logger.warning("a worker died with %s in hand: it is tried again", item.source)
                        waiting.appendleft(_Item(item.source, item.attempt + 1))
                    else:
                        outcome = Outcome(error=_DIED)
                    if waiting:
                        hire()
                else:
                    raise getattr(error, "cause", error)  # Ray wraps what is raised
                if item is not None and outcome is not None:
                    yield Finished(item.source, outcome, item.attempt)
    finally:
        for hand in hands:
            hand.end()


_DIED = f"WorkerDied: the process that had the mesh in hand died, {ATTEMPTS} times: killed, or out of memory"
_STILLBORN = (
    "workers end before they are ready; a script must start a batch below `if __name__ == '__main__':`, as with any "
    "use of multiprocessing: "
)
