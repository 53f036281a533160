"""Results that were taken and may not have arrived: who repeats a request gets them again."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from auroral.server.problems import RequestError

MOST_READERS = 1000
"""So many readers are known; the one that asked longest ago goes first."""
MOST_BYTES = 64 << 20
"""Pages are kept while they are not larger together; the newest always is."""
KEPT_S = 600.0
"""A page that is older is let go when somebody else asks."""


@dataclass
class _LastTurn:
    """What a reader got last."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    turn: int = -1
    table: pa.Table | None = None
    """None if it is not kept any more."""
    calls: int = 0
    """Calls that are under way."""
    at_s: float = 0.0

    @property
    def bytes(self) -> int:
        return 0 if self.table is None else int(self.table.get_total_buffer_size())


class TakenPages:
    """Keeps the page that each reader of an output took last, until it asks for the next.

    A reader numbers its requests. The same number gives the same rows again; a higher one says that
    they have arrived. A request that comes after a later one takes nothing, nor does one for rows
    that are not kept any more.
    """

    def __init__(
        self,
        most_readers: int = MOST_READERS,
        most_bytes: int = MOST_BYTES,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most_readers = most_readers
        self._most_bytes = most_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._last: OrderedDict[tuple[str, str], _LastTurn] = OrderedDict()

    def take(
        self, output: str, reader: str, turn: int, dequeue: Callable[[], pa.Table]
    ) -> pa.Table:
        """The rows of a turn: those of its first request, or what `dequeue` takes now."""
        with self._call(output, reader) as last:
            if turn < last.turn:
                raise _outdated(
                    f"{reader} has asked {output} for turn {last.turn} already, found {turn}"
                )
            if turn > last.turn:
                last.table = dequeue()
                last.turn = turn
            if last.table is None:
                raise _outdated(f"the rows of turn {turn} of {output} are not kept any more")
            return last.table

    @contextmanager
    def _call(self, output: str, reader: str) -> Iterator[_LastTurn]:
        """What a reader got last, for one call: a repeated one waits for the one under way."""
        key = output, reader
        with self._lock:
            last = self._last.setdefault(key, _LastTurn())
            self._last.move_to_end(key)
            last.calls += 1
        try:
            with last.lock:
                yield last
        finally:
            with self._lock:
                last.calls -= 1
                last.at_s = self._clock()
                if last.turn < 0 and not last.calls:  # it got nothing: there may be no such output
                    del self._last[key]
                self._let_go(last)

    def _let_go(self, newest: _LastTurn) -> None:
        """Forget what is old or too much, but nothing of calls under way."""
        idle = [k for k, one in self._last.items() if not one.calls and one is not newest]
        size = sum(one.bytes for one in self._last.values())
        for key in idle:
            one = self._last[key]
            if size > self._most_bytes or one.at_s < self._clock() - KEPT_S:
                size -= one.bytes
                one.table = None
        for key in idle[: max(len(self._last) - self._most_readers, 0)]:
            del self._last[key]


def _outdated(problem: str) -> RequestError:
    return RequestError(409, "OUTDATED_TURN", problem)
