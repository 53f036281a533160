"""Work that may end its process, done in one of its own: what ends it has failed, nothing else."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

Done = tuple[pa.Array, dict[int, str]]
"""A value for each of some rows, and why there is none, by row."""
Work = Callable[[int, int], Done]
"""Does the rows from one up to another; failures count from the first of them."""

_sheltered = False


@contextmanager
def sheltering(asked: bool) -> Iterator[None]:
    """Whether work is done in processes of its own meanwhile: a task is one thread."""
    global _sheltered  # noqa: PLW0603
    before, _sheltered = _sheltered, asked
    try:
        yield
    finally:
        _sheltered = before


def attempted(rows: int, returns: pa.DataType, work: Work) -> Done:
    """What work makes of all rows.

    Where it is sheltered, rows that end its process are found by halves: log2(rows) processes
    for each, a few milliseconds all.
    """
    return _halved(0, rows, returns, work) if _sheltered and rows else work(0, rows)


def _halved(first: int, last: int, returns: pa.DataType, work: Work) -> Done:
    ended = _in_child(first, last, work)
    if not isinstance(ended, str):
        return ended
    if last - first == 1:
        return pa.nulls(1, returns), {0: ended}
    middle = (first + last) // 2
    values, failures = _halved(first, middle, returns, work)
    more, others = _halved(middle, last, returns, work)
    failures |= {row + middle - first: why for row, why in others.items()}
    return pa.concat_arrays([values, more]), failures


def _in_child(first: int, last: int, work: Work) -> Done | str:
    """What a child of this process makes of some rows; how it ended if it gave nothing."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(pickle.dumps(work(first, last)))
            os._exit(0)
        finally:
            os._exit(1)  # whatever happened: the rest is the parent's to do
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        found = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if found and not code:
        done: Done = pickle.loads(found)
        return done
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return f"the function ended its process ({how})"
