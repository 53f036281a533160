"""WaitFor, one tuple at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from auroral.boxes.join import equal_fields
from auroral.boxes.predicate import sided
from auroral.boxes.wait_for import ENDED, SIDES, TIMED_OUT, WaitFor
from auroral.network.types import Schema
from auroral.reference.operator import Emission, Failed, Now, Row, Tuple
from auroral.reference.progress.marks import Group, group_key
from auroral.reference.windowing.patience import Patience
from auroral.sql.expressions.expression import evaluator

_HELD = 0


class ReferenceWaitFor:
    """Keeps tuples by the fields that signals must have in common with them.

    >>> box = WaitFor(inputs=("h", "s"), match="held.id = signal.key", timeout=5)
    >>> waiting = ReferenceWaitFor(box, [Schema.parse("id int"), Schema.parse("key int")])
    >>> arrivals = [(1, {"key": 7}), (0, {"id": 7}), (0, {"id": 8}), (1, {"key": 7})]
    >>> for port, row in arrivals:
    ...     _ = waiting.push(port, Tuple(row))
    >>> [made.tuple.row for made in waiting.settle(Now([]))], waiting.held()
    ([{'id': 7}], 1)
    """

    def __init__(self, box: WaitFor, inputs: Sequence[Schema], _directory: Path | None = None):
        self._holds = evaluator(box.match, sided(held=inputs[0], signal=inputs[1]))
        self._patience = Patience.of(box.timeout)
        pairs = [
            tuple(schema.field(name) for schema, name in zip(inputs, pair, strict=True))
            for pair in equal_fields(box.match, SIDES)
        ]
        same = [pair for pair in pairs if _is_found_by_hash(pair[0].type, pair[1].type)]
        self._equal = [[pair[side].name for pair in same] for side in (0, 1)]
        self._held: dict[Group, dict[int, Tuple]] = {}
        self._by_age: deque[tuple[int, Group, Tuple]] = deque()
        self._going: dict[int, Tuple] = {}
        """What the signals of this moment have released, by number of arrival."""
        self._arrived = 0

    def push(self, port: int, arrived: Tuple) -> list[Emission | Failed]:
        key = self._key(port, arrived.row)
        if port == _HELD:
            self._arrived += 1
            self._held.setdefault(key, {})[self._arrived] = arrived
            self._by_age.append((self._arrived, key, arrived))
            return []
        waiting = self._held.get(key, {})
        for number, held in list(waiting.items()):
            both = {"held": held.row, "signal": arrived.row}
            if self._patience.meet(held, arrived) and self._holds(both) is True:
                self._going[number] = self._take(number, key)
        return []

    def settle(self, now: Now) -> list[Emission | Failed]:
        made = [Emission("", held) for _, held in sorted(self._going.items())]
        self._going = {}
        is_over = self._patience.over(now.clock_us)
        while self._by_age and (now.ended or is_over(self._by_age[0][2])):
            number, key, held = self._by_age.popleft()
            if number in self._held.get(key, {}):
                reason = TIMED_OUT if is_over(held) else ENDED
                made.append(Emission("late", self._take(number, key), reason))
        return list(made)

    def held(self) -> int:
        return sum(map(len, self._held.values()))

    def _take(self, number: int, key: Group) -> Tuple:
        waiting = self._held[key]
        taken = waiting.pop(number)
        if not waiting:
            del self._held[key]
        return taken

    def _key(self, port: int, row: Row) -> Group:
        return group_key(tuple(row[name] for name in self._equal[port]))


def _is_found_by_hash(one: Any, other: Any) -> bool:
    """Whether values of two types that are equal in SQL are equal in Python."""
    if one.name in ("array", "map", "struct"):
        return False
    return bool(one == other or (one.is_integral and other.is_integral))
