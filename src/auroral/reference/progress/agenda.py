"""What waits for progress: a moment looks only at what it may let go, not at every group."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from auroral.reference.progress.marks import Group, JointMark, passes, reaches

Item = TypeVar("Item")
_Heap = list[tuple[Any, int, "Waiting[Any]"]]


class AwaitedProgress(Protocol):
    """The progress that items wait for."""

    moved: Collection[Group] | None
    """Keys of groups whose own mark may have moved with this moment; None: maybe all."""

    def mark(self, group: Group) -> Any:
        """The mark of a group."""

    def mark_of_all(self) -> Any:
        """What holds of every group, of those that never came too."""

    def key(self, group: Group) -> Group | None:
        """Groups with the same key have the same mark of their own; None: there is but one mark."""

    def joints(self) -> Iterable[JointMark]:
        """Promises about pairs that may say more of some groups."""

    def paired(self, joint: JointMark, group: Group) -> Any:
        """The group's value of a joint promise's other attribute; None if it has none."""


@dataclass
class Waiting(Generic[Item]):
    """An item that waits until the mark of its group lets its value go."""

    value: Any
    group: Group
    item: Item
    number: int
    gone: bool = False


@dataclass
class Agenda(Generic[Item]):
    """Items by the value that progress has to reach, or to pass (`lets_go`).

    Each item stands in several heaps: one for what holds of every group, one for its own group,
    and one for each joint promise. The first to let it go takes it from all of them.

    >>> from auroral.boxes.order import Order
    >>> from auroral.network.types import Schema
    >>> from auroral.reference.windowing.order import OrderProgress
    >>> progress = OrderProgress(Order("n", slack=0), Schema.parse("n int"))
    >>> agenda = Agenda(progress)
    >>> for value in (10, 20):
    ...     agenda.add(value, (), f"until {value}")
    >>> progress.take(15, ())
    >>> agenda.due_of(())
    ['until 10']
    """

    progress: AwaitedProgress
    lets_go: Callable[[Any, Any], bool] = reaches
    _unfiled: list[Waiting[Item]] = field(default_factory=list)
    _all: _Heap = field(default_factory=list)
    _own: dict[Group, _Heap] = field(default_factory=dict)
    _joint: dict[str, _JointHeaps] = field(default_factory=dict)
    _added: int = 0
    _new: set[Group] = field(default_factory=set)
    """Keys of items that no call of `due` has seen: their mark may have moved before they came."""

    def add(self, value: Any, group: Group, item: Item) -> None:
        """Let an item wait."""
        self._added += 1
        self._unfiled.append(Waiting(value, group, item, self._added))

    def due_of(self, group: Group) -> list[Item]:
        """What the mark of one group lets go, in the order in which it was added."""
        key = self.progress.key(group)
        if key is None:
            return []
        self._file()
        return _items(self._taken_of(key))

    def due(self) -> list[Item]:
        """What this moment lets go, in the order in which it was added."""
        self._file()
        found = _taken(self._all, self.lets_go, self.progress.mark_of_all())
        moved = self.progress.moved
        for key in list(self._own) if moved is None else self._new.union(moved):
            found += self._taken_of(key)
        self._new = set()
        for joint in self.progress.joints():
            found += self._joint[joint.by].taken(joint, self.lets_go)
        return _items(found)

    def _taken_of(self, key: Group) -> list[Waiting[Item]]:
        own = self._own.get(key)
        if not own:
            return []
        found = _taken(own, self.lets_go, self.progress.mark(own[0][2].group))
        if not own:
            del self._own[key]
        return found

    def _file(self) -> None:
        """Put new items where they are looked for; only now it is known what is promised."""
        for waiting in self._unfiled:
            entry = (waiting.value, waiting.number, waiting)
            heapq.heappush(self._all, entry)
            key = self.progress.key(waiting.group)
            if key is not None:
                self._new.add(key)
                heapq.heappush(self._own.setdefault(key, []), entry)
            for joint in self.progress.joints():
                paired = self.progress.paired(joint, waiting.group)
                if paired is not None:
                    heaps = self._joint.setdefault(joint.by, _JointHeaps())
                    heapq.heappush(heaps.below, (waiting.value, waiting.number, waiting, paired))
        for joint in self.progress.joints():
            self._joint.setdefault(joint.by, _JointHeaps())
        self._unfiled = []


@dataclass
class _JointHeaps:
    """Items that wait for the first mark of a joint promise, then for the second to pass them."""

    below: list[tuple[Any, int, Waiting[Any], Any]] = field(default_factory=list)
    beside: _Heap = field(default_factory=list)

    def taken(self, joint: JointMark, lets_go: Callable[[Any, Any], bool]) -> list[Waiting[Any]]:
        while self.below and lets_go(joint.own, self.below[0][0]):
            _, number, waiting, paired = heapq.heappop(self.below)
            if not waiting.gone:
                heapq.heappush(self.beside, (paired, number, waiting))
        return _taken(self.beside, passes, joint.other)


def _taken(heap: _Heap, lets_go: Callable[[Any, Any], bool], mark: Any) -> list[Waiting[Any]]:
    """Take what a mark lets go, and what is gone already, from a heap."""
    found = []
    while heap and (heap[0][2].gone or lets_go(mark, heap[0][0])):
        waiting = heapq.heappop(heap)[2]
        if not waiting.gone:
            waiting.gone = True
            found.append(waiting)
    return found


def _items(found: list[Waiting[Item]]) -> list[Item]:
    return [waiting.item for waiting in sorted(found, key=lambda waiting: waiting.number)]
