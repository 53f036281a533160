"""Results that were taken and may not have arrived: who repeats a request gets them again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from auroral.server.problems import RequestError

MOST_READERS = 64
"""Pages of so many readers are kept; those of the one that asked longest ago go first."""


@dataclass
class _LastTurn:
    """What a reader got last."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    turn: int = -1
    table: pa.Table | None = None


class TakenPages:
    """Keeps the page that each reader of an output took last, until it asks for the next.

    A reader numbers its requests. The same number gives the same rows again; a higher one says that
    they have arrived. A request that comes after a later one takes nothing.
    """

    def __init__(self, most_readers: int = MOST_READERS) -> None:
        self._most_readers = most_readers
        self._lock = threading.Lock()
        self._last: OrderedDict[tuple[str, str], _LastTurn] = OrderedDict()

    def take(
        self, output: str, reader: str, turn: int, dequeue: Callable[[], pa.Table]
    ) -> pa.Table:
        """The rows of a turn: those of its first request, or what `dequeue` takes now."""
        last = self._of(output, reader)
        with last.lock:  # a repeated request waits for the one that is under way
            if turn < last.turn:
                raise RequestError(
                    409,
                    "OUTDATED_TURN",
                    f"{reader} has asked {output} for turn {last.turn} already, found {turn}",
                )
            if turn > last.turn:
                last.table = dequeue()
                last.turn = turn
            assert last.table is not None
            return last.table

    def _of(self, output: str, reader: str) -> _LastTurn:
        with self._lock:
            last = self._last.setdefault((output, reader), _LastTurn())
            self._last.move_to_end((output, reader))
            while len(self._last) > self._most_readers:
                self._last.popitem(last=False)
            return last
