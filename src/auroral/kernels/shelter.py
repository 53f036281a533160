"""Run work that may end its process in a child process: only the rows that end it fail."""

from __future__ import annotations

import os
import pickle
import signal
import tempfile
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

import pyarrow as pa

Done = tuple[pa.Array, dict[int, str]]
"""A value for each of some rows, and why there is none, by row."""
Work = Callable[[int, int], Done]
"""Does the rows from one up to another; failures count from the first of them."""

T = TypeVar("T")


class Turns(Protocol[T]):
    """Work on rows in order, where each run of rows sees the effects of the runs before it."""

    @property
    def work(self) -> Callable[[int, int], T]:
        """Does the rows from one up to another; what it returns can be pickled."""

    def take(self, done: T) -> None:
        """Receive the result of a run of rows."""

    def failed(self, first: int, last: int, why: str) -> None:
        """Record that rows failed, and why."""


HOPELESS = 100
"""After so many rows in a row that have ended it, a function is not called again in a step."""


class _Shelter:
    """The children of a task."""

    def __init__(self) -> None:
        self._in_a_row: dict[Hashable, int] = {}
        """By function how many single rows have ended it since one did not."""

    def halved(self, name: Hashable, first: int, last: int, turns: Turns[T]) -> None:
        """Find the rows that end the process by bisection, from the first row to the last."""
        if self._in_a_row.get(name, 0) >= HOPELESS:
            why = f"not called: the function ended its process {HOPELESS} times in a row"
            turns.failed(first, last, why)
            return
        done, ended = _in_child(first, last, turns.work)
        if done is not None:
            self._in_a_row[name] = 0
            turns.take(done)
        elif last - first == 1:
            self._in_a_row[name] = self._in_a_row.get(name, 0) + 1
            turns.failed(first, last, ended)
        else:
            middle = (first + last) // 2
            self.halved(name, first, middle, turns)
            self.halved(name, middle, last, turns)


_shelter: _Shelter | None = None


@contextmanager
def sheltering(asked: bool) -> Iterator[None]:
    """Within this context the task's work runs in child processes; a task is one thread."""
    global _shelter  # noqa: PLW0603
    before, _shelter = _shelter, _Shelter() if asked else None
    try:
        yield
    finally:
        _shelter = before


def attempted(name: Hashable, rows: int, returns: pa.DataType, work: Work) -> Done:
    """Do a function's work for all rows; return values and failures.

    Where it is sheltered that costs a process, a few milliseconds; each row that ends it twice
    log2(rows) more.
    """
    if _shelter is None or not rows:
        return work(0, rows)
    gathered = _Gathered(work, returns)
    in_turn(name, rows, gathered)
    return pa.concat_arrays(gathered.values), gathered.failures


def in_turn(name: Hashable, rows: int, turns: Turns[T]) -> None:
    """Do all rows in runs; each run begins after the result of the one before was received."""
    if _shelter is None or not rows:
        turns.take(turns.work(0, rows))
    else:
        _shelter.halved(name, 0, rows, turns)


class _Gathered:
    """Values and failures of runs of rows, put together."""

    def __init__(self, work: Work, returns: pa.DataType):
        self.work = work
        self._returns = returns
        self.values: list[pa.Array] = []
        self.failures: dict[int, str] = {}
        self._rows = 0

    def take(self, done: Done) -> None:
        values, failures = done
        self.values.append(values)
        self.failures |= {self._rows + row: why for row, why in failures.items()}
        self._rows += len(values)

    def failed(self, first: int, last: int, why: str) -> None:
        self.take((pa.nulls(last - first, self._returns), dict.fromkeys(range(last - first), why)))


def _in_child(first: int, last: int, work: Callable[[int, int], T]) -> tuple[T | None, str]:
    """Do some rows in a child process; return its result, or how it ended if it gave none.

    The child answers by a file: a pipe would stay open while the child's own children live.
    """
    with tempfile.TemporaryFile() as file:
        child = os.fork()
        if not child:
            try:
                file.write(pickle.dumps(work(first, last)))
                file.flush()
                os._exit(0)
            finally:
                os._exit(1)  # whatever happened: the rest is the parent's to do
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        file.seek(0)
        found = file.read()
    if found and not code:
        done: T = pickle.loads(found)
        return done, ""
    return None, f"the function ended its process ({_how(code)})"


def _how(code: int) -> str:
    """How a process ended.

    >>> _how(3), _how(-9), _how(-40)
    ('exit code 3', 'SIGKILL', 'signal 40')
    """
    if code >= 0:
        return f"exit code {code}"
    known = {each.value: each.name for each in signal.Signals}
    return known.get(-code, f"signal {-code}")
