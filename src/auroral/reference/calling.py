"""Calls of Python functions, one tuple at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from auroral.network.function import fitted, fresh
from auroral.network.types import Type
from auroral.reference.operator import RAISED, FunctionFailedError


def called(function: Callable[..., Any], returns: Type, arguments: Sequence[pa.Array]) -> Any:
    """What a function of Arrow arrays gives for one value of each argument."""
    try:
        result = fresh(function)(*arguments)
        found = result if isinstance(result, pa.Array | pa.ChunkedArray) else pa.array(result)
        if len(found) != 1:
            raise ValueError(f"expected 1 values, the function returned {len(found)}")
        return fitted(found, returns, function).to_pylist(maps_as_pydicts="strict")[0]
    except RAISED as error:
        raise FunctionFailedError(f"{type(error).__name__}: {error}"[:500]) from error
