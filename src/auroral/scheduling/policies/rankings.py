"""First level of scheduling, which application: the order in which boxes are considered."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterator
from typing import NamedTuple, Protocol

from auroral.scheduling.flow import FlowModel
from auroral.scheduling.queues import BoxQueue, QueueTable


class Candidate(NamedTuple):
    """A box that has something to do, the output for which it was chosen, and why."""

    box: str
    output: str | None
    why: str


class Ranking(Protocol):
    """Puts boxes that have tuples, and do not run, into an order."""

    evaluated: int
    """How many boxes it has looked at so far, all decisions together."""
    buckets_visited: int
    """How many groups of boxes of one priority it has looked into so far."""

    def serve(self, model: FlowModel) -> None:
        """Rank the boxes of this network from now on; all boxes are told again."""
        ...

    def rank(
        self, table: QueueTable, changed: Collection[str], now_s: float, /
    ) -> Iterator[Candidate]:
        """Boxes that can be called, the most urgent one first; priorities are written at once.

        `changed` are the boxes of the network whose queues have changed since it was asked before,
        in flow order.
        """
        ...

    def served(self, candidate: Candidate, /) -> None:
        """A plan was made for a candidate."""
        ...


def is_ready(queue: BoxQueue) -> bool:
    """Whether a box can be called."""
    return queue.queued > 0 and not queue.running


class RoundRobin:
    """All in turn: boxes, or (`by_output`) applications.

    Boxes that lead to no output take turns as applications of their own.
    """

    def __init__(self, by_output: bool = False):
        self._by_output = by_output
        self._units: list[tuple[str | None, tuple[str, ...]]] = []
        self._of_box: dict[str, list[int]] = {}
        self._ready_boxes: set[str] = set()
        self._ready: list[int] = []
        self._counts: list[int] = []
        self._next = 0
        self.evaluated = 0
        self.buckets_visited = 0

    def serve(self, model: FlowModel) -> None:
        """Keep the turn if the network is the same but for its costs."""
        before = self._units
        if self._by_output:
            writers = model.writers
            named = [
                (output.name, model.upstream([writers[output.arc]]))
                for output in model.outputs.values()
                if output.arc in writers
            ]
            led = {box for _, boxes in named for box in boxes}
            self._units = [*named, *((None, (box,)) for box in model.boxes if box not in led)]
        else:
            self._units = [(next(iter(model.outputs_of(box)), None), (box,)) for box in model.boxes]
        self._of_box = {}
        for at, (_, boxes) in enumerate(self._units):
            for box in boxes:
                self._of_box.setdefault(box, []).append(at)
        self._ready_boxes, self._ready, self._counts = set(), [], [0] * len(self._units)
        if before != self._units:
            turn = before[self._next] if self._next < len(before) else None
            self._next = self._units.index(turn) if turn in self._units else 0

    def rank(
        self, table: QueueTable, changed: Collection[str], _now_s: float
    ) -> Iterator[Candidate]:
        """Those whose turn is next come first; all boxes with tuples have the same priority."""
        for box in changed:
            self.evaluated += 1
            queue = table[box]
            queue.priority = 1.0 if queue.queued else None
            if is_ready(queue) == (box in self._ready_boxes):
                continue
            step = 1 if is_ready(queue) else -1
            (self._ready_boxes.add if step > 0 else self._ready_boxes.remove)(box)
            for unit in self._of_box[box]:
                self._counts[unit] += step
                if step > 0 and self._counts[unit] == 1:
                    insort(self._ready, unit)
                elif step < 0 and self._counts[unit] == 0:
                    del self._ready[bisect_left(self._ready, unit)]

        return self._in_turn()

    def _in_turn(self) -> Iterator[Candidate]:
        ready = self._ready
        start = bisect_left(ready, self._next)
        for at in range(start, start + len(ready)):
            output, boxes = self._units[ready[at % len(ready)]]
            for box in boxes:
                if box in self._ready_boxes:
                    yield Candidate(box, output, "it is its turn")

    def served(self, candidate: Candidate) -> None:
        """The next turn is that of the unit behind."""
        units = self._of_box[candidate.box]
        found = [unit for unit in units if self._units[unit][0] == candidate.output]
        self._next = ((found or units)[0] + 1) % len(self._units)


class OldestFirst:
    """`fifo`: the box whose oldest tuple has been in the system for the longest time."""

    def __init__(self) -> None:
        self._model: FlowModel | None = None
        self._keys: dict[str, tuple[float, int]] = {}
        self._place: dict[str, int] = {}
        self._names: list[str] = []
        self._ordered: list[tuple[float, int]] = []
        self.evaluated = 0
        self.buckets_visited = 0

    def serve(self, model: FlowModel) -> None:
        """Forget the queues of the network before."""
        self._model = model
        self._names = list(model.boxes)
        self._place = model.place
        self._keys, self._ordered = {}, []

    def rank(
        self, table: QueueTable, changed: Collection[str], _now_s: float
    ) -> Iterator[Candidate]:
        """The priority of a box is the negative time at which its oldest tuple came."""
        for box in changed:
            self.evaluated += 1
            queue = table[box]
            queue.priority = -queue.oldest_arrival_s if queue.queued else None
            key = (queue.oldest_arrival_s, self._place[box]) if is_ready(queue) else None
            before = self._keys.get(box)
            if key == before:
                continue
            if before is not None:
                del self._ordered[bisect_left(self._ordered, before)]
                del self._keys[box]
            if key is not None:
                insort(self._ordered, key)
                self._keys[box] = key

        return self._by_arrival()

    def _by_arrival(self) -> Iterator[Candidate]:
        assert self._model is not None
        for _, place in self._ordered:
            name = self._names[place]
            output = next(iter(self._model.outputs_of(name)), None)
            yield Candidate(name, output, "its oldest tuple has waited for the longest time")

    def served(self, _candidate: Candidate) -> None:
        """Arrivals alone decide."""
