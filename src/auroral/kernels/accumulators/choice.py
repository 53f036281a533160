"""The aggregate calls of a box over many windows at once, and which accumulator each call gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from auroral.kernels.accumulators.columns import Ints, integers, is_decimal, is_narrow, whole
from auroral.kernels.accumulators.extremes import ExtremeBy, FirstLastAccumulator, NarrowExtreme
from auroral.kernels.accumulators.lists import CollectAccumulator, Distinct, Mode, Percentile
from auroral.kernels.accumulators.moments import Moments
from auroral.kernels.accumulators.segments import Segments, last_known, stepwise
from auroral.kernels.accumulators.spec import Accumulator, CallSpec, RunningAccumulator
from auroral.kernels.accumulators.sums import (
    Average,
    Bits,
    Count,
    CountIf,
    DecimalAverage,
    DecimalSum,
    FloatSum,
    IntegerSum,
    TryIntegerSum,
)
from auroral.kernels.accumulators.window_function import WindowFunction
from auroral.sql.aggregates.functions import AGGREGATE_FUNCTIONS, AccumulatorKind

__all__ = ["Accumulators", "CallSpec"]


class Accumulators:
    """Several calls side by side; their state columns are s0, s1, … in order.

    Any cut of the rows into folds gives the same state to the bit, and so the same values.
    """

    def __init__(self, calls: Sequence[CallSpec]):
        self.calls = tuple(calls)
        self._each = [_accumulator(call) for call in calls]
        ends = np.cumsum([len(one.types) for one in self._each]).tolist()
        self._parts = [slice(a, b) for a, b in zip([0, *ends], ends, strict=False)]

    def fields(self) -> list[pa.Field]:
        """The state columns."""
        types = [type for one in self._each for type in one.types]
        return [pa.field(f"s{at}", type) for at, type in enumerate(types)]

    def fresh(self, n: int) -> list[pa.Array]:
        """The state of n empty windows."""
        return [column for one in self._each for column in one.fresh(n)]

    def fold(
        self,
        state: Sequence[pa.Array],
        arguments: Sequence[Sequence[pa.Array]],
        slot: Ints,
    ) -> list[pa.Array]:
        """The state after more rows, in order of arrival; row i goes to window slot[i].

        `arguments[c]` are the columns of call c, the condition of its filter last.
        """
        state = [whole(column) for column in state]
        slot = np.asarray(slot, dtype=np.int64)
        found: list[pa.Array] = []
        for call, one, part, given in zip(
            self.calls, self._each, self._parts, arguments, strict=True
        ):
            columns, kept = [whole(column) for column in given], slot
            if call.filtered:
                mask = integers(columns.pop()) != 0
                columns = [column.filter(pa.array(mask)) for column in columns]
                kept = slot[mask]
            found += one.fold(state[part], columns, kept) if len(kept) else state[part]
        return found

    def running(
        self,
        state: Sequence[pa.Array],
        arguments: Sequence[Sequence[pa.Array]],
        slot: Ints,
    ) -> list[pa.Array]:
        """For each call its value after each row, in order of arrival, as `fold` takes them.

        >>> counts = Accumulators([CallSpec("count", (pa.int64(),), pa.int64())])
        >>> rows, slot = pa.array([5, None, 7, 8]), np.array([0, 0, 1, 0])
        >>> counts.running(counts.fresh(2), [[rows]], slot)[0].to_pylist()
        [1, 1, 1, 2]
        """
        state = [whole(column) for column in state]
        slot = np.asarray(slot, dtype=np.int64)
        order = np.argsort(slot, kind="stable")
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        found = []
        for call, one, part, given in zip(
            self.calls, self._each, self._parts, arguments, strict=True
        ):
            columns = [whole(column).take(pa.array(order)) for column in given]
            values = _after_each(call, one, state[part], columns, slot[order])
            found.append(values.take(pa.array(back)))
        return found

    def final(self, state: Sequence[pa.Array]) -> tuple[list[pa.Array], dict[int, str]]:
        """One column per call; and for each window that has none, why: an error, or NO_RESULT."""
        state = [whole(column) for column in state]
        found: list[pa.Array] = []
        failures: dict[int, str] = {}
        for one, part in zip(self._each, self._parts, strict=True):
            if isinstance(one, WindowFunction):
                values, failed = one.attempt(state[part])
                # Report a failure even if another function yields no result for the window.
                failures |= {at: failures.get(at) or why for at, why in failed.items()}
            else:
                values = one.final(state[part])
            found.append(values)
        return found, failures


def _after_each(
    call: CallSpec,
    one: Accumulator,
    state: Sequence[pa.Array],
    columns: list[pa.Array],
    slot: Ints,
) -> pa.Array:
    """The value of a call after each row; rows are sorted by window."""
    rows = np.arange(len(slot))
    if call.filtered:
        rows = np.flatnonzero(integers(columns.pop()))
        columns = [column.take(pa.array(rows)) for column in columns]
    if isinstance(one, RunningAccumulator):
        changing, values = one.running(state, columns, slot[rows])
        rows = rows[changing]
    else:
        values = stepwise(one, state, columns, slot[rows])
    if len(rows) == len(slot):
        return values
    # A row that changes nothing leaves the value of the row before, or what was there before all.
    segments = Segments.of(slot)
    choice = np.full(len(slot), -1, np.int64)
    kept = segments.firsts
    choice[kept] = np.arange(len(segments.starts))
    choice[rows] = len(segments.starts) + np.arange(len(rows))
    before = one.final(state).take(pa.array(segments.windows))
    both = pa.concat_arrays([before, values])
    return both.take(pa.array(choice[last_known(choice >= 0)]))


def _accumulator(call: CallSpec) -> Accumulator:
    if call.name == "udf":
        return WindowFunction(call)
    inner = MAKERS[AGGREGATE_FUNCTIONS[call.name].accumulator](call)
    return Distinct(inner, call.arguments) if call.distinct else inner


def _sum(call: CallSpec) -> Accumulator:
    (of,) = call.arguments
    if is_decimal(of):
        return DecimalSum(of)
    return IntegerSum() if pa.types.is_integer(of) else FloatSum()


def _try_sum(call: CallSpec) -> Accumulator:
    return TryIntegerSum() if pa.types.is_integer(call.arguments[0]) else _sum(call)


def _average(call: CallSpec) -> Accumulator:
    (of,) = call.arguments
    return DecimalAverage(of, call.returns) if is_decimal(of) else Average()


def extreme(call: CallSpec, *, greatest: bool) -> NarrowExtreme | ExtremeBy:
    """The accumulator of the least or the greatest value, or of the value beside it."""
    if len(call.arguments) == 1 and is_narrow(call.arguments[0]):
        return NarrowExtreme(call.arguments[0], greatest=greatest)
    return ExtremeBy(call.arguments, greatest=greatest)


def _first_last(call: CallSpec, *, is_first: bool) -> Accumulator:
    return FirstLastAccumulator(call.arguments[0], call.ignore_nulls, is_first=is_first)


def _collected(call: CallSpec, *, once: bool) -> Accumulator:
    return CollectAccumulator(call.arguments[0], call.returns, once=once)


MAKERS: Mapping[AccumulatorKind, Callable[[CallSpec], Accumulator]] = {
    "count": lambda _: Count(),
    "count_if": lambda _: CountIf(),
    "sum": _sum,
    "try_sum": _try_sum,
    "average": _average,
    "least": partial(extreme, greatest=False),
    "greatest": partial(extreme, greatest=True),
    "first": partial(_first_last, is_first=True),
    "last": partial(_first_last, is_first=False),
    "bits": lambda call: Bits(call.name, call.arguments[0]),
    "list": partial(_collected, once=False),
    "set": partial(_collected, once=True),
    "mode": lambda call: Mode(call.arguments[0]),
    "percentile": lambda call: Percentile(call.literals[0], call.returns),
    "moments": lambda call: Moments(call.name),
}
"""What makes the accumulator of a call, by the kind that the table of functions gives."""
