"""Latch on one bucket: the state of each key's aggregates, and their values after each tuple."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from auroral.kernels.accumulators.choice import Accumulators, CallSpec
from auroral.kernels.accumulators.columns import one_zero, whole
from auroral.kernels.grouping import Ids, first_rows, match_groups
from auroral.kernels.kernel import Context, Emitted
from auroral.kernels.stored import conformed, newest_rows, renewed, stored_schema, with_sub


@dataclass(frozen=True)
class LatchKernel:
    """Compute `calls` over all tuples of each key; every tuple makes one with the new values."""

    by: tuple[str, ...]
    calls: tuple[CallSpec, ...]
    arguments: tuple[tuple[str, ...], ...]
    """The columns of each call's arguments."""
    types: tuple[tuple[str, pa.DataType], ...]

    def tables(self) -> Mapping[str, pa.Schema]:
        kinds = dict(self.types)
        accumulated = [(field.name, field.type) for field in Accumulators(self.calls).fields()]
        columns = [*((name, kinds[name]) for name in self.by), *accumulated]
        return {"values": stored_schema(columns, hidden=False)}

    def step(
        self, inputs: Sequence[pa.Table], state: Mapping[str, pa.Table], _context: Context
    ) -> Emitted:
        new = with_sub(inputs[0])
        old = conformed(state["values"], self.tables()["values"])
        key, known, count = match_groups(
            new.select(self.by).columns, new.num_rows, old.select(self.by).columns, old.num_rows
        )
        newest = newest_rows(known, old, count)
        if not new.num_rows:
            return Emitted(held=int((newest >= 0).sum()))
        # Keys are numbered by first appearance, so those of the new tuples come first.
        touched = int(key.max()) + 1
        functions = Accumulators(self.calls)
        before = _taken(functions, old, newest[:touched])
        given = [[whole(new[name]) for name in names] for names in self.arguments]
        values = functions.running(before, given, key)
        after = functions.fold(before, given, key)
        live = np.zeros(old.num_rows, bool)
        live[newest[touched:][newest[touched:] >= 0]] = True
        stored = self._stored(new, first_rows(key, touched), functions, after)
        changed = renewed(old, live, stored)
        return Emitted(
            {"": self._emitted(new, values)},
            {} if changed is None else {"values": changed},
            held=int(live.sum()) + touched,
        )

    def _emitted(self, new: pa.Table, values: Sequence[pa.Array]) -> pa.Table:
        """A tuple for each that came, at the same moment; keys that are equal look the same."""
        columns = {name: new[name] for name in ("_seq", "_ts", "_sub")}
        columns |= {name: one_zero(whole(new[name])) for name in self.by}
        return pa.table(columns | {f"agg{n}": column for n, column in enumerate(values)})

    def _stored(
        self, new: pa.Table, first: Ids, functions: Accumulators, after: Sequence[pa.Array]
    ) -> pa.Table:
        rows = pa.array(first)
        columns = {name: whole(new[name]).take(rows) for name in self.by}
        names = [field.name for field in functions.fields()]
        return pa.table(columns | dict(zip(names, after, strict=True)))


def _taken(functions: Accumulators, old: pa.Table, rows: Ids) -> list[pa.Array]:
    """The state of some keys: what is stored in a row, or nothing yet where that is −1."""
    choice = pa.array(np.where(rows < 0, old.num_rows, rows))
    fresh = functions.fresh(1)
    fields = functions.fields()
    return [
        pa.concat_arrays([whole(old[field.name]), nothing]).take(choice)
        for field, nothing in zip(fields, fresh, strict=True)
    ]
