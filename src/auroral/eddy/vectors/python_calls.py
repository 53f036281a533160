"""Calls of Python functions: all tuples at once, and one by one where that fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from auroral.eddy.vectors.batch import Batch
from auroral.eddy.vectors.computed import Computed
from auroral.eddy.vectors.vector import Vector, from_arrow
from auroral.network.types import Type


def call(returns: Type, name: str, args: Sequence[Computed]) -> Computed:
    """A call with one Arrow array for each argument; a tuple it fails for is NULL and counted."""
    runs = [arg.run for arg in args]
    to = returns.arrow()

    def run(batch: Batch) -> Vector:
        if not batch.rows:
            return from_arrow(pa.array([], to), returns)
        udf = batch.functions[name].udf
        arrays = [one(batch).spread(batch.rows).arrow() for one in runs]
        try:
            return from_arrow(_checked(udf, arrays, batch.rows, to), returns)
        except BaseException as error:  # whatever it does, it does to its query alone
            if batch.rows == 1:
                batch.fail(0, error)
                return from_arrow(pa.nulls(1, to), returns)
        return from_arrow(_one_by_one(batch, udf, arrays, to), returns)

    return Computed(returns, run, fallible=True)


def _one_by_one(batch: Batch, udf: Callable[..., Any], arrays: list[pa.Array], to: Any) -> pa.Array:
    found = []
    for row in range(batch.rows):
        try:
            found.append(_checked(udf, [array.slice(row, 1) for array in arrays], 1, to))
        except BaseException as error:
            batch.fail(row, error)
            found.append(pa.nulls(1, to))
    return pa.concat_arrays(found)


def _checked(udf: Callable[..., Any], arrays: list[pa.Array], rows: int, to: Any) -> pa.Array:
    """What the function returns, in its type."""
    found = udf(*arrays)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    if not isinstance(found, pa.Array):
        if isinstance(found, str | bytes) or not hasattr(found, "__len__"):
            raise TypeError(f"expected an Arrow array, found {type(found).__name__}")
        found = pa.array(found)
    if len(found) != rows:
        raise ValueError(f"expected {rows} values, found {len(found)}")
    return found if found.type == to else found.cast(to)
