"""The interface of accumulators: the state of one aggregate for many windows, as Arrow columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pyarrow as pa

from auroral.kernels.accumulators.columns import Ints

if TYPE_CHECKING:
    from auroral.sql.aggregates.calls import AggregateCall


@dataclass(frozen=True)
class CallSpec:
    """One aggregate call; with `filtered` its last argument says which rows count.

    `name` is the canonical name in the table of functions (`auroral.sql.aggregates.functions`),
    or "udf": then `function` is a class with init, incr and final, or `module:Class`, looked for
    in `directory` too. `literals` are constant arguments, such as the fraction of a percentile.
    """

    name: str
    arguments: tuple[pa.DataType, ...]
    returns: pa.DataType
    distinct: bool = False
    ignore_nulls: bool = False
    filtered: bool = False
    function: Any = None
    directory: str | None = None
    literals: tuple[Any, ...] = ()

    @staticmethod
    def of(call: AggregateCall) -> CallSpec:
        """The spec of an analysed call; `arguments` leave out the condition of a filter."""
        return CallSpec(
            call.name,
            tuple(type.arrow() for type in call.types),
            call.type.arrow(),
            distinct=call.distinct,
            ignore_nulls=call.ignore_nulls,
            filtered=call.where is not None,
            literals=call.literals,
        )


class Accumulator(Protocol):
    """One aggregate over many windows; `fold` continues exactly where the state stopped."""

    types: tuple[pa.DataType, ...]
    """Of its state columns."""

    def fresh(self, n: int) -> list[pa.Array]:
        """The state of n empty windows."""

    def fold(
        self, state: Sequence[pa.Array], columns: Sequence[pa.Array], slot: Ints
    ) -> list[pa.Array]:
        """The state after rows in order of arrival; row i goes to window slot[i]."""

    def final(self, state: Sequence[pa.Array]) -> pa.Array:
        """The value of each window."""


@runtime_checkable
class RunningAccumulator(Protocol):
    """An accumulator that gives the values after all rows at once."""

    def running(
        self, state: Sequence[pa.Array], columns: Sequence[pa.Array], slot: Ints
    ) -> tuple[Ints, pa.Array]:
        """Which rows may change the value of their window, and the value after each of these.

        Rows are sorted by window, those of a window in order of arrival.
        """
