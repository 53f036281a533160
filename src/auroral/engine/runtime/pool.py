"""The workers that run steps: a few threads, or none at all."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Finished(Generic[T]):
    """A task that has ended: what it returned, or what it raised."""

    name: str
    seconds: float
    core_s: float
    """The seconds of a core that it could have had: fewer than `seconds` if it had to share."""
    value: T | None = None
    error: BaseException | None = None


@dataclass(frozen=True, eq=False)
class _PoolTask(Generic[T]):
    name: str
    work: Callable[[], T]


class StepPool(Generic[T]):
    """Runs named tasks, at most one of a name at a time; who submits takes what has finished.

    Without workers a task is run by whoever submits it.

    >>> pool = StepPool[int](0)
    >>> pool.submit("a", lambda: 7)
    >>> [(one.name, one.value) for one in pool.take_finished()]
    [('a', 7)]
    """

    def __init__(
        self, workers: int, tell: Callable[[], None] = lambda: None, cores: int | None = None
    ):
        """`tell` is called, in the worker, when a task has ended.

        If more tasks than `cores` run at the same time, each one has a part of a core only.
        """
        self._workers = workers
        self._shared = SharedCores(cores)
        self._tell = tell
        self._changed = threading.Condition()
        self._waiting: deque[_PoolTask[T]] = deque()
        self._started: dict[str, float | None] = {}
        """When each task that is not taken yet began to run; None while it waits for a worker."""
        self._finished: list[Finished[T]] = []
        self._tasks: dict[str, _PoolTask[T]] = {}
        """Those that workers have; one that was abandoned is not among them."""
        self._threads = 0
        self._idle = 0
        self._closed = False

    @property
    def free(self) -> int:
        """How many tasks could begin at once; without workers, one."""
        with self._changed:
            return 1 if self.inline else max(self._workers - len(self._started), 0)

    @property
    def inline(self) -> bool:
        return self._workers == 0

    @property
    def names(self) -> set[str]:
        """The tasks that were submitted and not taken yet."""
        with self._changed:
            return set(self._started)

    def submit(self, name: str, work: Callable[[], T]) -> None:
        """Run a task as soon as a worker is free."""
        task = _PoolTask(name, work)
        if self.inline:
            self._started[name] = time.monotonic()
            self._finished.append(self._run(task))
            return
        with self._changed:
            assert name not in self._started
            assert not self._closed
            self._started[name] = None
            self._waiting.append(task)
            # Idle workers that were told of earlier tasks may not have taken them yet.
            if self._idle < len(self._waiting) and self._threads < self._workers:
                self._add_worker()
            self._changed.notify_all()  # whoever waits for results waits here, too

    def take_finished(self) -> list[Finished[T]]:
        """What has ended since the last call."""
        with self._changed:
            found, self._finished = self._finished, []
            for one in found:
                del self._started[one.name]
            return found

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until something can be taken, or nothing runs; False if that takes longer."""
        with self._changed:
            done = lambda: self._finished or not self._started  # noqa: E731
            return bool(self._changed.wait_for(done, timeout_s))

    def overdue(self, limit_s: float) -> list[str]:
        """The tasks that have run for longer than so many seconds."""
        now = time.monotonic()
        with self._changed:
            ended = {one.name for one in self._finished}
            return [
                name
                for name, since in self._started.items()
                if since is not None and now - since > limit_s and name not in ended
            ]

    def abandon(self, name: str) -> None:
        """Give up a task that cannot be stopped: nobody waits for it, another worker takes over."""
        with self._changed:
            if name in self._started and not any(one.name == name for one in self._finished):
                del self._started[name]
                self._tasks.pop(name, None)
                self._add_worker()
                self._changed.notify_all()

    def close(self) -> None:
        """Let workers end after what they do."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _add_worker(self) -> None:
        self._threads += 1
        name = f"auroral-step-{self._threads}"
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                self._changed.wait_for(lambda: self._waiting or self._closed)
                self._idle -= 1
                if not self._waiting:
                    return
                task = self._waiting.popleft()
                self._started[task.name] = time.monotonic()
                self._tasks[task.name] = task
            ended = self._run(task)
            with self._changed:
                if self._tasks.get(task.name) is not task:
                    return  # it was abandoned, and another worker has taken its place
                del self._tasks[task.name]
                self._finished.append(ended)
                self._changed.notify_all()
            self._tell()

    def _run(self, task: _PoolTask[T]) -> Finished[T]:
        started = time.perf_counter()
        had_s = self._shared.begin(started)
        try:
            value, error = task.work(), None
        except BaseException as raised:  # whoever takes it raises it
            value, error = None, raised
        ended = time.perf_counter()
        core_s = self._shared.end(ended) - had_s
        return Finished(task.name, ended - started, core_s, value, error)


class SharedCores:
    """How much of a core each of some tasks has, if all that run have equal parts.

    >>> cores = SharedCores(1)
    >>> first = cores.begin(0.0)
    >>> second = cores.begin(1.0)
    >>> cores.end(3.0) - first, cores.end(4.0) - second
    (2.0, 2.0)
    """

    def __init__(self, cores: int | None = None):
        self._cores = cores
        self._lock = threading.Lock()
        self._running = 0
        self._had_s = 0.0
        self._at_s = 0.0

    def begin(self, now_s: float) -> float:
        """A task begins; gives the seconds that one that had always run would have had."""
        return self._change(now_s, 1)

    def end(self, now_s: float) -> float:
        """A task ends; gives the same."""
        return self._change(now_s, -1)

    def _change(self, now_s: float, more: int) -> float:
        with self._lock:
            part = 1.0 if self._cores is None else min(1.0, self._cores / max(self._running, 1))
            self._had_s += max(now_s - self._at_s, 0.0) * part
            self._at_s = max(now_s, self._at_s)
            self._running += more
            return self._had_s
