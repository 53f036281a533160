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

    def __init__(self, workers: int, tell: Callable[[], None] = lambda: None):
        """`tell` is called, in the worker, when a task has ended."""
        self._workers = workers
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
            self._finished.append(_run(task))
            return
        with self._changed:
            assert name not in self._started
            assert not self._closed
            self._started[name] = None
            self._waiting.append(task)
            if not self._idle and self._threads < self._workers:
                self._add_worker()
            self._changed.notify()

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
            ended = _run(task)
            with self._changed:
                if self._tasks.get(task.name) is not task:
                    return  # it was abandoned, and another worker has taken its place
                del self._tasks[task.name]
                self._finished.append(ended)
                self._changed.notify_all()
            self._tell()


def _run(task: _PoolTask[T]) -> Finished[T]:
    started = time.perf_counter()
    try:
        value, error = task.work(), None
    except BaseException as raised:  # whoever takes it raises it
        value, error = None, raised
    return Finished(task.name, time.perf_counter() - started, value, error)
