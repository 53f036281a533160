"""Join, one tuple at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from auroral.boxes.join import Join, joined
from auroral.boxes.predicate import sided
from auroral.network.types import Schema
from auroral.reference.band import Band
from auroral.reference.kept import Kept
from auroral.reference.operator import Emission, Now, Operator, Row, Tuple
from auroral.reference.order import OrderProgress
from auroral.reference.windows import oldest
from auroral.sql.expression import evaluator

LEFT, RIGHT = 0, 1
_PORTS = ("left_late", "right_late")


def reference_join(
    box: Join,
    inputs: Sequence[Schema],
    _directory: Path | None = None,
    tables: Mapping[str, Sequence[Row]] | None = None,
) -> Operator:
    """The operator for any of the three: with a table, by rows, or in a band."""
    pairing = Pairing(box, inputs)
    for name in box.inputs:
        if tables is not None and name in tables:
            return TableJoin(pairing, tables[name])
    return RowsJoin(pairing, box.rows) if box.rows else ReferenceJoin(box, inputs, pairing)


def band_of(box: Join, inputs: Sequence[Schema]) -> Band:
    """Which left and right values lie close enough."""
    assert box.left is not None
    before, after = box.range or (box.within, box.within)
    assert before is not None
    assert after is not None
    return Band.of(before, after, inputs[LEFT].field(box.left.on).type)


class Pairing:
    """Makes the tuples of an arrival and its partners, in the order of the partners."""

    def __init__(self, box: Join, inputs: Sequence[Schema]):
        left, right = inputs
        self._names = joined(left, right).names
        self._holds = evaluator(box.on or "true", sided(left=left, right=right))

    def pairs(self, side: int, arrived: Tuple, partners: Sequence[Tuple]) -> list[Emission]:
        made = []
        for partner in partners:
            left, right = (arrived, partner) if side == LEFT else (partner, arrived)
            if self._holds({"left": left.row, "right": right.row}) is True:
                values = (*left.row.values(), *right.row.values())
                row = dict(zip(self._names, values, strict=True))
                made.append(Emission("", Tuple(row, oldest([left, right]))))
        return made


class ReferenceJoin:
    """Keeps the tuples of both sides as long as one that is not late could match them."""

    def __init__(self, box: Join, inputs: Sequence[Schema], pairing: Pairing):
        assert box.left is not None
        assert box.right is not None
        self._pairing, self._band = pairing, band_of(box, inputs)
        orders = zip((box.left, box.right), inputs, strict=True)
        self._progress = [OrderProgress(order, schema) for order, schema in orders]
        self._kept: tuple[Kept[Tuple], ...] = (Kept(), Kept())

    def push(self, port: int, arrived: Tuple) -> list[Emission]:
        progress = self._progress[port]
        reason = progress.arrive(arrived.row)
        if reason:
            return [Emission(_PORTS[port], arrived, reason)]
        value = progress.value(arrived.row)
        self._kept[port].add(value, arrived)
        find = self._band.near_left if port == LEFT else self._band.near_right
        near = find(value, self._kept[1 - port])
        return self._pairing.pairs(port, arrived, near)

    def settle(self, now: Now) -> list[Emission]:
        for progress, promises in zip(self._progress, now.promises, strict=True):
            progress.settle(promises, now.ended)
        left_mark, right_mark = (progress.mark_of_all() for progress in self._progress)
        left, right = self._kept
        left.drop(lambda value: self._band.left_is_past(value, right_mark))
        right.drop(lambda value: self._band.right_is_past(value, left_mark))
        return []

    def held(self) -> int:
        return sum(len(kept) for kept in self._kept)


class RowsJoin:
    """Keeps the latest tuples of both sides."""

    def __init__(self, pairing: Pairing, rows: tuple[int, int]):
        self._pairing, self._rows = pairing, rows
        self._latest: tuple[list[Tuple], ...] = ([], [])

    def push(self, port: int, arrived: Tuple) -> list[Emission]:
        self._latest[port].append(arrived)
        del self._latest[port][: -self._rows[port]]
        return self._pairing.pairs(port, arrived, self._latest[1 - port])

    def settle(self, now: Now) -> list[Emission]:
        if now.ended:
            self._latest = ([], [])
        return []

    def held(self) -> int:
        return sum(len(latest) for latest in self._latest)


class TableJoin:
    """Pairs each tuple with the rows of a table that does not change."""

    def __init__(self, pairing: Pairing, rows: Sequence[Row]):
        self._pairing, self._rows = pairing, rows

    def push(self, port: int, arrived: Tuple) -> list[Emission]:
        # A row of the table is as old as the tuple it meets: it never entered.
        rows = [Tuple(row, arrived.entered_us) for row in self._rows]
        return self._pairing.pairs(port, arrived, rows)

    def settle(self, _now: Now) -> list[Emission]:
        return []

    def held(self) -> int:
        return 0
