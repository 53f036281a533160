"""Calls of Python functions: all tuples at once, and one by one where that fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from auroral.kernels.shelter import Done, attempted
from auroral.network.function import fitted, fresh
from auroral.network.types import Type

_MOST_SAID = 500
"""Characters of an error that are kept."""


def called(
    function: Callable[..., Any], returns: Type, arrays: Sequence[pa.Array], rows: int
) -> Done:
    """The results of a function of Arrow arrays, NULL for tuples for which it fails."""

    def work(first: int, last: int) -> Done:
        given = [array.slice(first, last - first) for array in arrays]
        return _called(function, returns, given, last - first)

    return attempted(id(function), rows, returns.arrow(), work)


def described(error: BaseException) -> str:
    """An exception in one line."""
    lines = str(error).splitlines() or [""]
    found = f"{type(error).__name__}: {lines[0]}" if lines[0] else type(error).__name__
    return found[:_MOST_SAID]


def _called(
    function: Callable[..., Any], returns: Type, arrays: Sequence[pa.Array], rows: int
) -> Done:
    try:
        return _checked(function, returns, arrays, rows), {}
    except BaseException as error:  # sys.exit() would end the worker, and with it the step
        if rows == 1:
            return pa.nulls(1, returns.arrow()), {0: described(error)}
    each = [_called(function, returns, [a.slice(row, 1) for a in arrays], 1) for row in range(rows)]
    failures = {row: why for row, (_, failed) in enumerate(each) for why in failed.values()}
    return pa.concat_arrays([value for value, _ in each]), failures


def _checked(
    function: Callable[..., Any], returns: Type, arrays: Sequence[pa.Array], rows: int
) -> pa.Array:
    """The function's results, checked and cast to its declared type."""
    found = fresh(function)(*arrays)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    if not isinstance(found, pa.Array):
        if isinstance(found, str | bytes) or not hasattr(found, "__len__"):
            raise TypeError(f"expected an Arrow array, found {type(found).__name__}")
        found = pa.array(found)
    if len(found) != rows:
        raise ValueError(f"expected {rows} values, the function returned {len(found)}")
    return found if found.type == returns.arrow() else fitted(found, returns, function)
