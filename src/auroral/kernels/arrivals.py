"""The tuples that arrive on one input in a step, and which are late by slack or by marks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from auroral.kernels.grouping import Ids, group_ids, group_keys
from auroral.kernels.kernel import NEVER, Context
from auroral.kernels.ordering import whole
from auroral.kernels.steps import Mark, Steps, least_at, single
from auroral.kernels.units import Mask, numbers, stored_type
from auroral.kernels.windowing.slack import (
    Carried,
    SlackThresholds,
    carried_lists,
    counted,
    ranks,
    thresholds,
)
from auroral.progress.lowwater import END, LowWater, Values, minimum

REASONS = ("", "null", "nan", "late")
LARGEST = "_largest"
COUNT = "_count"
NUMBER = "_number"
"""The column of arrival numbers."""


@dataclass(frozen=True)
class InputOrder:
    """How an input is ordered: by slack per group of `by`, or by marks per group of `by_mark`.

    `on` is a column, or `NUMBER`: then by arrival numbers per group of `by`.
    """

    on: str
    by: tuple[str, ...] = ()
    slack: int | None = None
    by_mark: tuple[str, ...] = ()

    @property
    def numbered(self) -> bool:
        return self.on == NUMBER

    @property
    def inferred(self) -> bool:
        """Whether progress is inferred from what arrives."""
        return self.numbered or self.slack is not None

    @property
    def groups(self) -> tuple[str, ...]:
        return self.by_mark if self.slack is None else self.by

    def seen_schema(self, types: Sequence[tuple[str, pa.DataType]]) -> pa.Schema:
        """The state from which thresholds are computed: each group's largest values."""
        kinds = dict(types)
        if self.numbered:
            return pa.schema([*((name, kinds[name]) for name in self.by), (COUNT, pa.int64())])
        largest = pa.list_(stored_type(kinds[self.on]))
        return pa.schema([*((name, kinds[name]) for name in self.by), (LARGEST, largest)])


@dataclass(frozen=True)
class OrderedArrivals:
    """Tuples of one step, in order of arrival, and the progress that decides which are late.

    `also` are tuples stored earlier: their groups are numbered together with those of the new ones.
    """

    seq: Ids
    values: Values
    reason: npt.NDArray[np.int8]
    group: Ids
    also_group: Ids
    context: Context
    marks: Steps | None = None
    running: SlackThresholds | None = None
    rows: Ids | None = None
    """Rows that have a value, which are those `running` numbers."""
    seen: pa.Table | None = None
    """The thresholds' state after the step, if it has changed."""
    convert: Callable[[Values], Values] | None = None

    @staticmethod
    def of(
        order: InputOrder,
        table: pa.Table,
        seen: pa.Table | None,
        mark: Mark,
        context: Context,
        also: pa.Table | None = None,
    ) -> OrderedArrivals:
        """Find the late tuples; with slack or numbers `seen` is the state of the thresholds."""
        also = table.slice(0, 0) if also is None else also
        seq = np.asarray(table["_seq"], np.int64)
        if order.numbered:
            assert seen is not None
            return _by_number(order, table, seen, context, also, seq)
        values, known = numbers(table[order.on])
        reason = np.where(known, 0, 1).astype(np.int8)
        if values.dtype == np.float64:
            reason[known & ~np.isfinite(values)] = 2
        if order.slack is None:
            return _by_marks(order, table, mark, context, also, seq, values, reason)
        assert seen is not None
        return _by_slack(order, table, seen, context, also, seq, values, reason)

    def numbered(self, table: pa.Table) -> pa.Table:
        """The tuples with their values as a column of arrival numbers."""
        return table.append_column(NUMBER, pa.array(self.values))

    @property
    def counts(self) -> Mask:
        """Which tuples are not late."""
        return np.asarray(self.reason == 0)

    @property
    def late(self) -> Mask:
        """Which tuples are below their mark; those without a value are not."""
        return np.asarray(self.reason == REASONS.index("late"))

    def late_counts(self) -> dict[str, int]:
        found = np.bincount(self.reason, minlength=len(REASONS)).tolist()
        return {name: n for name, n in zip(REASONS, found, strict=True) if name and n}

    def in_units(self, convert: Callable[[Values], Values]) -> OrderedArrivals:
        """The same with progress in other units; later calls must give values in these units."""
        return replace(self, convert=convert)

    def passing(self, group: Ids, values: Values) -> Ids:
        """The first moment at which progress is above each value; `NEVER` if not in this step."""
        found = self._steps.passing(group, values)
        if self.marks is not None:
            return found
        inside = (found >= 0) & (found < NEVER)
        moment = np.where(found < 0, self.context.first - 1, ended_at(self.context))
        moment[inside] = self.seq[found[inside]]
        return moment

    def first_to_see(self, group: Ids, values: Values) -> Ids:
        """The first row that finds progress above each value; the number of rows if none does."""
        found = self._steps.passing(group, values)
        if self.marks is not None:
            return np.searchsorted(self.seq, found, side="right")
        return np.minimum(found, len(self.seq) - 1) + 1

    def below(self, ordered: Values, after: bool) -> Ids:
        """How many of some ascending values each group has passed, before or after the step."""
        if self.marks is not None:
            return self._steps.below(ordered, self.context.last if after else self.context.first)
        if after and ended_at(self.context) < NEVER:
            return np.full(len(self._steps.ended), len(ordered))
        return self._steps.below(ordered, len(self.seq) if after else 0)

    def of_all(self, order: InputOrder, mark: Mark) -> tuple[Any | None, Any | None]:
        """The progress that holds for all groups, before the step and after it."""
        first, last = self.context.first, self.context.last
        if not order.inferred:
            return least_at(mark, first - 1, self.context), least_at(mark, last - 1, self.context)
        end = END if ended_at(self.context) < NEVER else None
        if order.by:
            return None, end  # of groups never seen nothing is known
        assert self.running is not None
        codes = self.running.keys[[0, -1]] % self.running.codes.span
        values = self.running.codes.decode(codes).tolist()
        before, after = (v if code else None for v, code in zip(values, codes, strict=True))
        return before, after if end is None else end

    @cached_property
    def _steps(self) -> Steps:
        steps = self._thresholds() if self.marks is None else self.marks
        if self.convert is None:
            return steps
        return replace(steps, values=self.convert(steps.values))

    def _thresholds(self) -> Steps:
        """Thresholds as steps from row to row; -1 is before the first."""
        assert self.running is not None
        assert self.rows is not None
        owner, codes = np.divmod(self.running.keys, self.running.codes.span)
        known = codes > 0
        starts = np.zeros(self.running.groups + 1, np.int64)
        np.cumsum(np.bincount(owner[known], minlength=self.running.groups), out=starts[1:])
        rows = self.running.rows[known]
        when = np.where(rows < 0, -1, np.append(self.rows, 0)[rows])
        ended = np.full(self.running.groups, NEVER)
        return Steps(starts, when, self.running.codes.decode(codes[known]), ended)


def ended_at(context: Context) -> int:
    """The moment at which the stream ends, if it lies in this step."""
    if context.ended is None or context.ended >= context.last:
        return NEVER
    return context.ended


def late_port(
    port: str, table: pa.Table, arrivals: OrderedArrivals, fields: Sequence[str] | None
) -> dict[str, pa.Table]:
    """Late tuples as they arrived, if anyone reads them."""
    if fields is None:
        return {}
    late = table.filter(pa.array(~arrivals.counts))
    return {port: late.select(["_seq", "_ts", "_sub", *fields])}


def _by_marks(
    order: InputOrder,
    table: pa.Table,
    mark: Mark,
    context: Context,
    also: pa.Table,
    seq: Ids,
    values: Values,
    reason: npt.NDArray[np.int8],
) -> OrderedArrivals:
    found = single(mark)
    columns = _stacked([table, also], order.by_mark)
    rows = table.num_rows + also.num_rows
    if isinstance(found, LowWater):
        group, marks = np.zeros(rows, np.int64), [found]
    elif not columns:
        group, marks = np.zeros(rows, np.int64), [minimum([found.others, *found.groups.values()])]
    else:
        group, first = group_ids(columns, rows)
        marks = [found.of(key) for key in group_keys(columns, first)]
    steps = Steps.of(marks, context)
    own, other = group[: table.num_rows], group[table.num_rows :]
    reason[(reason == 0) & (steps.passing(own, values) < seq)] = 3
    return OrderedArrivals(seq, values, reason, own, other, context, marks=steps)


def _by_slack(
    order: InputOrder,
    table: pa.Table,
    seen: pa.Table,
    context: Context,
    also: pa.Table,
    seq: Ids,
    values: Values,
    reason: npt.NDArray[np.int8],
) -> OrderedArrivals:
    assert order.slack is not None
    rows = np.flatnonzero(reason == 0)
    fit = table.select(order.by)
    fit = fit.take(rows) if len(rows) < table.num_rows else fit
    columns = _stacked([seen, fit, also], order.by)
    known = seen.num_rows
    ids, first = group_ids(columns, known + len(rows) + also.num_rows)
    own = ids[known : known + len(rows)]
    carried = Carried.of(whole(seen[LARGEST]), max(len(first), 1))
    running = thresholds(own, values[rows], carried, order.slack)
    threshold, exists = running.before()
    reason[rows[exists & np.asarray(values[rows] < threshold, bool)]] = 3
    group = np.zeros(table.num_rows, np.int64)
    group[rows] = own
    after = None
    if len(rows):
        largest = carried_lists(running, seen.schema.field(LARGEST).type.value_type)
        kept = [column.take(pa.array(first)) for column in columns]
        after = pa.table([*kept, largest], schema=seen.schema)
    also_group = ids[known + len(rows) :]
    return OrderedArrivals(
        seq, values, reason, group, also_group, context, None, running, rows, after
    )


def _by_number(
    order: InputOrder, table: pa.Table, seen: pa.Table, context: Context, also: pa.Table, seq: Ids
) -> OrderedArrivals:
    """Number arriving tuples 1, 2, 3 … per group, continuing after earlier steps."""
    columns = _stacked([seen, table, also], order.by)
    known, rows = seen.num_rows, table.num_rows
    ids, first = group_ids(columns, known + rows + also.num_rows)
    groups = max(len(first), 1)
    own, before = ids[known : known + rows], np.zeros(groups, np.int64)
    before[ids[:known]] = np.asarray(whole(seen[COUNT]), np.int64)
    values = before[own] + ranks(own, groups) + 1
    running = counted(own, values, groups, before)
    after = None
    if rows:
        count = pa.array(before + np.bincount(own, minlength=groups))
        after = pa.table([*(c.take(pa.array(first)) for c in columns), count], schema=seen.schema)
    reason, every = np.zeros(rows, np.int8), np.arange(rows)
    also_group = ids[known + rows :]
    return OrderedArrivals(
        seq, values, reason, own, also_group, context, None, running, every, after
    )


def _stacked(tables: Sequence[pa.Table], names: Sequence[str]) -> list[pa.Array]:
    """The columns of several tables, concatenated."""
    return [pa.concat_arrays([whole(t[name]) for t in tables]) for name in names]
