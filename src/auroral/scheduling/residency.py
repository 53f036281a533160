"""Which segments of queues are in memory: those of the highest priority [1 §4.2] (pure)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

MARGIN = 0.1
"""By which share a priority must be the larger one for its segment to take another's place."""
LEAST_STAY_S = 1.0
"""How long a segment stays at least before one of a higher priority takes its place."""
LOADS_PER_S = 50.0
"""How many segments are loaded per second at most."""


@dataclass(frozen=True)
class QueuedSegment:
    """A segment of a log that boxes have not read yet."""

    name: str
    log: str
    bytes: int
    first: int
    """Its oldest moment."""


@dataclass(frozen=True)
class WaitingQueue:
    """The segments of a log that wait for one superbox."""

    reader: str
    log: str
    segments: Sequence[QueuedSegment]
    priority: float | None = None
    """The larger, the sooner they are read; None before a scheduler has thought of it."""


@dataclass(frozen=True)
class ResidencyMoves:
    """What to bring into memory, and what to remove from it before."""

    load: tuple[QueuedSegment, ...] = ()
    evict: tuple[str, ...] = ()
    """Segments that others take the place of."""
    passed: tuple[str, ...] = ()
    """Segments that nobody waits for any more."""


@dataclass
class _Resident:
    segment: QueuedSegment
    bytes: int
    since_s: float


@dataclass(frozen=True)
class _Worth:
    """How much a segment deserves to be in memory."""

    priority: float
    first: int

    def is_clearly_above(self, other: _Worth, margin: float) -> bool:
        """Whether it may take the other's place: sooner, or as soon and older."""
        if self.priority == other.priority:
            return self.first < other.first
        if math.isinf(self.priority) or math.isinf(other.priority):
            return self.priority > other.priority
        gap = margin * max(abs(self.priority), abs(other.priority))
        return self.priority - other.priority > gap


class ResidencyPlanner:
    """Decides which segments of queues are in memory, within so many bytes.

    It knows names and sizes only; who carries out its decisions holds the tuples. A segment that
    several boxes wait for counts for the most urgent of them. Of one queue the oldest segments
    are kept, as they are needed first. A segment takes the place of others only if its priority is
    larger by a margin and they have been there for a while, so that priorities that change to and
    fro do not make segments do so; and few are loaded per second.

    >>> planner = ResidencyPlanner(100)
    >>> old, new = QueuedSegment("old", "s", 80, first=0), QueuedSegment("new", "s", 80, first=9)
    >>> planner.admit(old, now_s=0.0)
    ()
    >>> planner.admit(new, now_s=1.0) is None  # it would have to take the older one's place
    True
    >>> planner.used
    80
    """

    def __init__(
        self,
        budget: int,
        *,
        margin: float = MARGIN,
        least_stay_s: float = LEAST_STAY_S,
        loads_per_s: float = LOADS_PER_S,
    ):
        """`budget` is in bytes."""
        self.budget = budget
        self._margin = margin
        self._least_stay_s = least_stay_s
        self._loads_per_s = loads_per_s
        self._allowed_loads = loads_per_s
        self._counted_s: float | None = None
        self._held: dict[str, _Resident] = {}
        self._priorities: dict[str, float] = {}
        """By log, as of the last plan."""
        self._worths: dict[str, _Worth] = {}
        """By segment, as of the last plan."""
        self._pinned: set[str] = set()
        self.used = 0
        """How many bytes are in memory, or about to be."""

    def __contains__(self, name: str) -> bool:
        return name in self._held

    # ── one segment ──

    def admit(self, segment: QueuedSegment, now_s: float) -> tuple[str, ...] | None:
        """Keep a segment whose tuples are at hand; what is evicted for it, None if it is not kept.

        A segment that the last plan did not see is as urgent as others of its log.
        """
        if segment.name in self._held:
            return ()
        fits = self.used + segment.bytes <= self.budget
        worst = [] if fits else self._worst_first(now_s)
        evicted = self._make_room(segment.bytes, self._worth(segment), worst)
        if evicted is not None:
            self._hold(segment, now_s)
        return evicted

    def resize(self, name: str, size: int) -> bool:
        """Say how large a segment is in memory; False if there is no room for it."""
        held = self._held[name]
        if self.used - held.bytes + size > self.budget:
            self.forget(name)
            return False
        self.used += size - held.bytes
        held.bytes = size
        return True

    def forget(self, name: str) -> None:
        """A segment is in memory no more."""
        held = self._held.pop(name, None)
        if held is not None:
            self.used -= held.bytes

    def pin(self, names: Iterable[str]) -> None:
        """Evict none of these before the next plan: a step begins to read them."""
        self._pinned.update(names)

    # ── all queues ──

    def plan(
        self, queues: Iterable[WaitingQueue], pinned: Collection[str], now_s: float
    ) -> ResidencyMoves:
        """What to load and to evict; segments that steps read now are `pinned` and stay.

        Only segments that waited at the last plan are loaded: those that have just come may be
        read before they were loaded.
        """
        before = self._worths
        waiting = self._look(queues)
        self._pinned = set(pinned)
        passed = [n for n in self._held if n not in self._worths and self._may_pass(n, now_s)]
        for name in passed:
            self.forget(name)
        evicted = list(self._shrink())
        self._allow(now_s)
        absent = [s for n, s in waiting.items() if n not in self._held and n in before]
        if not absent or self._allowed_loads < 1:
            return ResidencyMoves((), tuple(evicted), tuple(passed))
        loaded = []
        most = int(self._allowed_loads)
        worst = self._worst_first(now_s)
        for segment in heapq.nsmallest(most, absent, key=self._urgency):
            room = self._make_room(segment.bytes, self._worths[segment.name], worst)
            if room is not None:
                self._hold(segment, now_s)
                loaded.append(segment)
                evicted += room
        self._allowed_loads -= len(loaded)
        return ResidencyMoves(tuple(loaded), tuple(evicted), tuple(passed))

    def _look(self, queues: Iterable[WaitingQueue]) -> Mapping[str, QueuedSegment]:
        """Learn what waits and how urgent it is."""
        found: dict[str, QueuedSegment] = {}
        self._worths, self._priorities = {}, {}
        for queue in queues:
            priority = queue.priority or 0.0
            known = self._priorities.get(queue.log)
            self._priorities[queue.log] = priority if known is None else max(priority, known)
            for segment in queue.segments:
                worth = self._worths.get(segment.name)
                if worth is None or worth.priority < priority:
                    self._worths[segment.name] = _Worth(priority, segment.first)
                found[segment.name] = segment
        return found

    def _may_pass(self, name: str, now_s: float) -> bool:
        """Whether a segment that nobody waits for may go: not one that is yet to be committed."""
        stayed_s = now_s - self._held[name].since_s
        return name not in self._pinned and stayed_s >= self._least_stay_s

    def _shrink(self) -> Iterable[str]:
        """Evict what the budget has no room for, if it has become smaller."""
        if self.used <= self.budget:
            return
        for name in sorted(self._held, key=self._uselessness):
            if self.used <= self.budget:
                return
            if name not in self._pinned:
                self.forget(name)
                yield name

    def _allow(self, now_s: float) -> None:
        spent_s = 0.0 if self._counted_s is None else max(now_s - self._counted_s, 0.0)
        more = self._allowed_loads + spent_s * self._loads_per_s
        self._allowed_loads = min(more, max(self._loads_per_s, 1.0))
        self._counted_s = now_s

    # ── what takes whose place ──

    def _make_room(
        self, size: int, worth: _Worth, worst_first: list[str]
    ) -> tuple[str, ...] | None:
        """Evict what is clearly worth less; None, and nothing is evicted, if that is not enough.

        What was evicted is taken out of the list.
        """
        free = self.budget - self.used
        count = 0
        while free < size:
            if count == len(worst_first):
                return None
            held = self._held[worst_first[count]]
            if not worth.is_clearly_above(self._worth(held.segment), self._margin):
                return None
            free += held.bytes
            count += 1
        evicted = tuple(worst_first[:count])
        del worst_first[:count]
        for name in evicted:
            self.forget(name)
        return evicted

    def _worst_first(self, now_s: float) -> list[str]:
        """What may be evicted in favour of others, the least useful first."""
        if self.used == 0:
            return []
        movable = [
            name
            for name, held in self._held.items()
            if name not in self._pinned and now_s - held.since_s >= self._least_stay_s
        ]
        return sorted(movable, key=self._uselessness)

    def _uselessness(self, name: str) -> tuple[float, int, str]:
        worth = self._worth(self._held[name].segment)
        return worth.priority, -worth.first, name

    def _urgency(self, segment: QueuedSegment) -> tuple[float, int, str]:
        worth = self._worths[segment.name]
        return -worth.priority, worth.first, segment.name

    def _worth(self, segment: QueuedSegment) -> _Worth:
        known = self._worths.get(segment.name)
        if known is not None:
            return known
        return _Worth(self._priorities.get(segment.log, 0.0), segment.first)

    def _hold(self, segment: QueuedSegment, now_s: float) -> None:
        self._held[segment.name] = _Resident(segment, segment.bytes, now_s)
        self.used += segment.bytes
