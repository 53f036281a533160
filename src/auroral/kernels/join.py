"""Join on one bucket: pairs with equal keys within a band [1 §5.2.2.3, 3 §5.3].

A tuple is stored until the other side's progress shows that no further partner can arrive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.kernels.arrivals import NUMBER, InputOrder, OrderedArrivals
from auroral.kernels.joining.pairs import band_pairs, pair_fields, paired
from auroral.kernels.joining.rows import joined_rows
from auroral.kernels.joining.shelf import Shelf, passing
from auroral.kernels.joining.sides import (
    SIDES,
    BandProgress,
    JoinSide,
    OtherSide,
    key_numbers,
    note_progress,
    note_timeouts,
)
from auroral.kernels.kernel import Context, Emitted
from auroral.kernels.ordering import joined, moments, sub_bytes
from auroral.kernels.steps import mark_of
from auroral.kernels.stored import conformed, stored_schema, with_sub
from auroral.kernels.windowing.timeouts import REACHED, meeting, with_reached

Pair = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class JoinKernel:
    """Pair tuples with equal `keys` and left.on − before <= right.on <= left.on + after.

    `before` and `after` are in units of marks of the left attribute; an attribute `NUMBER` is the
    arrival number. With `rows` the earlier of
    a pair must be among the latest of its side; `table` is the input that is a table, if any.
    With `timeout_us` a tuple is held no longer than that.

    `sieves` are boolean columns of each side: a tuple for which one is not true finds no partners,
    and goes to the side's shelf, a state table that is not read as long as the sieves stay. If they
    are gone, `shelves` have other names, and the tuples of old shelves are as all others again.
    """

    on: tuple[str | None, str | None]
    by: Pair
    slack: tuple[int | None, int | None]
    before: int | float | None
    after: int | float | None
    rows: tuple[int, int] | None
    keys: Pair
    fields: Pair
    types: tuple[tuple[tuple[str, pa.DataType], ...], tuple[tuple[str, pa.DataType], ...]]
    late: tuple[bool, bool] = (False, False)
    table: int | None = None
    by_mark: Pair = ((), ())
    timeout_us: int | None = None
    sieves: Pair = ((), ())
    shelves: tuple[str | None, str | None] = (None, None)
    unread: Pair = ((), ())
    """The columns of each side that nobody reads in pairs: they are stored, but NULL there."""

    def tables(self) -> Mapping[str, pa.Schema]:
        if self.table is not None:
            return {}
        found = {name: stored_schema(self._columns(side)) for side, name in enumerate(SIDES)}
        for side, name in enumerate(SIDES):
            if self.rows is None and self.order(side).inferred:
                found[f"{name}_seen"] = self.order(side).seen_schema(self.types[side])
            shelf = self.shelves[side]
            if shelf is not None:
                found[shelf] = found[name]
        return found

    def order(self, side: int) -> InputOrder:
        on = self.on[side]
        assert on is not None
        return InputOrder(on, self.by[side], self.slack[side], self.by_mark[side])

    def _on_types(self) -> list[pa.DataType]:
        return [self._kinds(side)[self.order(side).on] for side in (0, 1)]

    def _kinds(self, side: int) -> dict[str | None, pa.DataType]:
        return {**dict(self.types[side]), NUMBER: pa.int64(), REACHED: pa.int64()}

    def _columns(self, side: int) -> list[tuple[str, pa.DataType]]:
        """What is stored of a side."""
        kinds = self._kinds(side)
        first = NUMBER if self.rows is not None else self.on[side]
        names: list[Any] = [first, *self.keys[side], *self.fields[side]]
        names += [] if self.timeout_us is None else [REACHED]
        return [(name, kinds[name]) for name in dict.fromkeys(names)]

    def step(
        self, inputs: Sequence[pa.Table], state: Mapping[str, pa.Table], context: Context
    ) -> Emitted:
        if self.table is not None:
            return self._with_table(inputs, self.table)
        new = [with_sub(table) for table in inputs]
        if self.timeout_us is not None:
            new = [with_reached(table, context) for table in new]
        schemas = self.tables()
        if self.rows is not None:
            old = [conformed(state[name], schemas[name]) for name in SIDES]
            timeout_us = self.timeout_us
            return joined_rows(self.rows, self.keys, self.fields, old, new, context, timeout_us)
        return self._within_band(new, schemas, state, context)

    def probes(self, table: int, inputs: Sequence[pa.Table]) -> dict[str, pa.ChunkedArray]:
        """By key column of a table, the values of the tuples that seek their like in it."""
        keys = zip(self.keys[table], self.keys[1 - table], strict=True)
        return {own: inputs[1 - table][other] for own, other in keys}

    def _with_table(self, inputs: Sequence[pa.Table], table: int) -> Emitted:
        other = 1 - table
        keyed = [each.select(names) for each, names in zip(inputs, self.keys, strict=True)]
        for number, kind in enumerate(keyed[other].schema.types):
            # The keys of a table are its fields as they are: integers may be narrower.
            column = keyed[table].column(number).cast(kind)
            keyed[table] = keyed[table].set_column(number, self.keys[table][number], column)
        ids, count = key_numbers(keyed, self.keys)
        none = np.zeros(len(ids[other]), np.int64)
        numbers = np.arange(len(ids[table]))
        at, found = band_pairs(ids[other], none, none + len(numbers), ids[table], numbers, count)
        rows = [found, at] if table == 0 else [at, found]
        stream = inputs[other].select(["_seq", "_ts"]).take(pa.array(at))
        sub = joined(sub_bytes(inputs[other]).take(pa.array(at)), moments(found))
        hidden = {"_seq": stream["_seq"], "_ts": stream["_ts"], "_sub": sub}
        return Emitted({"": pa.table(hidden | pair_fields(inputs, rows, self.fields))}, held=0)

    def _within_band(
        self,
        new: Sequence[pa.Table],
        schemas: Mapping[str, pa.Schema],
        state: Mapping[str, pa.Table],
        context: Context,
    ) -> Emitted:
        arrivals = []
        progress = []
        for side, name in enumerate(SIDES):
            order, mark = self.order(side), mark_of(context, side)
            seen = state.get(f"{name}_seen")
            arrivals.append(OrderedArrivals.of(order, new[side], seen, mark, context))
            progress.append(arrivals[side].of_all(order, mark))
        new = [
            arrivals[side].numbered(new[side]) if self.order(side).numbered else new[side]
            for side in (0, 1)
        ]
        band = BandProgress.of(self._on_types(), (self.before, self.after), progress)
        shelves = [Shelf.of(name, self.shelves[side], state) for side, name in enumerate(SIDES)]
        lean = [self._lean(side, schemas[name]) for side, name in enumerate(SIDES)]
        old = [shelves[side].old(name, lean[side]) for side, name in enumerate(SIDES)]
        passes = [passing(table, names) for table, names in zip(new, self.sieves, strict=True)]
        sides = [
            JoinSide.of(
                side, self.order(side).on, self.keys[side], new[side], old[side], each, band,
                self.timeout_us, passes[side], schemas[SIDES[side]],
            )
            for side, each in enumerate(arrivals)
        ]  # fmt: skip
        emitted = Emitted({"": self._pairs(sides)}, held=0)
        if any(self.sieves):
            emitted.note["sifted"] = [
                [passing(table, [name]).sum().item() for name in names]
                for table, names in zip(new, self.sieves, strict=True)
            ]
        for side, name in enumerate(SIDES):
            shelved = sides[side].shelved
            shelves[side].store(side, self.order(side).on, shelved, band, emitted)
            if self.timeout_us is not None:
                other = 1 - side
                order, mark = self.order(other), mark_of(context, other)
                waits_for = OtherSide(order, new[other], arrivals[other], mark, context)
                one = sides[side]
                assert one.leaves is not None
                note_timeouts(emitted, side, one.on, one.high, one.leaves, band, waits_for)
            whole = partial(shelves[side].old, name, schemas[name])
            held = sides[side].store(
                name, old[side], emitted, anew=bool(shelves[side].stale), whole=whole
            )
            emitted.held = (emitted.held or 0) + held
            fields = [column for column, _ in self.types[side]] if self.late[side] else None
            note_progress(emitted, side, new[side], arrivals[side], fields)
        return emitted

    def _lean(self, side: int, schema: pa.Schema) -> pa.Schema:
        """The columns of what is stored of a side that are needed to make pairs."""
        unread = set(self.unread[side]) - {self.on[side], *self.keys[side]}
        return pa.schema([field for field in schema if field.name not in unread])

    def _pairs(self, sides: Sequence[JoinSide]) -> pa.Table:
        left, right = sides
        (one, two), count = key_numbers([left.rows, right.rows], self.keys)
        # What is stored of both has met already.
        fresh, stored = slice(left.old, None), slice(0, left.old)
        at, found = band_pairs(one[fresh], left.low[fresh], left.high[fresh], two, right.on, count)
        more_at, more_found = band_pairs(
            one[stored], left.low[stored], left.high[stored], two[right.old :],
            right.on[right.old :], count,
        )  # fmt: skip
        rows = [
            np.concatenate([at + left.old, more_at]),
            np.concatenate([found, more_found + right.old]),
        ]
        if self.timeout_us is not None:
            met = meeting((left.rows, right.rows), (rows[0], rows[1]), self.timeout_us)
            rows = [at[met] for at in rows]
        kinds = [dict(types) for types in self.types]
        one_side, other_side = (
            tuple((name, kinds[side][name]) for name in self.unread[side]) for side in (0, 1)
        )
        return paired([left.rows, right.rows], rows, self.fields, (one_side, other_side))
