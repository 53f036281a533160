"""How far an input of a box has come, by what the box orders it on."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from auroral.boxes.order import Order
from auroral.network.types import Schema
from auroral.reference.operator import Row
from auroral.reference.progress.marks import (
    END,
    Group,
    JointMark,
    Promise,
    Promises,
    group_key,
    number,
    passes,
)


class OrderProgress:
    """The mark of each group: with slack inferred from what arrived, else what the arc promises.

    >>> progress = OrderProgress(Order("n", slack=1), Schema.parse("n int"))
    >>> for n in (1, 5, 3):
    ...     progress.take(n, ())
    >>> progress.mark(())
    3
    """

    def __init__(self, order: Order, schema: Schema, *, jointly: bool = False):
        """Start before anything has come; `jointly` takes joint promises into account."""
        field = schema.field(order.on)
        self.on, self.type = field.name, field.type
        self.by = tuple(schema.field(name).name for name in order.by)
        self._types = {name: schema.field(name).type for name in self.by}
        self.slack = order.slack
        self._jointly = jointly
        self._greatest: dict[Group, list[Any]] = {}
        self._promise: Promise | None = None
        self._ended = False
        self.moved: Collection[Group] | None = ()
        self._taken: set[Group] = set()
        self._read = 0

    def flaw(self, row: Row) -> str | None:
        """Why a tuple has no place in the order, if so."""
        value = row[self.on]
        if value is None:
            return "null"
        return "nan" if isinstance(value, float) and not math.isfinite(value) else None

    def value(self, row: Row) -> Any:
        return number(row[self.on], self.type)

    def group(self, row: Row) -> Group:
        return group_key(tuple(row[name] for name in self.by))

    def mark(self, group: Group) -> Any:
        """Nothing of the group below it is taken any more."""
        if self._ended:
            return END
        if self.slack is not None:
            greatest = self._greatest.get(group, [])
            return greatest[self.slack] if len(greatest) > self.slack else None
        if self._promise is None:
            return None
        known = [self._promise.among(self.by, group)]
        known += [joint.own for joint in self.joints() if self._helps(joint, group)]
        return max((mark for mark in known if mark is not None), default=None)

    def arrive(self, row: Row) -> str | None:
        """Let a tuple arrive; why it counts for nothing, if so."""
        flaw = self.flaw(row)
        if flaw:
            return flaw
        value, group = self.value(row), self.group(row)
        late = passes(self.mark(group), value)
        self.take(value, group)
        return "late" if late else None

    def mark_of_all(self) -> Any:
        """Nothing of any group below it is taken any more, of those that never came either."""
        if self._ended:
            return END
        if self.slack is not None:
            return None if self.by else self.mark(())
        return None if self._promise is None else self._promise.least()

    def take(self, value: Any, group: Group) -> None:
        """Move after a tuple, if there is slack: to the (slack + 1)-th greatest value."""
        if self.slack is not None:
            greatest = self._greatest.setdefault(group, [])
            greatest.append(value)
            greatest.sort(reverse=True)
            del greatest[self.slack + 1 :]
            self._taken.add(group)

    def settle(self, promises: Promises, ended: bool) -> None:
        """Move after a moment, to what the arc promises now."""
        self._promise = promises.get(self.on)
        self._ended = ended
        if self.slack is not None:
            self.moved, self._taken = self._taken, set()
        elif self._promise is not None and self._promise.by:
            self.moved = self._newly_raised(self._promise.raised)

    def key(self, group: Group) -> Group | None:
        """Groups with the same key have the same mark of their own; None: there is but one mark."""
        if self.slack is not None:
            return group
        promise = self._promise
        grouped = promise is not None and promise.by and promise.told_by(self.by)
        return promise.key(self.by, group) if promise and grouped else None

    def joints(self) -> list[JointMark]:
        """Joint promises that may say more of some groups."""
        if not self._jointly or self._promise is None or self.slack is not None:
            return []
        return [joint for joint in self._promise.joint if joint.by in self.by]

    def paired(self, joint: JointMark, group: Group) -> Any:
        """The group's value of a joint promise's other attribute; None if it has none."""
        return number(group[self.by.index(joint.by)], self._types[joint.by])

    def _newly_raised(self, raised: Sequence[Group] | None) -> set[Group] | None:
        """The groups whose marks have been raised since the last moment; None: maybe all."""
        if raised is None:
            return None
        read, self._read = self._read, len(raised)
        return set(raised[read:])

    def _helps(self, joint: JointMark, group: Group) -> bool:
        """Whether a joint promise says more of a group: the other attribute's mark is past it."""
        value = self.paired(joint, group)
        return value is not None and passes(joint.other, value)


class TupleNumbers:
    """The order of arrival, 1, 2, 3 … per group: the mark is the next number."""

    slack = None

    def __init__(self, order: Order, schema: Schema):
        self.by = tuple(schema.field(name).name for name in order.by)
        self.moved: Collection[Group] | None = ()
        self._taken: set[Group] = set()
        self._counts: dict[Group, int] = {}
        self._ended = False

    def flaw(self, _row: Row) -> None:
        return None

    def value(self, row: Row) -> int:
        return self._counts.get(self.group(row), 0) + 1

    def group(self, row: Mapping[str, Any]) -> Group:
        return group_key(tuple(row[name] for name in self.by))

    def mark(self, group: Group) -> Any:
        return END if self._ended else self._counts.get(group, 0) + 1

    def mark_of_all(self) -> Any:
        """The next number; of a group that never came nothing is known."""
        return END if self._ended else None if self.by else self.mark(())

    def arrive(self, row: Row) -> None:
        """Let a tuple arrive, which is never late."""
        self.take(self.value(row), self.group(row))

    def key(self, group: Group) -> Group:
        return group

    def joints(self) -> list[JointMark]:
        return []

    def paired(self, _joint: JointMark, _group: Group) -> Any:
        return None

    def take(self, value: int, group: Group) -> None:
        self._counts[group] = value
        self._taken.add(group)

    def settle(self, _promises: Promises, ended: bool) -> None:
        self._ended = ended
        self.moved, self._taken = self._taken, set()


def progress_of(order: Order, schema: Schema) -> OrderProgress | TupleNumbers:
    """How far an input has come: by arrival numbers, or by the values of a field."""
    return TupleNumbers(order, schema) if order.numbered else OrderProgress(order, schema)
