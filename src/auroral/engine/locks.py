"""The locks of one engine, and the order in which a thread may take them.

A thread that holds a lock may only wait for locks that stand further down:

0. `network`: one change of boxes, streams and outputs at a time, from reading what is wanted until
   the epoch is entered. Changes of queries do not take it, so sinks can make them.
1. `round` (`Loop`): no step is started or committed; steps under way go on in their workers. Held
   to give an output a sink, and to end the engine.
2. `changes` (`QueryChanges`): one change of the queries at a time. A change tries `round` without
   waiting for it, so a sink that is called in a round can make one.
3. `reading(log)` (`Outputs`): one thread at a time takes results from a log; a thread holds one.
4. `queries` (`QueryRegistry`): which queries, outputs and sinks there are, and how far sinks are.
5. `ingest` (`Ingest`): the next moment of arrival.
6. `store` (`Store`): segments, cursors and the manifest.

Locks that are not listed (of the dead-letter file, the cache, the journal, the clock, the condition
that wakes the loop) protect one object. No lock above `store` is taken while one of them is held.

No sink is called with `reading`, `queries`, `ingest` or `store` held, unless it is closed by
`modify` of an engine without threads.

The order is checked if `AURORAL_CHECK_LOCK_ORDER` is set in the environment, as the tests do.
"""

from __future__ import annotations

import os
import threading
from enum import IntEnum
from types import TracebackType
from typing import Protocol
from weakref import WeakValueDictionary

CHECK_ORDER = "AURORAL_CHECK_LOCK_ORDER"
"""The variable of the environment; if it is set, locks raise when their order is another."""


class LockRank(IntEnum):
    """Where a lock stands in the order; the outermost first."""

    NETWORK = 0
    ROUND = 1
    CHANGES = 2
    READING = 3
    QUERIES = 4
    INGEST = 5
    STORE = 6


class LockOrderError(RuntimeError):
    """A thread waits for a lock although it holds one that has to be taken after it."""


class ReentrantLock(Protocol):
    """What `threading.RLock` gives, checked or not."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...

    def release(self) -> None: ...

    def __enter__(self) -> bool: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class HeldLocks(threading.local):
    """The ranks of the locks of one engine that the current thread holds, in the order taken."""

    def __init__(self) -> None:
        self.ranks: list[LockRank] = []


class OrderedLock:
    """A reentrant lock that raises if the thread holds one of the same engine that comes later.

    An attempt that does not block cannot wait for ever, and is allowed in any order.

    >>> held = HeldLocks()
    >>> queries, store = OrderedLock(LockRank.QUERIES, held), OrderedLock(LockRank.STORE, held)
    >>> with queries, store, queries:
    ...     pass
    >>> with store, queries:
    ...     pass
    Traceback (most recent call last):
    auroral.engine.locks.LockOrderError: QUERIES is taken while STORE is held
    """

    def __init__(self, rank: LockRank, held: HeldLocks):
        self.rank = rank
        self._held = held
        self._lock = threading.RLock()
        self._owner: int | None = None
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        ranks = self._held.ranks
        owned = self._owner == threading.get_ident()
        if blocking and not owned and ranks and max(ranks) >= self.rank:
            problem = f"{self.rank.name} is taken while {max(ranks).name} is held"
            raise LockOrderError(problem)
        if not self._lock.acquire(blocking, timeout):
            return False
        self._owner = threading.get_ident()
        self._depth += 1
        ranks.append(self.rank)
        return True

    def release(self) -> None:
        self._depth -= 1
        self._owner = self._owner if self._depth else None
        ranks = self._held.ranks
        del ranks[len(ranks) - 1 - ranks[::-1].index(self.rank)]
        self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class ReadingLock:
    """The lock of those who take results from one log; unlike an `RLock` it can be forgotten."""

    def __init__(self, lock: ReentrantLock):
        self._lock = lock
        self.turns = 0
        """How often somebody has held it."""

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.turns += 1
        self._lock.release()


class EngineLocks:
    """The locks of one engine; the order is that of this module's text."""

    def __init__(self) -> None:
        self._held = HeldLocks() if os.environ.get(CHECK_ORDER) else None
        self.network = self._make(LockRank.NETWORK)
        self.round = self._make(LockRank.ROUND)
        self.changes = self._make(LockRank.CHANGES)
        self.queries = self._make(LockRank.QUERIES)
        self.ingest = self._make(LockRank.INGEST)
        self.store = self._make(LockRank.STORE)
        self._guard = threading.Lock()
        self._reading: WeakValueDictionary[str, ReadingLock] = WeakValueDictionary()

    def reading(self, log: str) -> ReadingLock:
        """The lock of those who take results from a log."""
        with self._guard:
            found = self._reading.get(log)
            if found is None:
                found = self._reading[log] = ReadingLock(self._make(LockRank.READING))
            return found

    def _make(self, rank: LockRank) -> ReentrantLock:
        return threading.RLock() if self._held is None else OrderedLock(rank, self._held)
