"""The aggregates of a box over many windows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from auroral.kernels.accumulators.columns import Ints, integers, is_decimal, is_narrow, whole
from auroral.kernels.accumulators.decimals import DecimalAverage, DecimalSum
from auroral.kernels.accumulators.extremes import ExtremeBy, FirstLastAccumulator, NarrowExtreme
from auroral.kernels.accumulators.functions import WindowFunction
from auroral.kernels.accumulators.lists import CollectAccumulator, Distinct, Mode, Percentile
from auroral.kernels.accumulators.moments import Moments
from auroral.kernels.accumulators.spec import Accumulator, CallSpec
from auroral.kernels.accumulators.sums import (
    Average,
    Bits,
    Count,
    CountIf,
    FloatSum,
    IntegerSum,
    TryIntegerSum,
)

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

    def final(self, state: Sequence[pa.Array]) -> tuple[list[pa.Array], dict[int, str]]:
        """One column per call; and by window why user functions failed, or NO_RESULT."""
        state = [whole(column) for column in state]
        found: list[pa.Array] = []
        failures: dict[int, str] = {}
        for one, part in zip(self._each, self._parts, strict=True):
            if isinstance(one, WindowFunction):
                values, failed = one.attempt(state[part])
                # A failure is told even if another function wants no result.
                failures |= {at: failures.get(at) or why for at, why in failed.items()}
            else:
                values = one.final(state[part])
            found.append(values)
        return found, failures


def _accumulator(call: CallSpec) -> Accumulator:
    if call.name == "udf":
        return WindowFunction(call)
    inner = _MAKERS[call.name](call)
    return Distinct(inner, call.arguments) if call.distinct else inner


def _sum(call: CallSpec) -> Accumulator:
    (of,) = call.arguments
    if is_decimal(of):
        return DecimalSum(of)
    if not pa.types.is_integer(of):
        return FloatSum()
    return IntegerSum() if call.name == "sum" else TryIntegerSum()


def _avg(call: CallSpec) -> Accumulator:
    (of,) = call.arguments
    return DecimalAverage(of, call.returns) if is_decimal(of) else Average()


def _extreme(call: CallSpec) -> Accumulator:
    name = {"bool_and": "min", "bool_or": "max"}.get(call.name, call.name)
    if is_narrow(call.arguments[0]):
        return NarrowExtreme(name, call.arguments[0])
    return ExtremeBy(name, call.arguments)


def _collected(call: CallSpec) -> Accumulator:
    return CollectAccumulator(call.arguments[0], call.returns, once=call.name == "collect_set")


_MAKERS: dict[str, Callable[[CallSpec], Accumulator]] = {
    "count": lambda _: Count(),
    "count_if": lambda _: CountIf(),
    "avg": _avg,
    "mode": lambda call: Mode(call.arguments[0]),
    "percentile": lambda call: Percentile(call.literals[0], call.returns),
    **dict.fromkeys(("sum", "try_sum"), _sum),
    **dict.fromkeys(("min", "max", "bool_and", "bool_or"), _extreme),
    **dict.fromkeys(("max_by", "min_by"), lambda call: ExtremeBy(call.name, call.arguments)),
    **dict.fromkeys(("collect_list", "collect_set"), _collected),
    **dict.fromkeys(
        ("first", "last"),
        lambda call: FirstLastAccumulator(call.name, call.arguments[0], call.ignore_nulls),
    ),
    **dict.fromkeys(
        ("bit_and", "bit_or", "bit_xor"), lambda call: Bits(call.name, call.arguments[0])
    ),
    **dict.fromkeys(
        "var_pop var_samp stddev_pop stddev_samp skewness kurtosis covar_pop covar_samp corr".split(),  # noqa: E501, SIM905
        lambda call: Moments(call.name),
    ),
}
