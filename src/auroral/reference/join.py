"""Join, one tuple at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from auroral.boxes.join import Join, equal_fields, joined
from auroral.boxes.predicate import sided
from auroral.network.box import Scope
from auroral.network.types import Schema
from auroral.reference.calls import Evaluators
from auroral.reference.operator import (
    Emission,
    Failed,
    FunctionFailedError,
    Now,
    ReferenceOperator,
    Row,
    Tuple,
)
from auroral.reference.windowing.band import ReferenceBand
from auroral.reference.windowing.kept import Kept
from auroral.reference.windowing.order import progress_of
from auroral.reference.windowing.patience import Patience, timed_out
from auroral.reference.windowing.windows import oldest
from auroral.sql.expressions.expression import evaluator

LEFT, RIGHT = 0, 1
_PORTS = ("left_late", "right_late")


def reference_join(
    box: Join,
    inputs: Sequence[Schema],
    _directory: Path | None = None,
    tables: Mapping[str, Sequence[Row]] | None = None,
    scope: Scope | None = None,
) -> ReferenceOperator:
    """The operator for any of the three: with a table, by rows, or in a band."""
    pairing = Pairing(box, inputs, scope or Scope(imports=True))
    for name in box.inputs:
        if tables is not None and name in tables:
            return TableJoin(pairing, tables[name])
    patience = Patience.of(box.timeout)
    if box.rows is not None:
        return RowsJoin(pairing, box.rows, patience)
    return ReferenceJoin(box, inputs, pairing, patience)


def band_of(box: Join, inputs: Sequence[Schema]) -> ReferenceBand:
    """Which left and right values lie close enough."""
    assert box.left is not None
    before, after = box.range or (box.within, box.within)
    assert before is not None
    assert after is not None
    return ReferenceBand.of(before, after, box.left.type_in(inputs[LEFT], tuple_number=True))


class Pairing:
    """Makes the tuples of an arrival and its partners, in the order of the partners."""

    def __init__(self, box: Join, inputs: Sequence[Schema], scope: Scope):
        left, right = inputs
        self._names = joined(left, right).names
        sides = sided(left=left, right=right)
        equal = [f"left.`{a}` = right.`{b}`" for a, b in equal_fields(box.on or "true")]
        self._equal = evaluator(" AND ".join(equal) or "true", sides)
        self._evaluators = Evaluators(box.calls(inputs, scope), scope)
        (self._holds,) = self._evaluators.expressions

    def pairs(
        self, side: int, arrived: Tuple, partners: Sequence[Tuple]
    ) -> list[Emission | Failed]:
        made: list[Emission | Failed] = []
        for partner in partners:
            left, right = (arrived, partner) if side == LEFT else (partner, arrived)
            both = {"left": left.row, "right": right.row}
            if self._equal(both) is not True:
                continue
            values = (*left.row.values(), *right.row.values())
            row = dict(zip(self._names, values, strict=True))
            try:
                if self._holds(self._evaluators.called(both)) is True:
                    made.append(Emission("", Tuple(row, oldest([left, right]))))
            except FunctionFailedError as error:
                made.append(Failed(str(error), row))
        return made


class ReferenceJoin:
    """Keeps the tuples of both sides as long as one that is not late could match them.

    With a timeout it keeps them no longer than that.
    """

    def __init__(
        self, box: Join, inputs: Sequence[Schema], pairing: Pairing, patience: Patience
    ) -> None:
        assert box.left is not None
        assert box.right is not None
        self._pairing, self._band, self._patience = pairing, band_of(box, inputs), patience
        orders = zip((box.left, box.right), inputs, strict=True)
        self._progress = [progress_of(order, schema) for order, schema in orders]
        timed = patience.timeout_us is not None
        self._kept: tuple[Kept[Tuple], ...] = (Kept(timed=timed), Kept(timed=timed))

    def push(self, port: int, arrived: Tuple) -> list[Emission | Failed]:
        progress = self._progress[port]
        value = progress.value(arrived.row)
        reason = progress.arrive(arrived.row)
        if reason:
            return [Emission(_PORTS[port], arrived, reason)]
        self._kept[port].add(value, arrived)
        find = self._band.near_left if port == LEFT else self._band.near_right
        near = find(value, self._kept[1 - port])
        near = [other for other in near if self._patience.meet(arrived, other)]
        return self._pairing.pairs(port, arrived, near)

    def settle(self, now: Now) -> list[Emission]:
        for progress, promises in zip(self._progress, now.promises, strict=True):
            progress.settle(promises, now.ended)
        left_mark, right_mark = (progress.mark_of_all() for progress in self._progress)
        left, right = self._kept
        left.drop(lambda value: self._band.left_is_past(value, right_mark))
        right.drop(lambda value: self._band.right_is_past(value, left_mark))
        over = [t for kept in self._kept for t in kept.drop_old(self._patience.over(now.clock_us))]
        return [timed_out(gone) for gone in over]

    def held(self) -> int:
        return sum(len(kept) for kept in self._kept)


class RowsJoin:
    """Keeps the latest tuples of both sides, with a timeout no longer than that."""

    def __init__(self, pairing: Pairing, rows: tuple[int, int], patience: Patience):
        self._pairing, self._rows, self._patience = pairing, rows, patience
        self._latest: tuple[list[Tuple], ...] = ([], [])

    def push(self, port: int, arrived: Tuple) -> list[Emission | Failed]:
        self._latest[port].append(arrived)
        del self._latest[port][: -self._rows[port]]
        others = [other for other in self._latest[1 - port] if self._patience.meet(arrived, other)]
        return self._pairing.pairs(port, arrived, others)

    def settle(self, now: Now) -> list[Emission]:
        if now.ended:
            self._latest = ([], [])
        gone, is_over = [], self._patience.over(now.clock_us)
        for latest in self._latest:
            while latest and is_over(latest[0]):
                gone.append(latest.pop(0))
        return [timed_out(one) for one in gone]

    def held(self) -> int:
        return sum(len(latest) for latest in self._latest)


class TableJoin:
    """Pairs each tuple with the rows of a table that does not change."""

    def __init__(self, pairing: Pairing, rows: Sequence[Row]):
        self._pairing, self._rows = pairing, rows

    def push(self, port: int, arrived: Tuple) -> list[Emission | Failed]:
        # A row of the table is as old as the tuple it meets: it never entered.
        rows = [Tuple(row, arrived.entered_us) for row in self._rows]
        return self._pairing.pairs(port, arrived, rows)

    def settle(self, _now: Now) -> list[Emission]:
        return []

    def held(self) -> int:
        return 0
