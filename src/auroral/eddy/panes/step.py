"""Windowed aggregates of many queries over partial results they share: panes.

Tuples are counted once, in partial results per pane (a stretch of the attribute that no window's
edge divides), group and class (the queries they satisfy). A window that closes is merged from
those in its range that have its query.

A pane keeps its own width. Queries that come later may make panes finer, but no older pane has
them in its class; and the windows of those it has are multiples of its width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from auroral.eddy.lineage import Lineage
from auroral.eddy.panes.closing import Closed, Panes, Passed, close
from auroral.eddy.panes.group import AggregateGroup, Classes, QueryIds, classified
from auroral.eddy.panes.merging import Partials
from auroral.eddy.panes.state import Changed, Stored, tables
from auroral.eddy.vectors.evaluation import TupleColumns
from auroral.kernels.emission import HIDDEN, ended
from auroral.kernels.grouping import Ids, group_ids
from auroral.kernels.kernel import Context
from auroral.kernels.ordering import sortable, whole
from auroral.kernels.units import Mask, numbers, shown
from auroral.kernels.windowing.closing import Punctuated
from auroral.progress.lowwater import END, LowWater, Values

__all__ = ["AggregateGroup", "PaneStep", "results_schema", "step", "tables"]

_ROOM = 2**61
"""Below this, lengths can be added to values without leaving 64 bits."""


@dataclass(frozen=True)
class PaneStep:
    """What a step made; see `results_schema`, and `tables` for the state."""

    results: pa.Table
    lineage: Lineage
    """For which queries each result is."""
    state: Changed
    late: dict[str, dict[int, int]]
    """Tuples that were not counted, by reason (null, late, outside) and query."""
    held: int
    """Partial results kept."""


def results_schema(group: AggregateGroup) -> pa.Schema:
    """Hidden columns, the window's start, the keys, and each call under its name."""
    shape = group.shape
    names, types = (shape.on, *shape.by), (type.arrow() for type in shape.types)
    fields = zip(names, types, strict=True)
    return pa.schema([*HIDDEN, *fields, *Partials(group.calls).returns()])


def step(
    group: AggregateGroup,
    arrived: pa.Table,
    lineage: Lineage,
    state: Mapping[str, pa.Table],
    mark: LowWater,
    context: Context,
) -> PaneStep:
    """Count tuples, in order of arrival, for the queries of their lineage; close windows.

    `arrived` are tuples of the arc, `lineage` is of the group's kind. Results are in no order:
    that of an arc is (`_seq`, `_sub`). A bucket that holds panes takes every step in which the
    mark moves: a window that closes in a step left out never comes.
    """
    work = _PaneWork(group, mark, context)
    before = Stored.load(group, state)
    new, classes = work.counted(arrived, lineage)
    stored, labels = before.joined(classes)
    new = new.set_column(3, "class", pa.array(labels[np.asarray(new["class"], np.int64)]))
    live = stored.classes.where(group.queries.places(stored.classes.ids) >= 0)
    panes = work.panes(pa.concat_tables([stored.panes, new]), stored)
    results, whose = work.results(panes, live)
    alive = work.alive(panes, live)
    changed = stored.changed(before, new, alive, group)
    anew = changed.get("panes")
    held = anew.num_rows if isinstance(anew, pa.Table) else int(alive.sum())
    return PaneStep(results, whose, changed, work.late, held)


class _PaneWork:
    """One step of one bucket."""

    def __init__(self, group: AggregateGroup, mark: LowWater, context: Context):
        self.group, self.queries = group, group.queries
        self.functions = Partials(group.calls)
        self.late: dict[str, dict[int, int]] = {}
        self._mark, self._context = mark, context
        after = mark.at(context.last - 1)
        over = ended(context) or after == END
        self._passed = Passed(mark.at(context.first - 1), None if over else after, over)

    def counted(self, arrived: pa.Table, lineage: Lineage) -> tuple[pa.Table, Classes]:
        """New partial results, and the classes they are of, which they name by number."""
        values, known = numbers(arrived[self.group.shape.on])
        seq = np.asarray(whole(arrived["_seq"]), np.int64)
        number, classes = classified(lineage, seq, self.queries)
        self._leave("null", classes, number[~known & (number >= 0)])
        rows = np.flatnonzero(known & (number >= 0))
        tuples = arrived if len(rows) == arrived.num_rows else arrived.take(pa.array(rows))
        number = number[rows]
        pane, floor, floored = self._panes_of(values[rows], seq[rows])
        by = [_plain(whole(tuples[name])) for name in self.group.shape.by]
        floors = pa.array(np.where(floored, floor, 0), mask=~floored)
        slot, one = group_ids([pa.array(pane), pa.array(number), floors, *by], len(rows))
        found = self._partial(
            pane[one], self.queries.width, floors.take(pa.array(one)), number[one]
        )
        used = self._used(found, classes, np.bincount(slot, minlength=len(one)))
        if not used.all():
            kept = used[slot]
            tuples, slot = tuples.filter(pa.array(kept)), (np.cumsum(used) - 1)[slot[kept]]
            one = one[used]
        oldest = np.full(len(one), np.iinfo(np.int64).max)
        np.minimum.at(oldest, slot, np.asarray(whole(tuples["_ts"]), np.int64))
        taken = pa.array(one)
        columns = [pane[one], np.full(len(one), self.queries.width), floors.take(taken)]
        columns += [number[one], oldest, *(column.take(taken) for column in by)]
        columns += self.functions.fold(TupleColumns(tuples), slot, len(one)).values()
        columns.append(pa.nulls(len(one), pa.int32()))
        return pa.table(columns, schema=tables(self.group)["panes"]), classes

    def _panes_of(self, values: Values, seq: Ids) -> tuple[Ids, Ids, Mask]:
        """The pane of each tuple; the floor, in panes; and where there is one."""
        width = self.queries.width
        before, known = Punctuated(self._mark, seq, self._context).before()
        pane = (values // width).astype(np.int64)
        floor = np.where(known, before // width, 0).astype(np.int64)
        return pane, floor, known & (floor > pane)

    def panes(self, table: pa.Table, stored: Stored) -> Panes:
        """Partial results as the state has them."""
        width = np.asarray(whole(table["width"]), np.int64)
        pane = np.asarray(whole(table["pane"]), np.int64)
        number = stored.places(np.asarray(whole(table["class"]), np.int64))
        found = self._partial(pane, width, whole(table["floor"]), number)
        by = tuple(whole(table[f"by{at}"]) for at in range(len(self.group.shape.by)))
        states = {field.name: whole(table[field.name]) for field in self.functions.fields()}
        oldest = np.asarray(whole(table["oldest"]), np.int64)
        return replace(found, oldest=oldest, by=by, states=states)

    def _partial(self, pane: Ids, width: Ids | int, floor: pa.Array, number: Ids) -> Panes:
        """Where panes are and to what they belong; objects where 64 bits may not do."""
        floored = np.asarray(floor.is_valid())
        floors = np.where(floored, np.asarray(floor.fill_null(0), np.int64), pane)
        far = max([0, *(abs(int(f(pane))) for f in (np.min, np.max) if len(pane))])
        lengths = [*self.queries.sizes.tolist(), *self.queries.advances.tolist(), 0]
        most = [(far + 2) * int(np.max(width, initial=1)) + 2 * max(lengths)]
        most += [abs(m) for m in (self._passed.before, self._passed.after) if m not in (None, END)]
        if max(most) > _ROOM:
            pane, floors = pane.astype(object), floors.astype(object)
        start, floors = pane * width, floors * width
        return Panes(start, start + width, floors, floored, number, _NONE, (), {})

    def _used(self, panes: Panes, classes: Classes, tuples: Ids) -> Mask:
        """Which panes some query counts; for the other queries their tuples are late."""
        row, window = classes.asked(panes.number, self.queries)
        size, advance = self.queries.sizes[window], self.queries.advances[window]
        start = panes.start[row]
        # The last of the windows that may hold the pane; if it is below it, none does.
        last = start // advance * advance + size
        outside = np.asarray(last <= start, bool)
        late = ~outside & panes.floored[row] & np.asarray(last <= panes.floor[row], bool)
        for reason, left in (("outside", outside), ("late", late)):
            if left.any():
                keys = panes.number[row[left]] * len(self.queries.sizes) + window[left]
                found, at = np.unique(keys, return_inverse=True)
                counts = np.zeros(len(found), np.int64)
                np.add.at(counts, at, tuples[row[left]])
                self._leave_windows(reason, classes, found, counts)
        used = np.zeros(len(panes), bool)
        used[row[~outside & ~late]] = True
        return used

    def _leave(self, reason: str, classes: Classes, number: Ids) -> None:
        """Record that tuples of these classes are not counted."""
        if len(number):
            counts = np.bincount(number, minlength=len(classes))
            self._note(reason, classes.ids, counts[classes.owner])

    def _leave_windows(self, reason: str, classes: Classes, keys: Ids, counts: Ids) -> None:
        """The same for queries that have certain windows: class · windows + window."""
        place = self.queries.places(classes.ids)
        mine = classes.owner * len(self.queries.sizes) + self.queries.window[place]
        at = np.minimum(np.searchsorted(keys, mine), len(keys) - 1)
        self._note(reason, classes.ids, np.where(keys[at] == mine, counts[at], 0))

    def _note(self, reason: str, ids: QueryIds, counts: Ids) -> None:
        held = self.late.setdefault(reason, {})
        for query, count in zip(ids.tolist(), counts.tolist(), strict=True):
            if count:
                held[query] = held.get(query, 0) + count

    def results(self, panes: Panes, classes: Classes) -> tuple[pa.Table, Lineage]:
        """The windows that close, and for which queries."""
        schema = results_schema(self.group)
        parts, rows, ids, at = [schema.empty_table()], [_NONE], [np.empty(0, np.int32)], 0
        for closed in close(panes, classes, self.queries, self.functions, self._passed):
            parts.append(self._shown(closed, schema))
            rows.append(closed.rows + at)
            ids.append(closed.ids)
            at += len(closed.start)
        lineage = Lineage.from_pairs(at, np.concatenate(rows), np.concatenate(ids))
        return pa.concat_tables(parts), lineage

    def _shown(self, closed: Closed, schema: pa.Schema) -> pa.Table:
        moments = Punctuated(self._mark, _NONE, self._context).reaching(_NONE, closed.end)
        start = shown(closed.start, self.group.shape.types[0].arrow())
        sub = sortable([start, *closed.by])
        hidden = [pa.array(moments), pa.array(closed.oldest), sub]
        return pa.table([*hidden, start, *closed.by, *closed.results], schema=schema)

    def alive(self, panes: Panes, classes: Classes) -> Mask:
        """Partial results that an open window still needs."""
        if self._passed.everything:
            return np.zeros(len(panes), bool)
        longest = np.zeros(len(classes), np.int64)
        sizes = self.queries.sizes[self.queries.window[self.queries.places(classes.ids)]]
        np.maximum.at(longest, classes.owner, sizes)
        asked: Mask = longest[panes.number] > 0
        if self._passed.after is None:
            return asked
        # No window that holds a pane ends later.
        until = panes.start + longest[panes.number]
        open_: Mask = np.asarray(until > self._passed.after, bool)
        return asked & open_


def _plain(column: pa.Array) -> pa.Array:
    """Keys for output: -0.0 becomes 0.0."""
    if not pa.types.is_floating(column.type):
        return column
    values = np.asarray(column.fill_null(0.0)) + column.type.to_pandas_dtype()(0.0)
    return pa.array(values, column.type, mask=np.asarray(column.is_null()), from_pandas=False)


_NONE = np.empty(0, np.int64)
